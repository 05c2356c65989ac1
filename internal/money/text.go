package money

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Decimal is the amount in whole units, with exactly the currency's decimals and no grouping: "19.99", "5000". Parse
// reads it back. For an unknown currency it says so instead of guessing where the point goes.
func (a Amount) Decimal() string {
	exp, err := Exponent(a.Currency)
	if err != nil {
		return fmt.Sprintf("%d minor units", a.Minor)
	}
	s := strconv.FormatInt(a.Minor, 10)
	if exp == 0 {
		return s
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if len(s) <= exp {
		s = strings.Repeat("0", exp+1-len(s)) + s
	}
	return sign + s[:len(s)-exp] + "." + s[len(s)-exp:]
}

// String is Format("en"): "5,000 JPY".
func (a Amount) String() string { return a.Format("en") }

// Format writes the amount for a reader of lang (a BCP 47 tag; an unknown one reads as English): grouping and point
// are the language's, and the code follows in every language, because ¥ and $ are each several currencies. The space
// before it is an ordinary one; a page keeps the two together by style.
func (a Amount) Format(lang string) string {
	if lang == "en" || lang == "ja" {
		if _, err := Exponent(a.Currency); err == nil {
			return grouped(a.Decimal()) + " " + string(a.Currency)
		}
	}
	return a.formatBy(lang)
}

// formatBy asks the library, which knows every language.
func (a Amount) formatBy(lang string) string {
	n, err := currency.NewAmount(a.Decimal(), string(a.Currency))
	if err != nil {
		return strings.TrimSpace(a.Decimal() + " " + string(a.Currency))
	}
	f := currency.NewFormatter(currency.NewLocale(lang))
	f.CurrencyDisplay = currency.DisplayNone
	f.MaxDigits = currency.DefaultDigits
	return f.Format(n) + " " + string(a.Currency)
}

// grouped puts a comma before every three digits of the whole part, as English and Japanese do.
func grouped(decimal string) string {
	sign, digits := "", decimal
	if strings.HasPrefix(decimal, "-") {
		sign, digits = "-", decimal[1:]
	}
	whole, rest := digits, ""
	if point := strings.IndexByte(digits, '.'); point >= 0 {
		whole, rest = digits[:point], digits[point:]
	}
	if !isDigits(whole) || len(whole) <= 3 {
		return decimal
	}
	b := append(make([]byte, 0, len(decimal)+len(whole)/3), sign...)
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b = append(b, ',')
		}
		b = append(b, whole[i])
	}
	return string(append(b, rest...))
}

// MarshalJSON writes {"amount":"19.99","currency":"USD"}: a string, so that no reader makes it a float.
func (a Amount) MarshalJSON() ([]byte, error) {
	if _, err := Exponent(a.Currency); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"amount":%q,"currency":%q}`, a.Decimal(), string(a.Currency)), nil
}

// UnmarshalJSON reads what MarshalJSON writes and nothing else: both members once, by their exact names, as strings.
func (a *Amount) UnmarshalJSON(raw []byte) error {
	members, err := readMembers(raw)
	if err != nil {
		return fmt.Errorf("money: read an amount: %w", err)
	}
	out, err := Parse(members["amount"], Currency(members["currency"]))
	if err != nil {
		return err
	}
	*a = out
	return nil
}

// readMembers walks the tokens itself: encoding/json would take "AMOUNT" for "amount" and the last of two.
func readMembers(raw []byte) (map[string]string, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, fmt.Errorf("want an object: %w", ErrNotDecimal)
	}
	members := map[string]string{}
	for dec.More() {
		key, err := readString(dec)
		if err != nil {
			return nil, err
		}
		_, again := members[key]
		if again || key != "amount" && key != "currency" {
			return nil, fmt.Errorf("want amount and currency once each: %w", ErrNotDecimal)
		}
		if members[key], err = readString(dec); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if dec.InputOffset() != int64(len(bytes.TrimRight(raw, " \t\r\n"))) {
		return nil, fmt.Errorf("something follows the object: %w", ErrNotDecimal)
	}
	return members, nil
}

func readString(dec *json.Decoder) (string, error) {
	tok, err := dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("want a string: %w", ErrNotDecimal)
	}
	return s, nil
}
