package canon

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, in string
		reason   Reason
		path     string
	}{
		{"empty", "", Syntax, ""},
		{"white space only", " \n", Syntax, ""},
		{"byte order mark", "\ufeff{}", Syntax, ""},
		{"NUL", "\x00", Syntax, ""},
		{"trailing comma in object", `{"a":1,}`, Syntax, ""},
		{"trailing comma in array", `[1,]`, Syntax, "/1"},
		{"unquoted key", `{a:1}`, Syntax, ""},
		{"single quotes", `{'a':1}`, Syntax, ""},
		{"comment", `{/* */}`, Syntax, ""},
		{"unclosed object", `{"a":1`, Syntax, ""},
		{"unclosed string", `{"a":"b`, Syntax, "/a"},
		{"raw newline in string", "\"a\nb\"", Syntax, ""},
		{"unknown escape", `"\x41"`, Syntax, ""},
		{"short escape", `"\u12"`, Syntax, ""},
		{"lone backslash", `"\`, Syntax, ""},
		{"capital literal", `{"a":True}`, Syntax, "/a"},
		{"relative word", `{"a":half}`, Syntax, "/a"},

		{"second value", `{} {}`, TrailingData, ""},
		{"garbage after", `1 x`, TrailingData, ""},

		{"duplicate key", `{"a":1,"a":1}`, DuplicateKey, "/a"},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, DuplicateKey, "/a"},
		{"duplicate deep", `{"x":[0,{"b~/c":1,"b~/c":2}]}`, DuplicateKey, "/x/1/b~0~1c"},

		{"broken UTF-8", "{\"a\":\"\xff\"}", InvalidUTF8, "/a"},
		{"overlong UTF-8", "\"\xc0\xaf\"", InvalidUTF8, ""},
		{"UTF-8 surrogate", "\"\xed\xa0\x80\"", InvalidUTF8, ""},
		{"lone high surrogate", `"\ud800"`, InvalidUTF8, ""},
		{"lone low surrogate", `"\udc00x"`, InvalidUTF8, ""},
		{"high surrogate then letter", `"\ud800\u0041"`, InvalidUTF8, ""},
		{"broken UTF-8 in a key", "{\"\xff\":1}", InvalidUTF8, ""},

		{"NaN", `{"a":NaN}`, InvalidNumber, "/a"},
		{"nan", `nan`, InvalidNumber, ""},
		{"Infinity", `[Infinity]`, InvalidNumber, "/0"},
		{"minus Infinity", `-Infinity`, InvalidNumber, ""},
		{"plus sign", `+1`, InvalidNumber, ""},
		{"percent-like word", `+10pct`, InvalidNumber, ""},
		{"leading zero", `01`, InvalidNumber, ""},
		{"minus leading zero", `-01`, InvalidNumber, ""},
		{"no whole part", `.5`, InvalidNumber, ""},
		{"no fraction", `1.`, InvalidNumber, ""},
		{"no exponent", `1e`, InvalidNumber, ""},
		{"two exponent signs", `1e-+5`, InvalidNumber, ""},
		{"two exponent signs reversed", `1e+-5`, InvalidNumber, ""},
		{"hexadecimal", `0x10`, InvalidNumber, ""},
		{"underscore", `1_000`, InvalidNumber, ""},
		{"minus alone", `-`, InvalidNumber, ""},
		{"two points", `1.2.3`, InvalidNumber, ""},

		{"2^53", `9007199254740992`, NumberTooLarge, ""},
		{"2^53+1", `{"budget":9007199254740993}`, NumberTooLarge, "/budget"},
		{"minus 2^53", `-9007199254740992`, NumberTooLarge, ""},
		{"2^53 as a decimal", `9007199254740992.0`, NumberTooLarge, ""},
		{"above the limit by a fraction", `9007199254740991.5`, NumberTooLarge, ""},
		{"exponent integer", `1e16`, NumberTooLarge, ""},
		{"1e400", `1e400`, NumberTooLarge, ""},
		{"1e-400", `1e-400`, NumberTooLarge, ""},
		{"1e-100", `1e-100`, NumberTooLarge, ""},
		{"huge exponent", `1e999999999999999999999`, NumberTooLarge, ""},
		{"zero with a huge exponent", `0e999999999`, NumberTooLarge, ""},
		{"thousands of digits", strings.Repeat("1", 5000), NumberTooLarge, ""},
		{"thousands of decimals", "0." + strings.Repeat("1", 5000), NumberTooLarge, ""},
		{"35 decimals", "0." + strings.Repeat("1", 35), NumberTooLarge, ""},

		{"too deep", deep(33), TooDeep, strings.Repeat("/0", 32)},
		{"very deep", strings.Repeat("[", 500_000), TooDeep, strings.Repeat("/0", 32)},
		{"too large", `"` + strings.Repeat("a", DefaultMaxBytes) + `"`, TooLarge, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, err := Parse([]byte(tt.in), Limits{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, %v, want an *Error", v, err)
			}
			if e.Reason != tt.reason || e.Path != tt.path {
				t.Errorf("got %s at %q, want %s at %q", e.Reason, e.Path, tt.reason, tt.path)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	n := func(s string) json.Number { return json.Number(s) }
	tests := []struct {
		in   string
		want any
	}{
		{` {"a" : [ 1 , true, false ,null ] } `, map[string]any{"a": []any{n("1"), true, false, nil}}},
		{`{"a":1,"A":2}`, map[string]any{"a": n("1"), "A": n("2")}},
		{`{}`, map[string]any{}},
		{`[]`, []any{}},
		{`"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00秋"`, "a\"\\/\b\f\n\r\té😀秋"},
		{`9007199254740991`, n("9007199254740991")},
		{`-9007199254740991`, n("-9007199254740991")},
		{`3e5`, n("300000")},
		{`300000.0`, n("300000")},
		{`0.3E+6`, n("300000")},
		{`3000000000e-4`, n("300000")},
		{`19.90`, n("19.9")},
		{`1990e-2`, n("19.9")},
		{`-0`, n("0")},
		{`-0.00`, n("0")},
		{`0e5`, n("0")},
		{`-0.5`, n("-0.5")},
		{`1e-34`, n("0." + strings.Repeat("0", 33) + "1")},
		{`9007199254740990.9`, n("9007199254740990.9")},
	}
	for _, tt := range tests {
		got, err := Parse([]byte(tt.in), Limits{})
		if err != nil {
			t.Errorf("Parse(%s): got %v, want no error", tt.in, err)
		} else if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("Parse(%s) (-want +got):\n%s", tt.in, d)
		}
	}
}

func TestParseAcceptsTheFullDepth(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("[", DefaultMaxDepth) + strings.Repeat("]", DefaultMaxDepth)
	if got, err := Canonical([]byte(in), Limits{}); err != nil || string(got) != in {
		t.Errorf("got %s, %v, want %s", got, err, in)
	}
}

func TestLimitsAreAsked(t *testing.T) {
	t.Parallel()
	if _, err := Parse([]byte(`[[1]]`), Limits{MaxDepth: 1}); reasonOf(err) != TooDeep {
		t.Errorf("got %v, want too_deep", err)
	}
	if _, err := Parse([]byte(`[[1]]`), Limits{MaxDepth: 2, MaxBytes: 5}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	_, err := Parse([]byte(`[[1]]`), Limits{MaxBytes: 4})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if errors.Is(err, &Error{Reason: TooDeep}) {
		t.Errorf("too_large matches too_deep")
	}
	if _, err := Parse([]byte(strings.Repeat("[", 300)), Limits{MaxDepth: 1 << 30}); reasonOf(err) != TooDeep {
		t.Errorf("got %v, want the ceiling to hold", err)
	}
}

func reasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func TestErrorPathIsBounded(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`{"`+strings.Repeat("長", 10_000)+`":NaN}`), Limits{})
	var e *Error
	if !errors.As(err, &e) || len(e.Path) > 300 || !strings.HasSuffix(e.Path, "…") {
		t.Errorf("got %v, want a cut path", err)
	}
}

func TestMarshalRFC8785(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"member order (RFC 8785 §3.2.3)",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
				`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis",` +
				`"€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`},
		{"strings (RFC 8785 §3.2.2)",
			`{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"all short escapes", `"\b\t\n\f\r\u0000\u001f\u007f\u2028<>&"`, `"\b\t\n\f\r\u0000\u001f` + "\u007f\u2028" + `<>&"`},
		{"prefix and case", `{"ab":1,"a":2,"B":3,"":4}`, `{"":4,"B":3,"a":2,"ab":1}`},
		{"two outside the BMP", `{"\ud83d\ude01":1,"\ud83d\ude00":2,"\uffff":3}`, `{"😀":2,"😁":1,"` + "\uffff" + `":3}`},
		{"nested", `{"b":[{"d":1e2,"c":0.10}],"a":{}}`, `{"a":{},"b":[{"c":0.1,"d":100}]}`},
	}
	for _, tt := range tests {
		got, err := Canonical([]byte(tt.in), Limits{})
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

func TestMarshalGoValues(t *testing.T) {
	t.Parallel()
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	tests := []struct {
		name   string
		in     any
		want   string
		reason Reason
	}{
		{"int kinds", []any{1, int64(-2), uint64(3), json.Number("4e0")}, `[1,-2,3,4]`, ""},
		{"strings", []string{"b", "a"}, `["b","a"]`, ""},
		{"raw", json.RawMessage(` {"b":1.0,"a":2} `), `{"a":2,"b":1}`, ""},
		{"raw duplicate", json.RawMessage(`{"a":1,"a":1}`), "", DuplicateKey},
		{"float64", 19.99, "", Unsupported},
		{"float in a map", map[string]any{"a": []any{float32(1)}}, "", Unsupported},
		{"struct", struct{}{}, "", Unsupported},
		{"int64 above 2^53-1", int64(1) << 53, "", NumberTooLarge},
		{"uint64 max", ^uint64(0), "", NumberTooLarge},
		{"number that is none", json.Number("1,000"), "", InvalidNumber},
		{"empty number", json.Number(""), "", InvalidNumber},
		{"invalid UTF-8", "\xff", "", InvalidUTF8},
		{"invalid UTF-8 key", map[string]any{"\xff": 1}, "", InvalidUTF8},
		{"cycle", cyclic, "", TooDeep},
	}
	for _, tt := range tests {
		got, err := Marshal(tt.in)
		if string(got) != tt.want || reasonOf(err) != tt.reason {
			t.Errorf("%s: got %s, %v, want %s, %q", tt.name, got, err, tt.want, tt.reason)
		}
	}
}

func TestMarshalErrorNamesThePlace(t *testing.T) {
	t.Parallel()
	_, err := Marshal(map[string]any{"a": []any{1, 2.5}})
	var e *Error
	if !errors.As(err, &e) || e.Path != "/a/1" {
		t.Errorf("got %v, want path /a/1", err)
	}
}

func TestFromStruct(t *testing.T) {
	t.Parallel()
	type inner struct {
		When   Digest   `json:"when"`
		Labels []string `json:"labels,omitempty"`
		hidden float64
	}
	type outer struct {
		B  int64           `json:"b"`
		A  *inner          `json:"a"`
		R  json.RawMessage `json:"r"`
		No float64         `json:"-"`
	}
	got, err := FromStruct(outer{B: 5, A: &inner{Labels: []string{"<x>"}, hidden: 1}, R: json.RawMessage(`{"z":1e1}`), No: 2})
	want := map[string]any{"b": json.Number("5"), "r": map[string]any{"z": json.Number("10")},
		"a": map[string]any{"when": strings.Repeat("0", 64), "labels": []any{"<x>"}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("got %v (-want +got):\n%s", err, d)
	}
	for name, bad := range map[string]any{
		"float":           struct{ F float64 }{1.5},
		"float in any":    map[string]any{"a": []any{1.5}},
		"invalid UTF-8":   struct{ S []string }{[]string{"\xff"}},
		"invalid map key": map[string]int{"\xff": 1},
		"channel":         make(chan int),
		"big integer":     struct{ N int64 }{1 << 60},
		"raw duplicates":  json.RawMessage(`{"a":1,"a":2}`),
	} {
		if v, err := FromStruct(bad); reasonOf(err) == "" {
			t.Errorf("%s: got %v, %v, want an *Error", name, v, err)
		}
	}
}

// 9007199254740993 is refused as a number; as a string it and its neighbour keep every digit and differ in digest.
func TestBigIDsAsStrings(t *testing.T) {
	t.Parallel()
	a, errA := Canonical([]byte(`{"id":"9007199254740993"}`), Limits{})
	b, errB := Canonical([]byte(`{"id":"9007199254740992"}`), Limits{})
	if errA != nil || errB != nil || string(a) != `{"id":"9007199254740993"}` {
		t.Fatalf("got %s, %v, %v, want the ID as it was", a, errA, errB)
	}
	if Sum(a) == Sum(b) {
		t.Errorf("got one digest for two IDs")
	}
}

func TestDigestText(t *testing.T) {
	t.Parallel()
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2's example
	d := Sum([]byte("abc"))
	if d.String() != abc {
		t.Fatalf("got %s, want %s", d, abc)
	}
	if back, err := ParseDigest(abc); err != nil || back != d {
		t.Errorf("got %s, %v, want %s", back, err, d)
	}
	for _, bad := range []string{"", abc[:63], abc + "0", strings.ToUpper(abc), "g" + abc[1:]} {
		if got, err := ParseDigest(bad); !errors.Is(err, ErrDigest) || !got.IsZero() {
			t.Errorf("ParseDigest(%q): got %s, %v, want ErrDigest", bad, got, err)
		}
	}
	raw, err := json.Marshal(map[string]Digest{"d": d})
	if want := `{"d":"` + abc + `"}`; err != nil || string(raw) != want {
		t.Errorf("got %s, %v, want %s", raw, err, want)
	}
	one, err := SumOf(map[string]any{"a": json.Number("1.0")})
	if err != nil || one != Sum([]byte(`{"a":1}`)) {
		t.Errorf("SumOf: got %s, %v, want the digest of the canonical form", one, err)
	}
}
