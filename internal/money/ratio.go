package money

import (
	"fmt"
	"math/big"
	"strings"
)

// Ratio is an exact relative change: (after-before)/before. The zero Ratio is no change. Rules compare it with Cmp;
// String is for people.
type Ratio struct {
	num int64 // after-before, in minor units
	den int64 // before, in minor units; 0 in the zero Ratio only
}

// Percent is the change from before to after. It is ErrCurrencyMismatch across currencies, and ErrNoBase where
// before is not above zero: from nothing, no percentage is true.
func Percent(before, after Amount) (Ratio, error) {
	delta, err := after.Sub(before)
	if err != nil {
		return Ratio{}, err
	}
	if before.Minor <= 0 {
		return Ratio{}, fmt.Errorf("money: from %s: %w", before, ErrNoBase)
	}
	return Ratio{delta.Minor, before.Minor}, nil
}

// Fraction is the ratio as it is: numerator and denominator (above zero), not reduced.
func (r Ratio) Fraction() (num, den int64) { return r.num, max(r.den, 1) }

// Cmp compares with a whole percentage, exactly: +50.0001 % is more than 50.
func (r Ratio) Cmp(percent int64) int {
	num, den := r.Fraction()
	left := new(big.Int).Mul(big.NewInt(num), big.NewInt(100))
	return left.Cmp(new(big.Int).Mul(big.NewInt(percent), big.NewInt(den)))
}

// Exact reports whether String shows the ratio without rounding.
func (r Ratio) Exact() bool {
	_, exact := r.render()
	return exact
}

// scaled is the percentage times 10^decimals as a fraction.
func (r Ratio) scaled(decimals int) (n, d *big.Int) {
	num, den := r.Fraction()
	return new(big.Int).Mul(big.NewInt(num), pow10(decimals+2)), big.NewInt(den)
}

// maxPercentDecimals is how far String goes to keep a rounded figure off a whole number.
const maxPercentDecimals = 6

// String is "+60%", "-25%", "0%", or rounded half to even to one decimal, "+33.3%". A rounded figure never poses as
// a whole percentage, which a reader would hold against a rule's limit: +50.04 % is "+50.04%", and what still looks
// whole after six decimals is marked, "≈+50%".
func (r Ratio) String() string {
	text, _ := r.render()
	return text
}

func (r Ratio) render() (text string, exact bool) {
	for decimals := 1; decimals <= maxPercentDecimals; decimals++ {
		n, d := r.scaled(decimals)
		q := divHalfEven(n, d)
		exact := new(big.Int).Rem(n, d).Sign() == 0
		whole := new(big.Int).Rem(q, pow10(decimals)).Sign() == 0
		if exact || !whole {
			return percentText(q, decimals), exact
		}
	}
	n, d := r.scaled(0)
	return "≈" + percentText(divHalfEven(n, d), 0), false
}

// percentText writes q×10^-decimals with its sign and without trailing zeros.
func percentText(q *big.Int, decimals int) string {
	sign := map[int]string{-1: "-", 0: "", 1: "+"}[q.Sign()]
	whole, frac := new(big.Int).DivMod(new(big.Int).Abs(q), pow10(decimals), new(big.Int))
	s := whole.String()
	if frac.Sign() != 0 {
		digits := frac.String()
		s += "." + strings.TrimRight(strings.Repeat("0", decimals-len(digits))+digits, "0")
	}
	return sign + s + "%"
}
