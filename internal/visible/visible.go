// Package visible shows what a name would hide: characters that draw nothing or reorder their neighbours, letters
// borrowed from another script, and names so alike that a reader takes one for the other.
//
// It promises that Text changes nothing but the hidden characters, and that equal answers come from equal input (no
// locale, no dictionary). Confusable prefers a warning too many to one too few: it is shown to a person beside both
// names, and it refuses nothing by itself.
//
// It does not promise every look-alike of Unicode's own tables, only those in the scripts our names are written in,
// and it does not escape for HTML or a terminal.
//
// Start with Text for showing, Confusable for warning.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text puts ⟨U+202E⟩ in the place of each hidden character and ⟨0xFF⟩ in the place of each byte that is no UTF-8,
// so that a name can be read for what it is. Newline and tab are shown too: a name has neither.
func Text(s string) string {
	if !HasHidden(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟨0x%02X⟩", s[i])
		case hidden(r):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// HasHidden reports whether Text would change s.
func HasHidden(s string) bool {
	return !utf8.ValidString(s) || strings.IndexFunc(s, hidden) >= 0
}

// blank lists what draws nothing although its category says letter, mark or symbol.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180B, Hi: 0x180F, Stride: 1}, // Mongolian selectors
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille blank
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xFDD0, Hi: 0xFDEF, Stride: 1}, // noncharacters
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1}, // variation selectors
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // half-width Hangul filler
		{Lo: 0xFFFE, Hi: 0xFFFF, Stride: 1}, // noncharacters
	},
	R32: []unicode.Range32{
		{Lo: 0xE0000, Hi: 0xE0FFF, Stride: 1}, // tags and more variation selectors
	},
}

// hidden covers controls (Cc: newline, tab, escape, NEL), format characters (Cf: bidi, zero-width, soft hyphen, byte
// order mark), line and paragraph separators, private use (no agreed look), and the blanks.
func hidden(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, blank)
}

// MixedScript returns, in order, the words of s that mix Latin, Cyrillic or Greek letters with one another: "аdmin"
// with a Cyrillic а. Names in one script each, and Latin beside Japanese or Korean, are ordinary and not returned.
func MixedScript(s string) []string {
	var mixed []string
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !wordRune(r) }) {
		if scripts(word) > 1 {
			mixed = append(mixed, word)
		}
	}
	return mixed
}

// wordRune keeps hidden characters inside a word: a zero-width space between two letters divides nothing that a
// reader can see.
func wordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N) || hidden(r) && !unicode.IsSpace(r)
}

func scripts(word string) int {
	n := 0
	for _, table := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek} {
		if strings.IndexFunc(word, func(r rune) bool { return unicode.Is(table, r) }) >= 0 {
			n++
		}
	}
	return n
}
