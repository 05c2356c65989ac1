package policy

import (
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/money"
)

// vocabulary is the CEL environment of every rule. It is made once: nothing in it depends on a policy or a request.
var vocabulary = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("making the types of rules: %w", err)
	}
	options := []cel.EnvOption{
		cel.CustomTypeProvider(provider{registry}),
		cel.CustomTypeAdapter(exact{registry}),
		cel.HomogeneousAggregateLiterals(),
		cel.Variable("action", cel.StringType),
		cel.Variable("currency", cel.StringType),
		cel.Variable("warnings", cel.ListType(cel.StringType)),
		cel.Variable("reversible", cel.BoolType),
		cel.Function("percent",
			cel.Overload("percent_int", []*cel.Type{cel.IntType}, ratioType, cel.UnaryBinding(percentOf)),
			cel.Overload("percent_string", []*cel.Type{cel.StringType}, ratioType, cel.UnaryBinding(percentOf))),
	}
	for name := range objects {
		if !strings.HasPrefix(name, "a ") {
			options = append(options, cel.Variable(name, cel.ObjectType(name)))
		}
	}
	options = append(append(options, operations()...), timeFunctions()...)
	return cel.NewEnv(append(options, literals()...)...)
})

// operations declares what may be done with amounts and percentages: order within one currency, plus, minus, times a whole
// number. "==" needs no declaration, for CEL's own is between equal types.
func operations() []cel.EnvOption {
	same := amountType(cel.TypeParamType("CURRENCY"))
	var options []cel.EnvOption
	for _, op := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals} {
		options = append(options, cel.Function(op,
			cel.Overload(op+"_money", []*cel.Type{same, same}, cel.BoolType),
			cel.Overload(op+"_percent", []*cel.Type{ratioType, ratioType}, cel.BoolType)))
	}
	for _, op := range []string{operators.Add, operators.Subtract} {
		options = append(options, cel.Function(op, cel.Overload(op+"_money", []*cel.Type{same, same}, same)))
	}
	return append(options, cel.Function(operators.Multiply,
		cel.Overload("multiply_money", []*cel.Type{same, cel.IntType}, same)))
}

// literals declares krw(5000000), usd("120.50") and so on.
func literals() []cel.EnvOption {
	var options []cel.EnvOption
	for name, of := range tenders() {
		make := func(arg ref.Val) ref.Val {
			value, err := literal(of.code, arg)
			if err != nil {
				return types.WrapErr(err)
			}
			return value
		}
		options = append(options, cel.Function(name,
			cel.Overload("money_"+name, []*cel.Type{of.arg()}, of.kind, cel.UnaryBinding(make))))
	}
	return options
}

func percentOf(arg ref.Val) ref.Val {
	value, err := percent(fmt.Sprint(arg.Value()))
	if err != nil {
		return types.WrapErr(err)
	}
	return value
}

type requester = actor.Actor

// provider tells CEL which fields our objects have.
type provider struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ours := objects[name]; ours {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if object, ours := objects[name]; ours {
		found := object(field)
		return found, found != nil
	}
	return p.Registry.FindStructFieldType(name, field)
}

// objects are the structured variables, and under "a …" the types of their parts. Each gives the type of a field and how to
// get it, or nil if there is no such field.
var objects map[string]func(field string) *types.FieldType

func init() {
	objects = map[string]func(string) *types.FieldType{
		"before":     cells("a value", (*scope).before),
		"after":      cells("a value", (*scope).after),
		"impact":     cells("a figure", (*scope).figure),
		"change":     changes,
		"target":     targets,
		"requester":  requesters,
		"input":      inputs,
		momentName:   moments,
		exposureName: exposures,
		"a cap":      capTotals,
		"a total":    func(name string) *types.FieldType { return cellField(name, false) },
		"a value":    func(name string) *types.FieldType { return cellField(name, name == "text") },
		"a figure":   func(name string) *types.FieldType { return cellField(name, name == "count") },
	}
}

// field makes a FieldType from a getter that reports what is missing by its error.
func field[T any](of *types.Type, get func(T) (any, error)) *types.FieldType {
	return &types.FieldType{
		Type:    of,
		IsSet:   func(object any) bool { _, err := get(object.(T)); return err == nil },
		GetFrom: func(object any) (any, error) { return get(object.(T)) },
	}
}

func cells(of string, get func(*scope, string) cell) func(string) *types.FieldType {
	kind := types.NewObjectType(of)
	return func(name string) *types.FieldType {
		return &types.FieldType{
			Type:    kind,
			IsSet:   func(object any) bool { return get(object.(*scope), name).known() },
			GetFrom: func(object any) (any, error) { return get(object.(*scope), name), nil },
		}
	}
}

func cellField(name string, own bool) *types.FieldType {
	switch {
	case own && name == "text":
		return field(types.StringType, func(c cell) (any, error) { return pointed(c.text, c.path) })
	case own && name == "count":
		return field(types.IntType, func(c cell) (any, error) { return pointed(c.count, c.path) })
	case name == "known":
		return field(types.BoolType, func(c cell) (any, error) { return c.known(), nil })
	case name == "currency":
		return field(types.StringType, func(c cell) (any, error) {
			return whenAmount(c, func(a money.Amount) any { return string(a.Currency) })
		})
	case name == "is_zero":
		return field(types.BoolType, func(c cell) (any, error) {
			return whenAmount(c, func(a money.Amount) any { return a.IsZero() })
		})
	}
	of, ok := tenders()[name]
	if !ok {
		return nil
	}
	return field(of.kind, func(c cell) (any, error) {
		if c.amount == nil || c.amount.Currency != of.code {
			return nil, missing{c.path + "." + name}
		}
		return amount{*c.amount}, nil
	})
}

func pointed[T any](value *T, path string) (any, error) {
	if value == nil {
		return nil, missing{path}
	}
	return *value, nil
}

func whenAmount(c cell, read func(money.Amount) any) (any, error) {
	if c.amount == nil {
		return nil, missing{c.path}
	}
	return read(*c.amount), nil
}

func changes(name string) *types.FieldType {
	return field(ratioType, func(s *scope) (any, error) {
		of, err := s.change(name)
		if err != nil {
			return nil, err
		}
		return relative(of), nil
	})
}

func inputs(name string) *types.FieldType {
	return field(types.DynType, func(s *scope) (any, error) {
		value, ok := s.facts.Input[name]
		if !ok || value == nil {
			return nil, missing{"input." + name}
		}
		return value, nil
	})
}

func targets(name string) *types.FieldType {
	return word("target."+name, map[string]func(connector.Target) string{
		"system": func(t connector.Target) string { return t.System },
		"kind":   func(t connector.Target) string { return t.Kind },
		"id":     func(t connector.Target) string { return t.ID },
		"name":   func(t connector.Target) string { return t.Name },
	}[name], func(s *scope) connector.Target { return s.facts.Plan.Target })
}

func requesters(name string) *types.FieldType {
	switch name {
	case "groups":
		return field(types.NewListType(types.StringType), func(s *scope) (any, error) { return s.facts.Requester.Groups, nil })
	case "roles":
		return field(types.NewListType(types.StringType), func(s *scope) (any, error) { return s.facts.Requester.Roles, nil })
	}
	return word("requester."+name, map[string]func(requester) string{
		"kind":         func(a requester) string { return string(a.Kind) },
		"issuer":       func(a requester) string { return a.Issuer },
		"subject":      func(a requester) string { return a.Subject },
		"on_behalf_of": func(a requester) string { return a.For },
		"owner":        func(a requester) string { return a.Owner },
		"client":       func(a requester) string { return a.Client },
		"tenant":       func(a requester) string { return a.Tenant },
	}[name], func(s *scope) requester { return s.facts.Requester })
}

// word makes a text field of which the empty text is missing.
func word[T any](path string, get func(T) string, from func(*scope) T) *types.FieldType {
	if get == nil {
		return nil
	}
	return field(types.StringType, func(s *scope) (any, error) {
		text := get(from(s))
		if text == "" {
			return nil, missing{path}
		}
		return text, nil
	})
}
