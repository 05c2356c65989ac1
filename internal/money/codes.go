package money

import "github.com/bojanz/currency"

// Currencies are all the codes that ParseCurrency accepts.
func Currencies() []Currency {
	codes := currency.GetCurrencyCodes()
	out := make([]Currency, len(codes))
	for i, code := range codes {
		out[i] = Currency(code)
	}
	return out
}
