package visible_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/visible"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	type pieces = []visible.Piece
	for text, want := range map[string]pieces{
		"":                     nil,
		"秋の特価_検索 Sale":         {{Text: "秋の特価_検索 Sale"}},
		"Sale\u202Eelas":       {{Text: "Sale"}, {Text: "⟨U+202E⟩", Odd: true}, {Text: "elas"}},
		"a\u200B\u200Bb":       {{Text: "a"}, {Text: "⟨U+200B⟩⟨U+200B⟩", Odd: true}, {Text: "b"}},
		"\u0430dmin":           {{Text: "\u0430⟨U+0430⟩", Odd: true}, {Text: "dmin"}},
		"мос\u006Bва и London": {{Text: "мос"}, {Text: "k⟨U+006B⟩", Odd: true}, {Text: "ва и London"}},
		"мир 秋 Αθήνα":          {{Text: "мир 秋 Αθήνα"}},
		"x ⟨U+202E⟩ y":         {{Text: "x "}, {Text: "⟨U+202E⟩", Odd: true}, {Text: " y"}},
		"bad\xffbyte":          {{Text: "bad"}, {Text: "⟨0xFF⟩", Odd: true}, {Text: "byte"}},
		"an open ⟨U+":          {{Text: "an open ⟨U+"}},
	} {
		got := visible.Marks(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		odd := strings.Contains(text, "⟨U+202E⟩") || len(want) > 1 || len(want) == 1 && want[0].Odd
		if visible.Odd(text) != odd {
			t.Errorf("%q: got odd %v, want %v", text, !odd, odd)
		}
	}
}
