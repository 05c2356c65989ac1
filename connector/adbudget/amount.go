package adbudget

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
)

// budgetField is one of the three ways to say the new amount.
type budgetField struct {
	name     string
	currency money.Currency
	// most is the platform's limit in minor units.
	most int64
	// example is how an amount is written, for a caller who wrote something else.
	example string
}

var budgetFields = []budgetField{
	{"new_daily_budget_krw", "KRW", 1_000_000_000, "300000"},
	{"new_daily_budget_jpy", "JPY", 100_000_000, "30000"},
	{"new_daily_budget_usd", "USD", 100_000_000, "19.99"},
}

// fieldFor is the input field of a currency; empty if this action has none.
func fieldFor(currency money.Currency) string {
	for _, f := range budgetFields {
		if f.currency == currency {
			return f.name
		}
	}
	return ""
}

// accept takes a plain decimal within the platform's limits, or says what is wrong with it.
func (f budgetField) accept(plain string) (a money.Amount, wrong string, args fault.Args) {
	a, err := money.Parse(plain, f.currency)
	switch {
	case errors.Is(err, money.ErrTooManyDecimals):
		return a, f.decimalsComplaint(), fault.Args{"currency": string(f.currency)}
	case err != nil:
		return a, "adbudget.field.unusable", fault.Args{"example": f.example}
	case a.Minor < 1:
		return a, "adbudget.field.above_zero", fault.Args{"least": money.Amount{Minor: 1, Currency: f.currency}}
	case a.Minor > f.most:
		return a, "adbudget.field.at_most", fault.Args{"most": money.Amount{Minor: f.most, Currency: f.currency}}
	}
	return a, "", nil
}

func (f budgetField) decimalsComplaint() string {
	if strings.Contains(f.example, ".") {
		return "adbudget.field.two_decimals"
	}
	return "adbudget.field.whole_units"
}

// parseBudget reads an amount as the platform writes it.
func parseBudget(currency, text string) (money.Amount, error) {
	a, err := money.Parse(text, money.Currency(currency))
	if err == nil && a.Minor < 0 {
		err = errors.New("a budget below zero")
	}
	if err != nil {
		return money.Amount{}, fmt.Errorf("reading a budget of the platform: %w", err)
	}
	return a, nil
}

// monthly is an amount over 30.4 days, a month as ad platforms count it. 30.4 is 152/5, so it is exact for multiples of 5.
// What does not fit is not known, and shown as that.
func monthly(a money.Amount) (month *money.Amount, rounded bool) {
	m, err := a.ScaleBy(304, 10)
	if err != nil {
		return nil, false
	}
	return &m, a.Minor%5 != 0
}

// percentOf is delta in percent of base, exact or rounded to two places (halves away from zero). base is above zero.
func percentOf(delta, base int64) (text string, rounded bool) {
	n := new(big.Int).Mul(big.NewInt(delta), big.NewInt(10_000))
	q, rest := new(big.Int).QuoRem(n.Abs(n), big.NewInt(base), new(big.Int))
	if rounded = rest.Sign() != 0; rest.Lsh(rest, 1).Cmp(big.NewInt(base)) >= 0 {
		q.Add(q, big.NewInt(1))
	}
	whole, hundredths := q.QuoRem(q, big.NewInt(100), new(big.Int))
	text = whole.String()
	if hundredths.Sign() != 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%02d", hundredths), "0")
	}
	if delta < 0 {
		text = "-" + text
	}
	return text, rounded
}

// signed is a percentage for a sentence: "+60", "-12.5", "≈ +33.33".
func signed(delta, base int64) string {
	text, rounded := percentOf(delta, base)
	if delta > 0 {
		text = "+" + text
	}
	if rounded {
		text = "≈ " + text
	}
	return text
}

// percentFigure is a percentage, not known where there is no base.
func percentFigure(name string, delta, base int64) connector.Figure {
	f := connector.Figure{Name: name}
	if base > 0 {
		f.Percent, f.Rounded = percentOf(delta, base)
	}
	return f
}
