package target

import (
	"regexp"
	"strconv"
	"strings"
)

// currency says how an amount is written and how large it may be, in minor units.
type currency struct {
	form *regexp.Regexp
	most int64
}

var (
	integerForm    = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)
	twoDecimalForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,12})\.[0-9]{2}$`)

	currencies = map[string]currency{
		"KRW": {form: integerForm, most: 1_000_000_000},
		"JPY": {form: integerForm, most: 100_000_000},
		"USD": {form: twoDecimalForm, most: 100_000_000},
	}
)

// refuseAmount is the code and message of a bad amount, or "" for a good one. The forms leave one spelling for each
// amount, so that amounts compare as strings.
func refuseAmount(amount, code string) (errCode, message string) {
	cur, ok := currencies[code]
	if !ok {
		return "currency_mismatch", "currency must be KRW, JPY or USD"
	}
	if !cur.form.MatchString(amount) {
		return "invalid_amount", "an amount is a plain integer in KRW and JPY, and has two decimals in USD"
	}
	minor, err := strconv.ParseInt(strings.ReplaceAll(amount, ".", ""), 10, 64)
	if err != nil || minor > cur.most {
		return "amount_out_of_range", "the amount is over this platform's limit"
	}
	return "", ""
}
