package canon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawValue(t *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return drawNumber(t)
	case 4:
		a := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			a = append(a, drawValue(t, depth-1))
		}
		return a
	}
	m := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		m[rapid.String().Draw(t, "key")] = drawValue(t, depth-1)
	}
	return m
}

func drawNumber(t *rapid.T) json.Number {
	n := rapid.Int64Range(-(1<<53)+1, 1<<53-1).Draw(t, "n")
	if rapid.Bool().Draw(t, "small") {
		n %= 10_000
	}
	s, reason := normalNumber(fmt.Sprintf("%de-%d", n, rapid.IntRange(0, 20).Draw(t, "scale")))
	if reason != "" {
		t.Fatalf("%d: got %s, want a number", n, reason)
	}
	return json.Number(s)
}

// spell writes v in some legal way: any member order, any white space, any escape, any spelling of a number.
func spell(t *rapid.T, b *bytes.Buffer, v any) {
	b.WriteString(rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space"))
	switch v := v.(type) {
	case json.Number:
		b.WriteString(respell(t, string(v)))
	case string:
		spellString(t, b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			spell(t, b, e)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, k := range rapid.Permutation(slices.Sorted(maps.Keys(v))).Draw(t, "order") {
			if i > 0 {
				b.WriteByte(',')
			}
			spellString(t, b, k)
			b.WriteString(" :")
			spell(t, b, v[k])
		}
		b.WriteByte('}')
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
}

func spellString(t *rapid.T, b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r > 0xFFFF:
			b.WriteRune(r)
		case r < 0x20 || r == '"' || r == '\\' || rapid.Bool().Draw(t, "escape"):
			fmt.Fprintf(b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func respell(t *rapid.T, n string) string {
	switch rapid.IntRange(0, 3).Draw(t, "spelling") {
	case 0:
		return n + "e0"
	case 1:
		if strings.Contains(n, ".") {
			return n + "00"
		}
		return n + ".00E+00"
	case 2:
		sign, rest := "", n
		if strings.HasPrefix(n, "-") {
			sign, rest = "-", n[1:]
		}
		whole, frac, _ := strings.Cut(rest, ".")
		digits := strings.TrimLeft(whole+frac, "0")
		if digits == "" {
			digits = "0"
		}
		return fmt.Sprintf("%s%se-%d", sign, digits, len(frac))
	}
	return n
}

func TestSameContentSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 4)
		want, err := Marshal(v)
		if err != nil {
			t.Fatalf("Marshal: got %v, want no error", err)
		}
		var b bytes.Buffer
		spell(t, &b, v)
		back, err := Parse(b.Bytes(), Limits{})
		if err != nil {
			t.Fatalf("Parse(%s): got %v, want no error", b.Bytes(), err)
		}
		if d := cmp.Diff(v, back); d != "" {
			t.Fatalf("Parse(%s) (-want +got):\n%s", b.Bytes(), d)
		}
		got, err := Marshal(back)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %s, %v, want %s", got, err, want)
		}
	})
}

func TestKeysSortLikeUTF16(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		want := slices.Compare(utf16Of(a), utf16Of(b))
		if got := compareUTF16(a, b); sign(got) != sign(want) {
			t.Fatalf("compareUTF16(%q, %q): got %d, want %d", a, b, got, want)
		}
	})
}

func sign(n int) int {
	return max(-1, min(1, n))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,-0,3e5,"\ud83d\ude00"],"b":{"c":null}}`, `{"a":1,"a":2}`, `"\ud800"`, `[NaN]`,
		`1e400`, `9007199254740993`, "\"\xed\xa0\x80\"", `[[[[]]]]`, `{"":""}`, `tru`, `"\u00"`, "\ufeff1", `{"\r":1,"😀":2,"` + "\ufb33" + `":3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := Parse(raw, Limits{})
		if err != nil {
			if reasonOf(err) == "" {
				t.Fatalf("got %T, want *Error", err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted %q, which encoding/json refuses", raw)
		}
		first, err := Marshal(v)
		if err != nil {
			t.Fatalf("Marshal: got %v, want no error", err)
		}
		again, err := Canonical(first, Limits{MaxBytes: 8 * DefaultMaxBytes})
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("got %s, %v, want %s", again, err, first)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	raw := []byte(`{"campaign_id":"c-1042","new_daily_budget_krw":300000,"expect_campaign_name":"秋の特価_検索","reason":"weekend traffic is up, CPA is stable"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(raw, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func utf16Of(s string) []uint16 { return utf16.Encode([]rune(s)) }
