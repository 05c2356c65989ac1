package policy

import (
	"encoding/json"
	"errors"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/money"
)

// missing says that a rule asked for a value that this change does not have. It is not an error of the rule.
type missing struct{ path string }

func (m missing) Error() string { return m.path + " is missing" }

// scope gives a rule its variables, each made when it is asked for. It belongs to one evaluation.
type scope struct {
	facts  Facts
	policy *Policy
}

var _ interpreter.Activation = (*scope)(nil)

// Parent implements Activation.
func (s *scope) Parent() interpreter.Activation { return nil }

// ResolveName implements Activation. The names are those that vocabulary declares.
func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case "action":
		return types.String(s.facts.Action), true
	case "reversible":
		return types.Bool(s.facts.Impact.Reversible), true
	case "warnings":
		return textList(codes(s.facts.Impact.Warnings)), true
	case "currency":
		if currency := s.currency(); currency != "" {
			return types.String(currency), true
		}
		return types.WrapErr(missing{"currency"}), true
	case momentName:
		return moment{s}, true
	case "before", "after", "change", "impact", "target", "requester", "input", exposureName:
		return s, true
	}
	return nil, false
}

// currency is the one currency of all amounts of the change; empty if there is none or more than one.
func (s *scope) currency() string {
	var found money.Currency
	for _, c := range s.facts.Plan.Changes {
		for _, v := range []connector.Value{c.Before, c.After} {
			switch {
			case v.Amount == nil || v.Amount.Currency == found:
			case found != "":
				return ""
			default:
				found = v.Amount.Currency
			}
		}
	}
	return string(found)
}

// field finds the change of a field, the zero Change if there is none. Two changes of one field say nothing certain, so they
// count as none.
func (s *scope) field(name string) connector.Change {
	var found connector.Change
	times := 0
	for _, c := range s.facts.Plan.Changes {
		if c.Field == name {
			found, times = c, times+1
		}
	}
	if times != 1 {
		return connector.Change{}
	}
	return found
}

// cell is one value that a rule can look at: a field before or after, or a figure of the impact.
type cell struct {
	path   string
	amount *money.Amount
	text   *string
	count  *int64
}

func (c cell) known() bool { return c.amount != nil || c.text != nil || c.count != nil }

func (s *scope) before(name string) cell {
	change := s.field(name)
	return cell{path: "before." + name, amount: change.Before.Amount, text: change.Before.Text}
}

func (s *scope) after(name string) cell {
	change := s.field(name)
	return cell{path: "after." + name, amount: change.After.Amount, text: change.After.Text}
}

func (s *scope) figure(name string) cell {
	found := cell{path: "impact." + name}
	for _, f := range s.facts.Impact.Figures {
		if f.Name != name {
			continue
		}
		if found.known() {
			return cell{path: found.path}
		}
		found.amount, found.count = f.Amount, f.Count
	}
	return found
}

// change is the exact relative change of an amount. From zero, from less than zero, or between currencies there is none.
func (s *scope) change(name string) (money.Ratio, error) {
	change := s.field(name)
	if change.Before.Amount == nil || change.After.Amount == nil {
		return money.Ratio{}, missing{"change." + name}
	}
	of, err := money.Percent(*change.Before.Amount, *change.After.Amount)
	if errors.Is(err, money.ErrOutOfRange) {
		return money.Ratio{}, err
	}
	if err != nil {
		return money.Ratio{}, missing{"change." + name}
	}
	return of, nil
}

func codes(warnings []connector.Warning) []string {
	out := make([]string, len(warnings))
	for i, w := range warnings {
		out[i] = w.Code
	}
	return out
}

func textList(list []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, list) }

// exact adapts input values: JSON numbers become integers or an error, and nothing becomes a float.
type exact struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (e exact) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case json.Number:
		whole, err := v.Int64()
		if err != nil {
			return types.NewErr("%s is not a whole number of 64 bits", v)
		}
		return types.Int(whole)
	case float32, float64:
		return types.NewErr("a floating-point number is not exact")
	case map[string]any:
		return types.NewStringInterfaceMap(e, v)
	case connector.Input:
		return types.NewStringInterfaceMap(e, v)
	case []any:
		return types.NewDynamicList(e, v)
	}
	return e.Adapter.NativeToValue(value)
}
