package visible

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"right-to-left override", "bid\u202Etxt", "bid⟨U+202E⟩txt"},
		{"embedding and pop", "\u202A\u202B\u202C\u202D", "⟨U+202A⟩⟨U+202B⟩⟨U+202C⟩⟨U+202D⟩"},
		{"isolates", "\u2066\u2067\u2068\u2069", "⟨U+2066⟩⟨U+2067⟩⟨U+2068⟩⟨U+2069⟩"},
		{"bidi marks", "\u200E\u200F\u061C", "⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"},
		{"zero width", "a\u200Bb\u200Cc\u200Dd\u2060e\uFEFF", "a⟨U+200B⟩b⟨U+200C⟩c⟨U+200D⟩d⟨U+2060⟩e⟨U+FEFF⟩"},
		{"soft hyphen", "ad\u00ADmin", "ad⟨U+00AD⟩min"},
		{"newline and tab", "a\nb\tc\r", "a⟨U+000A⟩b⟨U+0009⟩c⟨U+000D⟩"},
		{"escape and NUL", "\x1b[31m\x00\x7f", "⟨U+001B⟩[31m⟨U+0000⟩⟨U+007F⟩"},
		{"C1 and NEL", "\u0085\u009b", "⟨U+0085⟩⟨U+009B⟩"},
		{"line and paragraph separators", "\u2028\u2029", "⟨U+2028⟩⟨U+2029⟩"},
		{"Hangul fillers", "\u3164\u115F\uFFA0", "⟨U+3164⟩⟨U+115F⟩⟨U+FFA0⟩"},
		{"variation selectors", "葛\U000E0100\uFE0F", "葛⟨U+E0100⟩⟨U+FE0F⟩"},
		{"tag characters", "a\U000E0041", "a⟨U+E0041⟩"},
		{"private use", "\uE000\U000F0000", "⟨U+E000⟩⟨U+F0000⟩"},
		{"Braille blank", "\u2800", "⟨U+2800⟩"},
		{"broken UTF-8", "a\xffb\xe3\x81", "a⟨0xFF⟩b⟨0xE3⟩⟨0x81⟩"},
		{"UTF-8 surrogate", "\xed\xa0\x80", "⟨0xED⟩⟨0xA0⟩⟨0x80⟩"},
		{"an honest replacement character", "a\uFFFDb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		if got := Text(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got, want := HasHidden(tt.in), tt.in != tt.want; got != want {
			t.Errorf("%s: HasHidden: got %t, want %t", tt.name, got, want)
		}
	}
	for _, same := range []string{"", "秋の特価_検索", "봄 세일 검색", "Spring Sale – 50% (KR)", "전각　공백", "e\u0301", "😀", "مرحبا", "nb\u00A0sp", "<b>&amp;"} {
		if got := Text(same); got != same || HasHidden(same) {
			t.Errorf("got %q, want %q untouched", got, same)
		}
	}
}

func TestTextLeavesNothingHidden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a秋\u202E\u200B\n\uE000"))),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "in")
		out := Text(in)
		if HasHidden(out) || !utf8.ValidString(out) {
			t.Fatalf("%q: got %q, want nothing hidden left", in, out)
		}
		if Text(out) != out {
			t.Fatalf("%q: got another text the second time", in)
		}
	})
}

func TestConfusable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, a, b string
		want       bool
	}{
		{"equal", "秋の特価_検索", "秋の特価_検索", true},
		{"extended at a separator, ja", "秋の特価_検索", "秋の特価_検索_再訪問", true},
		{"extended at a separator, ko", "봄세일_검색", "봄세일_검색_재방문", true},
		{"extended at a full-width separator", "秋の特価＿検索", "秋の特価_検索（再訪問）", true},
		{"extended by a bracket", "Spring Sale", "Spring Sale (KR)", true},
		{"extended inside a word", "秋の特価", "秋の特価品限定_検索_新規", false},
		{"other separators, ja", "秋の特価 検索", "秋の特価_検索", true},
		{"ideographic space, ja", "秋の特価　検索", "秋の特価・検索", true},
		{"case", "SPRING_SALE", "spring-sale", true},
		{"full width", "ＳＰＲＩＮＧ", "spring", true},
		{"half-width kana", "ﾊﾞｰｹﾞﾝ", "バーゲン", true},
		{"decomposed kana", "ハ\u3099ーケ\u3099ン", "バーゲン", true},
		{"decomposed Hangul", "\u1107\u1169\u11B7", "봄", true},
		{"zero width inside", "ad\u200Bmin", "admin", true},
		{"bidi inside", "\u202Eadmin", "admin", true},
		{"Cyrillic о", "оps", "ops", true},
		{"all Cyrillic", "ЅСОРЕ", "SCOPE", true},
		{"an accent", "Salé", "Sale", true},
		{"a diaeresis", "naïve", "naive", true},
		{"Armenian", "քuick", "quick", true},
		{"voiced kana are other letters", "かき", "がき", false},
		{"Greek", "ΟΡΤΙΚΑ", "OPTIKA", true},
		{"zero and O", "PR0MO", "PROMO", true},
		{"one, l and I", "SAL1", "SALI", true},
		{"rn and m", "modern", "modem", true},
		{"hiragana and katakana he", "へア", "ヘア", true},
		{"kanji and katakana", "力メラ", "カメラ", true},
		{"long mark and kanji one", "サ一バ", "サーバ", true},
		{"small kana", "ロック", "ロツク", true},
		{"digits only, en", "Sale 9", "Sale 10", true},
		{"digits only, ja", "第1弾", "第２弾", true},
		{"digits only, ko", "3월 세일", "12월 세일", true},
		{"years", "Q4_2024", "Q4_2025", true},
		{"one changed, ja", "秋の特価_検索", "春の特価_検索", true},
		{"one changed, ko", "봄세일_검색광고", "봄세일_검색광구", true},
		{"one added", "Spring", "Springs", true},
		{"one dropped", "Campaign", "Campagn", true},
		{"neighbours swapped", "Campaign", "Campaing", true},
		{"letters at the end", "campaign_A", "campaign_B", true},

		{"short, one changed, ja", "春の特価", "秋の特価", false},
		{"short, one changed, ko", "봄세일", "밤세일", false},
		{"short, one changed, en", "cat", "cap", false},
		{"different, ja", "秋の特価_検索", "冬の福袋_動画", false},
		{"different, ko", "봄세일_검색", "여름휴가_동영상", false},
		{"different, en", "Brand awareness", "Retargeting", false},
		{"two changed", "秋の特価_検索", "春の新作_検索", false},
		{"same words, other order", "検索_秋の特価", "秋の特価_検索", false},
		{"percentages are no separators", "Sale%", "Sale", false},
		{"nothing to see on one side", "\u200B", "Sale", false},
		{"nothing to see on both", "\u200B", "\u3164", true},
		{"empty", "", "Sale", false},
	}
	for _, tt := range tests {
		if got := Confusable(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: Confusable(%q, %q): got %t, want %t", tt.name, tt.a, tt.b, got, tt.want)
		}
		if got := Confusable(tt.b, tt.a); got != tt.want {
			t.Errorf("%s, turned round: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestConfusableTakesAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if Confusable(a, b) != Confusable(b, a) {
			t.Fatalf("%q, %q: got two answers", a, b)
		}
		if !Confusable(a, a+"\u200B") {
			t.Fatalf("%q: got no warning of its hidden twin", a)
		}
	})
}

func TestMixedScript(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want []string
	}{
		{"аdmin team", []string{"аdmin"}}, // Cyrillic а
		{"Tanaka Tarο", []string{"Tarο"}}, // Greek ο
		{"ad\u200Bмin_x", []string{"ad\u200Bмin"}},
		{"сорe, ok, рaypal", []string{"сорe", "рaypal"}},
		{"Москва London Αθήνα", nil},
		{"秋のSale_検索", nil},
		{"봄Sale", nil},
		{"admin", nil},
		{"", nil},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, MixedScript(tt.in)); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, d)
		}
	}
}
