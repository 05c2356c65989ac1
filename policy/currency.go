package policy

import (
	"strings"
	"sync"

	"cel.dev/cel-go/common/types"

	"github.com/cutonce/cutonce/internal/money"
)

// tender is one currency as rules see it: krw(…) makes its amounts, .krw reads them, money(KRW) is their type.
type tender struct {
	code   money.Currency
	digits int
	kind   *types.Type
}

// tenders are all currencies, by the name that rules use.
var tenders = sync.OnceValue(func() map[string]tender {
	out := map[string]tender{}
	for _, code := range money.Currencies() {
		if digits, err := money.Exponent(code); err == nil {
			out[strings.ToLower(string(code))] = tender{code, digits, amountType(types.NewOpaqueType(string(code)))}
		}
	}
	return out
})

// arg is how its amounts are written: whole numbers where there are no decimals, else text with the decimals, so that nobody
// can take usd(5000) for cents or for dollars.
func (t tender) arg() *types.Type {
	if t.digits == 0 {
		return types.IntType
	}
	return types.StringType
}
