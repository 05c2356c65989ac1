package canon

import (
	"strconv"
	"strings"
)

const (
	// maxInteger is 2^53-1: above it, readers that use doubles see a neighbour of the number that was sent.
	maxInteger = "9007199254740991"
	// maxDigits and maxFraction bound what is left after normalisation (34 is decimal128's precision).
	maxDigits   = 34
	maxFraction = 34
	// maxLiteral and maxExponent bound the spelling, so that nothing is expanded before it is known to be small.
	maxLiteral  = 128
	maxExponent = 100
)

// normalNumber rewrites a JSON number in its one normal form: no exponent, no trailing zeros after the point, no
// leading zeros, no minus zero. It returns the reason when it is not a number or does not fit.
func normalNumber(lit string) (string, Reason) {
	sign, whole, frac, exp, ok := splitNumber(lit)
	if !ok {
		return "", InvalidNumber
	}
	if len(lit) > maxLiteral {
		return "", NumberTooLarge
	}
	e, ok := smallExponent(exp)
	if !ok {
		return "", NumberTooLarge
	}
	digits := strings.TrimLeft(whole+frac, "0")
	if digits == "" {
		return "0", ""
	}
	trimmed := strings.TrimRight(digits, "0")
	scale := len(frac) - e - (len(digits) - len(trimmed)) // value = trimmed × 10^-scale
	s, ok := place(trimmed, scale)
	if !ok {
		return "", NumberTooLarge
	}
	return sign + s, ""
}

// place puts the decimal point into digits, which have neither leading nor trailing zeros.
func place(digits string, scale int) (string, bool) {
	if scale <= 0 {
		if len(digits)-scale > len(maxInteger) {
			return "", false
		}
		s := digits + strings.Repeat("0", -scale)
		return s, len(s) < len(maxInteger) || s <= maxInteger
	}
	if len(digits) > maxDigits || scale > maxFraction {
		return "", false
	}
	if len(digits) <= scale {
		return "0." + strings.Repeat("0", scale-len(digits)) + digits, true
	}
	whole := digits[:len(digits)-scale]
	fits := len(whole) < len(maxInteger) || len(whole) == len(maxInteger) && whole < maxInteger
	return whole + "." + digits[len(whole):], fits
}

// splitNumber takes a literal apart by the grammar of RFC 8259 §6.
func splitNumber(lit string) (sign, whole, frac, exp string, ok bool) {
	rest := lit
	if strings.HasPrefix(rest, "-") {
		sign, rest = "-", rest[1:]
	}
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		exp, rest = rest[i+1:], rest[:i]
		if !allDigits(strings.TrimPrefix(strings.TrimPrefix(exp, "-"), "+")) || strings.HasPrefix(exp, "-+") {
			return "", "", "", "", false
		}
	}
	whole, frac, point := strings.Cut(rest, ".")
	if !allDigits(whole) || point && !allDigits(frac) || len(whole) > 1 && whole[0] == '0' {
		return "", "", "", "", false
	}
	return sign, whole, frac, exp, true
}

func smallExponent(exp string) (int, bool) {
	if exp == "" {
		return 0, true
	}
	e, err := strconv.Atoi(exp)
	return e, err == nil && e >= -maxExponent && e <= maxExponent
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
