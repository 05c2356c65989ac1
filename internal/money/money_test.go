package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in    string
		cur   Currency
		minor int64
		err   error
	}{
		{"5000", "JPY", 5000, nil},
		{"300000", "KRW", 300000, nil},
		{"19.99", "USD", 1999, nil},
		{"19.9", "USD", 1990, nil},
		{"19", "USD", 1900, nil},
		{"0.01", "USD", 1, nil},
		{"-0.01", "USD", -1, nil},
		{"-0", "USD", 0, nil},
		{"1.234", "KWD", 1234, nil},
		{"1", "KWD", 1000, nil},
		{"92233720368547758.07", "USD", math.MaxInt64, nil},
		{"-92233720368547758.08", "USD", math.MinInt64, nil},
		{"9223372036854775807", "KRW", math.MaxInt64, nil},

		{"92233720368547758.08", "USD", 0, ErrOutOfRange},
		{"9223372036854775808", "JPY", 0, ErrOutOfRange},
		{"99999999999999999999999999999999", "JPY", 0, ErrOutOfRange},
		{"5000.00", "JPY", 0, ErrTooManyDecimals},
		{"300000.5", "KRW", 0, ErrTooManyDecimals},
		{"19.999", "USD", 0, ErrTooManyDecimals},
		{"19.990", "USD", 0, ErrTooManyDecimals},
		{"1.2345", "KWD", 0, ErrTooManyDecimals},
		{"", "USD", 0, ErrNotDecimal},
		{"-", "USD", 0, ErrNotDecimal},
		{"--1", "USD", 0, ErrNotDecimal},
		{"+5", "USD", 0, ErrNotDecimal},
		{"+10%", "USD", 0, ErrNotDecimal},
		{"double", "USD", 0, ErrNotDecimal},
		{"1e3", "USD", 0, ErrNotDecimal},
		{"1,000", "USD", 0, ErrNotDecimal},
		{"1_000", "USD", 0, ErrNotDecimal},
		{" 5", "USD", 0, ErrNotDecimal},
		{"5 ", "USD", 0, ErrNotDecimal},
		{"007", "USD", 0, ErrNotDecimal},
		{".5", "USD", 0, ErrNotDecimal},
		{"5.", "USD", 0, ErrNotDecimal},
		{"1.2.3", "USD", 0, ErrNotDecimal},
		{"５０００", "JPY", 0, ErrNotDecimal},
		{"¥5000", "JPY", 0, ErrNotDecimal},
		{"NaN", "USD", 0, ErrNotDecimal},
		{"0x10", "USD", 0, ErrNotDecimal},
		{"5", "usd", 0, ErrUnknownCurrency},
		{"5", "", 0, ErrUnknownCurrency},
		{"5", "XYZ", 0, ErrUnknownCurrency},
		{"5", "US", 0, ErrUnknownCurrency},
	}
	for _, tt := range tests {
		got, err := Parse(tt.in, tt.cur)
		want := Amount{tt.minor, tt.cur}
		if tt.err != nil {
			want = Amount{}
		}
		if got != want || !errors.Is(err, tt.err) {
			t.Errorf("Parse(%q, %q): got %#v, %v, want %#v, %v", tt.in, tt.cur, got, err, want, tt.err)
		}
	}
}

func TestExponent(t *testing.T) {
	t.Parallel()
	for c, want := range map[Currency]int{"JPY": 0, "KRW": 0, "USD": 2, "EUR": 2, "KWD": 3, "BHD": 3, "CLF": 4, "ISK": 0, "IDR": 2} {
		if got, err := Exponent(c); err != nil || got != want {
			t.Errorf("Exponent(%s): got %d, %v, want %d", c, got, err, want)
		}
	}
	if c, err := ParseCurrency("KRW"); err != nil || c != "KRW" {
		t.Errorf("got %s, %v, want KRW", c, err)
	}
	if _, err := ParseCurrency("krw"); !errors.Is(err, ErrUnknownCurrency) {
		t.Errorf("got %v, want ErrUnknownCurrency", err)
	}
}

// Elsewhere 19.99 became 1998 on its way through a float.
func TestEveryCentRoundTrips(t *testing.T) {
	t.Parallel()
	for cents := int64(1); cents <= 10_000; cents++ {
		text := fmt.Sprintf("%d.%02d", cents/100, cents%100)
		a, err := Parse(text, "USD")
		if err != nil || a.Minor != cents || a.Decimal() != text {
			t.Fatalf("%s: got %d, %s, %v, want %d", text, a.Minor, a.Decimal(), err, cents)
		}
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Amount
		if err := json.Unmarshal(raw, &back); err != nil || back != a {
			t.Fatalf("%s: got %v, %v, want %v", raw, back, err, a)
		}
	}
}

// ¥5,000 was sent elsewhere as ¥500,000, by multiplying every currency by 100.
func TestZeroDecimalCurrencies(t *testing.T) {
	t.Parallel()
	for _, c := range []Currency{"JPY", "KRW"} {
		a, err := FromMajorInt(5000, c)
		if err != nil || a.Minor != 5000 || a.Decimal() != "5000" {
			t.Errorf("%s: got %d, %q, %v, want 5000", c, a.Minor, a.Decimal(), err)
		}
	}
	for c, want := range map[Currency]int64{"USD": 500, "KWD": 5000, "CLF": 50000} {
		if a, err := FromMajorInt(5, c); err != nil || a.Minor != want {
			t.Errorf("%s: got %d, %v, want %d", c, a.Minor, err, want)
		}
	}
	if _, err := FromMajorInt(math.MaxInt64/100+1, "USD"); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("got %v, want ErrOutOfRange", err)
	}
	if _, err := FromMajorInt(1, "ZZZ"); !errors.Is(err, ErrUnknownCurrency) {
		t.Errorf("got %v, want ErrUnknownCurrency", err)
	}
	if a, err := FromMinor(1999, "USD"); err != nil || a.Decimal() != "19.99" {
		t.Errorf("got %s, %v, want 19.99", a.Decimal(), err)
	}
	if _, err := FromMinor(1, "usd"); !errors.Is(err, ErrUnknownCurrency) {
		t.Errorf("got %v, want ErrUnknownCurrency", err)
	}
}

func TestDecimalRoundTripsEverywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := Amount{rapid.Int64().Draw(t, "minor"), rapid.SampledFrom([]Currency{"JPY", "USD", "KWD", "CLF"}).Draw(t, "cur")}
		if back, err := Parse(a.Decimal(), a.Currency); err != nil || back != a {
			t.Fatalf("%s: got %v, %v, want %#v", a.Decimal(), back, err, a)
		}
	})
}

func TestAddSubAgreeWithBigIntegers(t *testing.T) {
	t.Parallel()
	edge := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := Amount{edge.Draw(t, "a"), "KRW"}, Amount{edge.Draw(t, "b"), "KRW"}
		sum, err := a.Add(b)
		same(t, "sum", new(big.Int).Add(big.NewInt(a.Minor), big.NewInt(b.Minor)), sum, err)
		diff, err := a.Sub(b)
		same(t, "difference", new(big.Int).Sub(big.NewInt(a.Minor), big.NewInt(b.Minor)), diff, err)
	})
}

func same(t *rapid.T, what string, want *big.Int, got Amount, err error) {
	if !want.IsInt64() {
		if !errors.Is(err, ErrOutOfRange) {
			t.Fatalf("%s: got %d, %v, want ErrOutOfRange", what, got.Minor, err)
		}
	} else if err != nil || got.Minor != want.Int64() {
		t.Fatalf("%s: got %d, %v, want %s", what, got.Minor, err, want)
	}
}

func TestCurrenciesNeverMeet(t *testing.T) {
	t.Parallel()
	yen, usd := Amount{1000, "JPY"}, Amount{1000, "USD"}
	_, addErr := yen.Add(usd)
	_, subErr := yen.Sub(usd)
	_, cmpErr := yen.Cmp(usd)
	_, pctErr := Percent(yen, usd)
	for name, err := range map[string]error{"add": addErr, "sub": subErr, "cmp": cmpErr, "percent": pctErr} {
		if !errors.Is(err, ErrCurrencyMismatch) {
			t.Errorf("%s: got %v, want ErrCurrencyMismatch", name, err)
		}
	}
	if _, err := (Amount{}).Add(Amount{}); !errors.Is(err, ErrUnknownCurrency) {
		t.Errorf("got %v, want no sums without a currency", err)
	}
}

func TestCmp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b int64
		want int
	}{{1, 2, -1}, {2, 2, 0}, {3, 2, 1}, {math.MinInt64, math.MaxInt64, -1}} {
		if got, err := (Amount{tt.a, "USD"}).Cmp(Amount{tt.b, "USD"}); err != nil || got != tt.want {
			t.Errorf("%d, %d: got %d, %v, want %d", tt.a, tt.b, got, err, tt.want)
		}
	}
}

func TestScaleByRoundsHalfToEven(t *testing.T) {
	t.Parallel()
	tests := []struct {
		minor, num, den, want int64
		err                   error
	}{
		{300000, 304, 10, 9120000, nil},
		{1999, 304, 10, 60770, nil}, // 60769.6
		{1, 1, 2, 0, nil},
		{3, 1, 2, 2, nil},
		{5, 1, 2, 2, nil},
		{-1, 1, 2, 0, nil},
		{-3, 1, 2, -2, nil},
		{-5, 1, 2, -2, nil},
		{3, -1, -2, 2, nil},
		{1, 1, 3, 0, nil},
		{2, 1, 3, 1, nil},
		{-2, 1, 3, -1, nil},
		{math.MaxInt64, 1, 1, math.MaxInt64, nil},
		{math.MaxInt64, 2, 2, math.MaxInt64, nil},
		{math.MaxInt64, 304, 10, 0, ErrOutOfRange},
		{math.MinInt64, -1, 1, 0, ErrOutOfRange},
		{1, 1, 0, 0, ErrOutOfRange},
	}
	for _, tt := range tests {
		got, err := Amount{tt.minor, "USD"}.ScaleBy(tt.num, tt.den)
		if got.Minor != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%d×%d/%d: got %d, %v, want %d, %v", tt.minor, tt.num, tt.den, got.Minor, err, tt.want, tt.err)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		before, after int64
		want          string
		exact         bool
		cmp50         int
	}{
		{200000, 320000, "+60%", true, 1},
		{200000, 300000, "+50%", true, 0},
		{200000, 300001, "+50.0005%", true, 1},
		{200000, 299999, "+49.9995%", true, -1},
		{3000, 4000, "+33.3%", false, -1},
		{3000, 2000, "-33.3%", false, -1},
		{400, 300, "-25%", true, -1},
		{400, 449, "+12.2%", false, -1}, // 12.25
		{1000, 1125, "+12.5%", true, -1},
		{500, 500, "0%", true, -1},
		{500, 0, "-100%", true, -1},
		{100000, 1, "-99.999%", true, -1},
		{math.MaxInt64, math.MaxInt64 - 1, "≈0%", false, -1},
		{1, math.MaxInt64, "+922337203685477580600%", true, 1},
		{2_000_000_000_000, 3_000_000_000_001, "≈+50%", false, 1},
	}
	for _, tt := range tests {
		r, err := Percent(Amount{tt.before, "KRW"}, Amount{tt.after, "KRW"})
		if err != nil || r.String() != tt.want || r.Exact() != tt.exact || r.Cmp(50) != tt.cmp50 {
			t.Errorf("%d→%d: got %s, exact %t, cmp(50) %d, %v, want %s, %t, %d",
				tt.before, tt.after, r, r.Exact(), r.Cmp(50), err, tt.want, tt.exact, tt.cmp50)
		}
	}
	for _, before := range []int64{0, -5} {
		if _, err := Percent(Amount{before, "KRW"}, Amount{100, "KRW"}); !errors.Is(err, ErrNoBase) {
			t.Errorf("from %d: got %v, want ErrNoBase", before, err)
		}
	}
	if r := (Ratio{}); r.String() != "0%" || r.Cmp(0) != 0 || !r.Exact() {
		t.Errorf("zero Ratio: got %s, want 0%%", r)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a    Amount
		lang string
		want string
	}{
		{Amount{300000, "KRW"}, "en", "300,000 KRW"},
		{Amount{300000, "KRW"}, "ja", "300,000 KRW"},
		{Amount{300000, "KRW"}, "ko", "300,000 KRW"},
		{Amount{5000, "JPY"}, "ja-JP", "5,000 JPY"},
		{Amount{1999, "USD"}, "en", "19.99 USD"},
		{Amount{1900, "USD"}, "ja", "19.00 USD"},
		{Amount{-123456789, "USD"}, "en-US", "-1,234,567.89 USD"},
		{Amount{1234567, "KWD"}, "en", "1,234.567 KWD"},
		{Amount{1234567, "KWD"}, "de", "1.234,567 KWD"},
		{Amount{0, "JPY"}, "ja", "0 JPY"},
		{Amount{5000, "JPY"}, "", "5,000 JPY"},
		{Amount{5000, "JPY"}, "no such language", "5,000 JPY"},
		{Amount{math.MaxInt64, "USD"}, "en", "92,233,720,368,547,758.07 USD"},
		{Amount{math.MinInt64, "USD"}, "en", "-92,233,720,368,547,758.08 USD"},
		{Amount{5, "ZZZ"}, "en", "5 minor units ZZZ"},
		{Amount{}, "en", "0 minor units"},
	}
	for _, tt := range tests {
		if got := tt.a.Format(tt.lang); got != tt.want {
			t.Errorf("%#v in %q: got %q, want %q", tt.a, tt.lang, got, tt.want)
		}
	}
	if got, want := fmt.Sprint(Amount{5000, "JPY"}), "5,000 JPY"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOurOwnLanguagesAreWrittenAsTheLibraryWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := Amount{
			Minor:    rapid.OneOf(rapid.Int64(), rapid.Int64Range(-20_000, 20_000)).Draw(t, "minor"),
			Currency: rapid.SampledFrom([]Currency{"JPY", "KRW", "USD", "EUR", "KWD", "XXX"}).Draw(t, "currency"),
		}
		lang := rapid.SampledFrom([]string{"en", "ja"}).Draw(t, "lang")
		if got, want := a.Format(lang), a.formatBy(lang); got != want {
			t.Fatalf("%s: got %q, want %q", lang, got, want)
		}
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(struct{ A Amount }{Amount{1999, "USD"}})
	if want := `{"A":{"amount":"19.99","currency":"USD"}}`; err != nil || string(raw) != want {
		t.Errorf("got %s, %v, want %s", raw, err, want)
	}
	if raw, err := json.Marshal(Amount{}); !errors.Is(err, ErrUnknownCurrency) {
		t.Errorf("got %s, %v, want ErrUnknownCurrency", raw, err)
	}
	for in, want := range map[string]error{
		`{"amount":19.99,"currency":"USD"}`:                  ErrNotDecimal,
		`{"amount":"19.99"}`:                                 ErrUnknownCurrency,
		`{"currency":"USD"}`:                                 ErrNotDecimal,
		`{"Amount":"19.99","currency":"USD"}`:                ErrNotDecimal,
		`{"amount":"1","amount":"2","currency":"USD"}`:       ErrNotDecimal,
		`{"amount":"1","currency":"USD","note":"x"}`:         ErrNotDecimal,
		`{"amount":{"amount":"1"},"currency":"USD"}`:         ErrNotDecimal,
		`{"amount":"5000.00","currency":"JPY"}`:              ErrTooManyDecimals,
		`{"amount":"99999999999999999999","currency":"JPY"}`: ErrOutOfRange,
		`"19.99 USD"`: ErrNotDecimal,
		`null`:        ErrNotDecimal,
	} {
		a := Amount{7, "KRW"}
		if err := json.Unmarshal([]byte(in), &a); !errors.Is(err, want) || a != (Amount{7, "KRW"}) {
			t.Errorf("%s: got %v, %v, want %v and the amount untouched", in, a, err, want)
		}
	}
	var a Amount
	if err := a.UnmarshalJSON([]byte(`{"amount":"1","currency":"USD"} 2`)); !errors.Is(err, ErrNotDecimal) {
		t.Errorf("got %v, want trailing data refused", err)
	}
	if err := json.Unmarshal([]byte(`{ "currency" : "USD", "amount" : "1.5" }`), &a); err != nil || a != (Amount{150, "USD"}) {
		t.Errorf("got %v, %v, want 1.50 USD", a, err)
	}
}
