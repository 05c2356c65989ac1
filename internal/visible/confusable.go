package visible

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// minForOneEdit is how long names must be before one changed character counts as near-identical: among short names
// (Q1, Q2; 春, 秋) one character is the whole difference that people look for.
const minForOneEdit = 6

// Confusable reports whether a reader could take a for b. It is symmetric, and true for equal names: two targets
// with one name are the worst case. The rules, any of which suffices:
//
//  1. Same skeleton: equal after removing hidden characters, NFKC (full-width forms, half-width kana, ligatures),
//     case folding, dropping accents, making every run of separators one, and replacing look-alikes (Cyrillic о,
//     Greek ο, digit 0 and Latin o; 1, l and I; rn and m; へ and ヘ; カ and 力).
//  2. One is the other with more after a separator: 秋の特価_検索 and 秋の特価_検索_再訪問.
//  3. They differ only in digits: "Sale 9" and "Sale 10", 第1弾 and 第2弾.
//  4. One character changed, added, dropped, or two neighbours swapped, where the longer skeleton has at least 6.
func Confusable(a, b string) bool {
	if a == b {
		return true
	}
	plainA, plainB := plain(a), plain(b)
	if plainA == "" || plainB == "" {
		return plainA == plainB
	}
	skelA, skelB := lookAlikes.Replace(plainA), lookAlikes.Replace(plainB)
	return skelA == skelB || extends(skelA, skelB) || extends(skelB, skelA) ||
		digitsOut(plainA) == digitsOut(plainB) || oneEdit(skelA, skelB)
}

const separator = '_'

// plain is the name without what a reader does not see or weigh: hidden characters, width, case, which separator.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if hidden(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = withoutAccents(norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))))
	return strings.Join(strings.FieldsFunc(s, isSeparator), string(separator))
}

// withoutAccents drops the accents of Latin, Greek and Cyrillic letters, which a reader in a hurry does not weigh. The marks of
// other scripts make other letters (か and が) and stay.
func withoutAccents(s string) string {
	var b strings.Builder
	base := rune(0)
	for _, r := range norm.NFD.String(s) {
		mark := unicode.Is(unicode.Mn, r)
		if mark && unicode.In(base, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
			continue
		}
		if !mark {
			base = r
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

// isSeparator takes spaces, dashes, brackets and other punctuation as one; + and % are symbols and stay.
func isSeparator(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsPunct(r) && r != '%' && r != '&' && r != '#' || r == '|' || r == '~'
}

// extends reports whether long is short with more after a separator.
func extends(long, short string) bool {
	rest, ok := strings.CutPrefix(long, short)
	return ok && strings.HasPrefix(rest, string(separator))
}

// digitsOut puts one mark in the place of each run of digits.
func digitsOut(s string) string {
	var b strings.Builder
	inDigits := false
	for _, r := range s {
		digit := unicode.IsDigit(r)
		switch {
		case !digit:
			b.WriteRune(r)
		case !inDigits:
			b.WriteByte('0')
		}
		inDigits = digit
	}
	return b.String()
}

// oneEdit reports whether at most one edit lies between a and b: what is left between their common beginning and
// end is at most one character on each side, or two that changed places.
func oneEdit(a, b string) bool {
	if max(utf8.RuneCountInString(a), utf8.RuneCountInString(b)) < minForOneEdit {
		return false
	}
	x, y := []rune(a), []rune(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	swapped := len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
	return len(x) <= 1 && len(y) <= 1 || swapped
}

// lookAlikes maps folded text to one prototype per shape. It is our own short table: pairs that are the same or
// nearly so in common sans-serif fonts, in lower or upper case (folding has made them one), in the scripts that our
// names use.
var lookAlikes = strings.NewReplacer(
	// two characters that read as one
	"rn", "m", "vv", "w",
	// digits and Latin
	"0", "o", "1", "l", "i", "l", "ı", "l", "5", "s", "ɑ", "a", "ɡ", "g",
	// Cyrillic (upper-case twins В К М Н Т included)
	"а", "a", "в", "b", "е", "e", "ѕ", "s", "і", "l", "ї", "l", "ј", "j", "к", "k", "м", "m", "н", "h", "о", "o",
	"р", "p", "с", "c", "т", "t", "у", "y", "х", "x", "һ", "h", "ԁ", "d", "ԛ", "q", "ԝ", "w", "ӏ", "l", "ё", "ë", "з", "3",
	// Greek (upper-case twins Α Β Ε Ζ Η Ι Κ Μ Ν Ο Ρ Τ Υ Χ included)
	"α", "a", "β", "b", "γ", "y", "ε", "e", "ζ", "z", "η", "h", "ι", "l", "κ", "k", "μ", "m", "ν", "v", "ο", "o",
	"ρ", "p", "τ", "t", "υ", "y", "χ", "x", "ω", "w", "ϲ", "c", "ϳ", "j",
	// Armenian
	"օ", "o", "ք", "q", "ո", "n", "ս", "u", "հ", "h", "ց", "g", "ա", "w",
	// kana that are the same in both syllabaries
	"へ", "ヘ", "べ", "ベ", "ぺ", "ペ", "り", "リ",
	// katakana and kanji
	"力", "カ", "口", "ロ", "囗", "ロ", "二", "ニ", "八", "ハ", "工", "エ", "夕", "タ", "卜", "ト", "才", "オ", "千", "チ",
	"三", "ミ", "一", "ー",
	// small kana beside full ones
	"ァ", "ア", "ィ", "イ", "ゥ", "ウ", "ェ", "エ", "ォ", "オ", "ッ", "ツ", "ャ", "ヤ", "ュ", "ユ", "ョ", "ヨ",
	"っ", "つ", "ゃ", "や", "ゅ", "ゆ", "ょ", "よ",
)
