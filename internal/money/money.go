// Package money holds exact amounts: an integer in the currency's minor units and an ISO 4217 code, never apart.
//
// It promises that no amount passes through a float, that the number of decimals is the currency's own (JPY and KRW
// 0, USD 2, KWD 3), that two currencies are never added or compared, and that what does not fit in an int64 of minor
// units is an error instead of a wrapped or rounded value.
//
// It does not convert between currencies and does not round, except in ScaleBy, which says how.
//
// Start with Parse for a decimal that came from outside, FromMajorInt for a whole number of units.
package money

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// What can be wrong with an amount. Match with errors.Is; the wrapping text is for our own logs.
var (
	ErrUnknownCurrency  = errors.New("not an ISO 4217 currency code")
	ErrNotDecimal       = errors.New("not a plain decimal such as 19.99")
	ErrTooManyDecimals  = errors.New("more decimals than the currency has")
	ErrOutOfRange       = errors.New("amount out of range")
	ErrCurrencyMismatch = errors.New("currencies differ")
	ErrNoBase           = errors.New("no percentage of an amount that is not above zero")
)

// Currency is an ISO 4217 code in capitals. A conversion from string checks nothing; ParseCurrency does, and so does
// every function here that makes an Amount.
type Currency string

// Amount is a sum of money. Amounts are comparable with ==. The zero Amount has no currency and is not a sum of
// money: it cannot be written as JSON or computed with.
type Amount struct {
	Minor    int64
	Currency Currency
}

// ParseCurrency accepts a known code, in capitals only.
func ParseCurrency(code string) (Currency, error) {
	c := Currency(code)
	_, err := Exponent(c)
	return c, err
}

// Exponent is the number of decimals of c by ISO 4217.
func Exponent(c Currency) (int, error) {
	digits, ok := currency.GetDigits(string(c))
	if !ok {
		return 0, fmt.Errorf("money: currency %q: %w", string(c), ErrUnknownCurrency)
	}
	return int(digits), nil
}

// FromMinor makes an amount from minor units: FromMinor(1999, "USD") is 19.99 USD.
func FromMinor(minor int64, c Currency) (Amount, error) {
	if _, err := Exponent(c); err != nil {
		return Amount{}, err
	}
	return Amount{minor, c}, nil
}

// FromMajorInt makes an amount from whole units: FromMajorInt(5000, "JPY") is 5,000 JPY, FromMajorInt(5, "USD") is
// 5.00 USD.
func FromMajorInt(n int64, c Currency) (Amount, error) {
	exp, err := Exponent(c)
	if err != nil {
		return Amount{}, err
	}
	return narrow(new(big.Int).Mul(big.NewInt(n), pow10(exp)), c)
}

// Parse reads a plain decimal in whole units of c: an optional minus, digits without leading zeros, and at most as
// many decimals as c has. Grouping, exponents, plus signs, spaces and full-width digits are ErrNotDecimal; zeros
// beyond the currency's decimals are ErrTooManyDecimals ("5000.00" is no JPY amount, and may be one times 100).
func Parse(decimal string, c Currency) (Amount, error) {
	exp, err := Exponent(c)
	if err != nil {
		return Amount{}, err
	}
	digits, negative := strings.CutPrefix(decimal, "-")
	whole, frac, point := strings.Cut(digits, ".")
	if !isDigits(whole) || point && !isDigits(frac) || len(whole) > 1 && whole[0] == '0' {
		return Amount{}, fmt.Errorf("money: %.40q: %w", decimal, ErrNotDecimal)
	}
	if len(frac) > exp {
		return Amount{}, fmt.Errorf("money: %.40q %s: %w", decimal, c, ErrTooManyDecimals)
	}
	sign := ""
	if negative {
		sign = "-"
	}
	minor, err := strconv.ParseInt(sign+whole+frac+strings.Repeat("0", exp-len(frac)), 10, 64)
	if err != nil {
		return Amount{}, fmt.Errorf("money: %.40q %s: %w", decimal, c, ErrOutOfRange)
	}
	return Amount{minor, c}, nil
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func narrow(n *big.Int, c Currency) (Amount, error) {
	if !n.IsInt64() {
		return Amount{}, fmt.Errorf("money: %s: %w", c, ErrOutOfRange)
	}
	return Amount{n.Int64(), c}, nil
}

// IsZero reports whether a is nothing, in any currency.
func (a Amount) IsZero() bool { return a.Minor == 0 }

// Add is a+b, or ErrCurrencyMismatch, or ErrOutOfRange.
func (a Amount) Add(b Amount) (Amount, error) {
	if err := a.alike(b); err != nil {
		return Amount{}, err
	}
	if b.Minor > 0 && a.Minor > math.MaxInt64-b.Minor || b.Minor < 0 && a.Minor < math.MinInt64-b.Minor {
		return Amount{}, fmt.Errorf("money: sum in %s: %w", a.Currency, ErrOutOfRange)
	}
	return Amount{a.Minor + b.Minor, a.Currency}, nil
}

// Sub is a-b, or ErrCurrencyMismatch, or ErrOutOfRange.
func (a Amount) Sub(b Amount) (Amount, error) {
	if err := a.alike(b); err != nil {
		return Amount{}, err
	}
	if b.Minor < 0 && a.Minor > math.MaxInt64+b.Minor || b.Minor > 0 && a.Minor < math.MinInt64+b.Minor {
		return Amount{}, fmt.Errorf("money: difference in %s: %w", a.Currency, ErrOutOfRange)
	}
	return Amount{a.Minor - b.Minor, a.Currency}, nil
}

// Cmp is -1, 0 or +1, or ErrCurrencyMismatch: 1,000 JPY is neither more nor less than 1,000 USD.
func (a Amount) Cmp(b Amount) (int, error) {
	if err := a.alike(b); err != nil {
		return 0, err
	}
	switch {
	case a.Minor < b.Minor:
		return -1, nil
	case a.Minor > b.Minor:
		return 1, nil
	}
	return 0, nil
}

func (a Amount) alike(b Amount) error {
	if a.Currency != b.Currency {
		return fmt.Errorf("money: %q and %q: %w", string(a.Currency), string(b.Currency), ErrCurrencyMismatch)
	}
	_, err := Exponent(a.Currency)
	return err
}

// ScaleBy is a×num/den, rounded half to even to minor units: a month of a daily budget is ScaleBy(304, 10). A zero
// den is ErrOutOfRange.
func (a Amount) ScaleBy(num, den int64) (Amount, error) {
	if _, err := Exponent(a.Currency); err != nil {
		return Amount{}, err
	}
	if den == 0 {
		return Amount{}, fmt.Errorf("money: scale by %d/0: %w", num, ErrOutOfRange)
	}
	n := new(big.Int).Mul(big.NewInt(a.Minor), big.NewInt(num))
	return narrow(divHalfEven(n, big.NewInt(den)), a.Currency)
}

// divHalfEven is n/d rounded to the nearest integer, ties to the even one.
func divHalfEven(n, d *big.Int) *big.Int {
	if d.Sign() < 0 {
		n, d = new(big.Int).Neg(n), new(big.Int).Neg(d)
	}
	q, r := new(big.Int).DivMod(n, d, new(big.Int)) // Euclidean: 0 <= r < d
	twice := r.Lsh(r, 1).Cmp(d)
	if twice > 0 || twice == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q
}
