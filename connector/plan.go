package connector

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/internal/visible"
)

// Target is the one thing changed. ID is the canonical ID that the read returned, never the spelling of the input.
type Target struct {
	System string `json:"system"`
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	// Name is for people; it does not identify.
	Name string `json:"name"`
}

// Key is what the target lock is taken on. It is the same for every connector, spelling and tenant that means this thing.
func (t Target) Key() string {
	var b strings.Builder
	for i, part := range []string{t.System, t.Kind, t.ID} {
		if i > 0 {
			b.WriteByte('|')
		}
		_, _ = keyEscaper.WriteString(&b, part) // a strings.Builder never fails
	}
	return b.String()
}

var keyEscaper = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// Shown is the name as people read it, or the ID of what has none.
func (t Target) Shown() string {
	if t.Name == "" {
		return visible.Text(t.ID)
	}
	return visible.Text(t.Name)
}

// Named reports whether somebody has written out the name as it is shown, in whatever way their keyboard composes it.
func (t Target) Named(text string) bool {
	return visible.Same(strings.TrimSpace(text), strings.TrimSpace(t.Shown()))
}

// Plan is the exact change: what will be sent, and what the target looked like when it was made. It is stored as canonical
// JSON under the digest that people approve.
type Plan struct {
	Target  Target  `json:"target"`
	Version string  `json:"version"`
	Request Request `json:"request"`
	// Changes are the fields before and after, in the order to show them.
	Changes []Change `json:"changes"`
}

// Clone is a copy that shares nothing with the plan: what a connector is handed for a send must not be able to change what others are
// shown under the same digest.
func (p Plan) Clone() Plan {
	p.Request.Body = bytes.Clone(p.Request.Body)
	p.Changes = slices.Clone(p.Changes)
	for i, c := range p.Changes {
		p.Changes[i].Before, p.Changes[i].After = c.Before.clone(), c.After.clone()
	}
	return p
}

// Moved reports whether the target is not as the plan says: it compares versions, or the shown fields where the target has no version.
func (p Plan) Moved(now Reading) bool {
	if p.Version != "" || now.Version != "" {
		return p.Version != now.Version
	}
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return !c.Before.Equal(now.Values[c.Field]) })
}

// Request is what is sent, byte for byte. Credentials and the key header are added by the connector and are not part of it.
type Request struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`
	// Precondition is sent as the target's precondition (If-Match), empty if it has none.
	Precondition string `json:"precondition,omitempty"`
}

// Change is one field of the target.
type Change struct {
	Field  string `json:"field"`
	Before Value  `json:"before"`
	After  Value  `json:"after"`
	// Sensitive says that both values are secret or personal: they are hashed, approved and sent like all others, and hidden from
	// everybody who reads the change until somebody who may has them revealed, on record. Nothing else of the plan's and the
	// impact's may name them but the request's body and the input.
	Sensitive bool `json:"sensitive,omitempty"`
}

// Value is a field's value: an amount of money, a text, or not known (both empty).
type Value struct {
	Amount *money.Amount `json:"amount,omitempty"`
	Text   *string       `json:"text,omitempty"`
}

func (v Value) clone() Value {
	if v.Amount != nil {
		amount := *v.Amount
		v.Amount = &amount
	}
	if v.Text != nil {
		text := *v.Text
		v.Text = &text
	}
	return v
}

// Money makes an amount a Value.
func Money(a money.Amount) Value { return Value{Amount: &a} }

// Text makes a string a Value.
func Text(s string) Value { return Value{Text: &s} }

// Known reports whether there is a value at all.
func (v Value) Known() bool { return v.Amount != nil || v.Text != nil }

// Equal compares values exactly.
func (v Value) Equal(w Value) bool {
	switch {
	case v.Amount != nil && w.Amount != nil:
		return *v.Amount == *w.Amount
	case v.Text != nil && w.Text != nil:
		return *v.Text == *w.Text
	}
	return !v.Known() && !w.Known()
}

// Impact is what the change does, computed by the service and never by the agent.
type Impact struct {
	// Summary is the change in one plain sentence.
	Summary  Message   `json:"summary"`
	Figures  []Figure  `json:"figures"`
	Warnings []Warning `json:"warnings"`
	// Reversible says whether the change can be put back; Reversal says how, or why not.
	Reversible bool    `json:"reversible"`
	Reversal   Message `json:"reversal"`
}

// Figure is one number of the impact. Exactly one of Amount, Percent and Count is set; none means "unknown", which is shown
// as that word and never as 0. Its label is figure.NAME in the catalogue.
type Figure struct {
	Name   string        `json:"name"`
	Amount *money.Amount `json:"amount,omitempty"`
	// Percent is an exact decimal, or one rounded to two places with Rounded set. Policies compare amounts, not this.
	Percent string `json:"percent,omitempty"`
	Rounded bool   `json:"rounded,omitempty"`
	Count   *int64 `json:"count,omitempty"`
}

// Warning is something unusual that a person should see and that a policy can use by its Code. Its text is warning.CODE.
type Warning struct {
	Code string `json:"code"`
	Args Args   `json:"args,omitempty"`
}
