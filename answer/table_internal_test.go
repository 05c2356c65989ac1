package answer

import "testing"

func TestACellIsNoFormula(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"=1+1":               "'=1+1",
		"+81 3 0000 0000":    "'+81 3 0000 0000",
		"-2+3":               "'-2+3",
		"@SUM(A1)":           "'@SUM(A1)",
		"\t=1+1":             "'\t=1+1",
		"\r=1+1":             "'\r=1+1",
		" =1+1":              "' =1+1",
		"＝HYPERLINK(\"x\")":  "'＝HYPERLINK(\"x\")",
		"－１":                 "'－１",
		"　=1":                "'　=1",
		"-500":               "-500",
		"12000.50":           "12000.50",
		"-1.5e3":             "'-1.5e3",
		"a=b":                "a=b",
		"日予算を 10,000 JPY から": "日予算を 10,000 JPY から",
	} {
		if got := Inert(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}
