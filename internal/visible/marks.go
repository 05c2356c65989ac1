package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Piece is a part of a text as Marks shows it. Odd says that a reader is to look at it.
type Piece struct {
	Text string
	Odd  bool
}

// Marks cuts a text into what reads as it is and what a reader would miss: each hidden character as its code, and, in a word of mixed
// scripts, each letter of the fewer with its code beside it ("а⟨U+0430⟩dmin"). Codes that Text has written already are odd as well.
// The pieces' texts, but for codes, are the text.
func Marks(s string) []Piece {
	if s != "" && !strings.Contains(s, "⟨") && !HasHidden(s) && len(MixedScript(s)) == 0 {
		return []Piece{{Text: s}} // nearly every text
	}
	var out []Piece
	add := func(text string, odd bool) {
		if n := len(out); n > 0 && out[n-1].Odd == odd {
			out[n-1].Text += text
			return
		}
		out = append(out, Piece{text, odd})
	}
	minority := strangers(s)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		code := codeAt(s[i:])
		switch {
		case code != "":
			add(code, true)
			size = len(code)
		case r == utf8.RuneError && size == 1, hidden(r):
			add(Text(s[i:i+size]), true)
		case minority[i]:
			add(fmt.Sprintf("%c⟨U+%04X⟩", r, r), true)
		default:
			add(s[i:i+size], false)
		}
		i += size
	}
	return out
}

// Odd reports whether Marks would mark anything in s.
func Odd(s string) bool {
	return slices.ContainsFunc(Marks(s), func(p Piece) bool { return p.Odd })
}

// codeAt is the code that Text has written at the beginning of s, empty if there is none.
func codeAt(s string) string {
	if !strings.HasPrefix(s, "⟨U+") && !strings.HasPrefix(s, "⟨0x") {
		return ""
	}
	end := strings.Index(s, "⟩")
	if end < 0 || end > len("⟨U+10FFFF") {
		return ""
	}
	return s[:end+len("⟩")]
}

// strangers are the places of letters, in words of mixed scripts, whose script has fewer letters there; among equals Latin is at home.
func strangers(s string) map[int]bool {
	places := map[int]bool{}
	begin := -1
	for i, r := range s + " " {
		switch in := wordRune(r); {
		case in && begin < 0:
			begin = i
		case !in && begin >= 0:
			strangersIn(s[begin:i], begin, places)
			begin = -1
		}
	}
	return places
}

func strangersIn(word string, at int, places map[int]bool) {
	if scripts(word) < 2 {
		return
	}
	home, most := unicode.Latin, 0
	for _, table := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek} {
		n := 0
		for _, r := range word {
			if unicode.Is(table, r) {
				n++
			}
		}
		if n > most {
			home, most = table, n
		}
	}
	for i, r := range word {
		if unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek) && !unicode.Is(home, r) {
			places[at+i] = true
		}
	}
}
