package connector

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/internal/canon"
)

// Mask is what stands in the place of a hidden value. It is always the same, so that it tells nothing of the value's length.
const Mask = "••••••"

// Sensitive reports whether any field of the plan is.
func (p Plan) Sensitive() bool { return len(p.SensitiveFields()) > 0 }

// SensitiveFields names them, in their order.
func (p Plan) SensitiveFields() []string {
	var names []string
	for _, c := range p.Changes {
		if c.Sensitive {
			names = append(names, c.Field)
		}
	}
	return names
}

// Without is what a target said, without the values of the plan's sensitive fields: a text or number that holds one of them is the mask
// instead, whole. It is a second wall, which no other spelling of a value is caught by: evidence and refusals should name none.
func (p Plan) Without(said map[string]any) map[string]any {
	values := p.sensitiveValues()
	if len(values) == 0 || len(said) == 0 {
		return said
	}
	exact, err := canon.FromStruct(said)
	if err != nil {
		return map[string]any{"hidden": Mask}
	}
	return without(exact, values).(map[string]any)
}

// WithoutText is Without for a text.
func (p Plan) WithoutText(said string) string { return without(said, p.sensitiveValues()).(string) }

func without(said any, values []string) any {
	switch v := said.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[without(name, values).(string)] = without(member, values)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, member := range v {
			out = append(out, without(member, values))
		}
		return out
	case string:
		if holds(v, values) {
			return Mask
		}
	case json.Number:
		if holds(v.String(), values) {
			return Mask
		}
	}
	return said
}

func holds(text string, values []string) bool {
	return slices.ContainsFunc(values, func(value string) bool { return strings.Contains(text, value) })
}

func (p Plan) sensitiveValues() []string {
	var values []string
	for _, c := range p.Changes {
		for _, v := range []Value{c.Before, c.After} {
			switch {
			case !c.Sensitive:
			case v.Amount != nil:
				values = append(values, v.Amount.Decimal())
			case v.Text != nil && *v.Text != "":
				values = append(values, *v.Text)
			}
		}
	}
	return values
}
