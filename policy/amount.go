package policy

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/cutonce/cutonce/internal/money"
)

// amountRuntime is the type of an amount when a rule runs. When a rule is compiled it is money(KRW), money(USD) …: one
// parameterised type, so that one declaration of "<" covers every currency and none across two.
var amountRuntime = types.NewTypeValue("money", traits.ComparerType|traits.AdderType|traits.SubtractorType|traits.MultiplierType)

func amountType(currency *types.Type) *types.Type { return types.NewOpaqueType("money", currency) }

// amount is an exact amount of money in a rule. Every operation checks the currency again: the compiler's word is not
// enough where money is concerned.
type amount struct{ money.Amount }

// Compare implements CEL's order within one currency.
func (a amount) Compare(other ref.Val) ref.Val {
	b, ok := other.(amount)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	order, err := a.Cmp(b.Amount)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Int(order)
}

// Equal refuses another currency or another type: false would be a guess.
func (a amount) Equal(other ref.Val) ref.Val {
	order := a.Compare(other)
	if types.IsError(order) {
		return order
	}
	return types.Bool(order == types.IntZero)
}

// Add is exact or an error.
func (a amount) Add(other ref.Val) ref.Val { return a.combine(other, a.Amount.Add) }

// Subtract is exact or an error.
func (a amount) Subtract(other ref.Val) ref.Val { return a.combine(other, a.Sub) }

func (a amount) combine(other ref.Val, how func(money.Amount) (money.Amount, error)) ref.Val {
	b, ok := other.(amount)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return amountOrErr(how(b.Amount))
}

// Multiply takes a whole number and is exact or an error.
func (a amount) Multiply(other ref.Val) ref.Val {
	times, ok := other.(types.Int)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return amountOrErr(a.ScaleBy(int64(times), 1))
}

func amountOrErr(result money.Amount, err error) ref.Val {
	if err != nil {
		return types.WrapErr(err)
	}
	return amount{result}
}

// ConvertToNative is not offered: an amount never leaves a rule.
func (a amount) ConvertToNative(want reflect.Type) (any, error) {
	return nil, fmt.Errorf("money is not a %v", want)
}

// ConvertToType is not offered: string(…) of an amount would invite comparing spellings.
func (a amount) ConvertToType(want ref.Type) ref.Val {
	return types.NewErr("money is not a %s", want.TypeName())
}

// Type names the runtime type.
func (a amount) Type() ref.Type { return amountRuntime }

// Value gives the amount.
func (a amount) Value() any { return a.Amount }

// literal reads krw(5000000) or usd("120.50").
func literal(currency money.Currency, arg ref.Val) (amount, error) {
	text := fmt.Sprint(arg.Value())
	parsed, err := money.Parse(text, currency)
	if err != nil {
		return amount{}, fmt.Errorf("%q is not an amount in %s: %w", text, currency, err)
	}
	return amount{parsed}, nil
}
