package policy

import (
	"fmt"
	"math/big"
	"reflect"
	"regexp"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/cutonce/cutonce/internal/money"
)

// ratioType is what change.FIELD and percent(…) are.
var (
	ratioType    = types.NewOpaqueType("percent")
	ratioRuntime = types.NewTypeValue("percent", traits.ComparerType)
)

// ratio is an exact relative change: 1/2 is +50 %.
type ratio struct{ *big.Rat }

var hundred = big.NewRat(100, 1)

var percentText = regexp.MustCompile(`^-?[0-9]{1,9}(\.[0-9]{1,9})?$`)

// percent reads a decimal such as "12.5".
func percent(text string) (ratio, error) {
	if !percentText.MatchString(text) {
		return ratio{}, fmt.Errorf(`percent takes a whole number or a decimal as text, such as percent("12.5"), not %q`, text)
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		return ratio{}, fmt.Errorf("percent: %q is not a decimal", text)
	}
	return ratio{value.Quo(value, hundred)}, nil
}

// relative makes a change of money comparable with percent(…).
func relative(of money.Ratio) ratio { return ratio{big.NewRat(of.Fraction())} }

// Compare implements CEL's order.
func (r ratio) Compare(other ref.Val) ref.Val {
	o, ok := other.(ratio)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(r.Cmp(o.Rat))
}

// Equal refuses anything that is not a percentage: an unequal by mistake would be a guess.
func (r ratio) Equal(other ref.Val) ref.Val {
	o, ok := other.(ratio)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Bool(r.Cmp(o.Rat) == 0)
}

// ConvertToNative is not offered: a ratio never leaves a rule.
func (r ratio) ConvertToNative(want reflect.Type) (any, error) {
	return nil, fmt.Errorf("a percentage is not a %v", want)
}

// ConvertToType is not offered.
func (r ratio) ConvertToType(want ref.Type) ref.Val {
	return types.NewErr("a percentage is not a %s", want.TypeName())
}

// Type names the runtime type.
func (r ratio) Type() ref.Type { return ratioRuntime }

// Value gives the number.
func (r ratio) Value() any { return r }
