package preview_test

import (
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

func TestFreeTextsThatWouldMislead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		key  string // of the refusal, empty if the text is fine
	}{
		"plain":               {"秋の計画です。", ""},
		"lines and tabs":      {"first\n\tsecond\r\n", ""},
		"an emoji of several": {"👩‍💻 ❤️", ""},
		"NUL":                 {"a\x00b", "field.hidden_characters"},
		"an escape":           {"a\x1b[2Jb", "field.hidden_characters"},
		"text turned around":  {"pay \u202e0001", "field.hidden_characters"},
		"an isolate":          {"a\u2066b", "field.hidden_characters"},
		"an invisible space":  {"a\u200bb", "field.hidden_characters"},
		"a byte order mark":   {"\ufeffa", "field.hidden_characters"},
		"no UTF-8":            {"a\xff", "field.json.invalid_utf8"},
		"too short":           {" a ", "field.too_short"},
		"too long":            {strings.Repeat("長", 21), "field.too_long"},
	} {
		err := preview.CheckText("/reason", tc.text, 2, 20)
		got := ""
		if err != nil {
			f := fault.From(err)
			if f.Code != fault.InvalidInput || len(f.Fields) != 1 || f.Fields[0].Path != "/reason" {
				t.Errorf("%s: got %+v, want one field named", name, f)
				continue
			}
			got = f.Fields[0].Key
		}
		if got != tc.key {
			t.Errorf("%s: got %q, want %q", name, got, tc.key)
		}
	}
}
