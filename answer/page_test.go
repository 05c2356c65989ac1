package answer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/catalog"
)

func TestFoundSaysWhatWasCut(t *testing.T) {
	t.Parallel()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	items := []map[string]any{{"id": "1"}, {"id": "2"}}
	for name, c := range map[string]struct {
		page connector.Page
		want answer.Found
	}{
		"cut": {
			connector.Page{Items: items, NextCursor: "c", Total: 7},
			answer.Found{Message: "Shown: 2 of 7. There are more: ask again with next_cursor as cursor.", Items: items, NextCursor: "c", Total: at(7), Next: "none"},
		},
		"not counted": {
			connector.Page{Items: items, Total: -1},
			answer.Found{Message: "Shown: 2.", Items: items, Next: "none"},
		},
		"hidden characters": {
			connector.Page{Items: []map[string]any{{"name": "a\u202eb", "n": 1}}, Total: -1},
			answer.Found{Message: "Shown: 1.", Items: []map[string]any{{"name": "a⟨U+202E⟩b", "n": 1}}, Next: "none"},
		},
		"nothing": {
			connector.Page{},
			answer.Found{Message: "Nothing matches.", Items: []map[string]any{}, Total: at(0), Next: "fix_input"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := answer.Writer{Texts: texts.In("en")}.Found(c.page)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func at(n int) *int { return &n }
