package answer

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// Freezes is what is frozen.
type Freezes struct {
	Message string   `json:"message"`
	Items   []Freeze `json:"items"`
	Next    string   `json:"next"`
}

// Freeze is one freeze. Message says it whole, in a sentence.
type Freeze struct {
	Kind    string     `json:"kind"`
	Name    string     `json:"name,omitempty"`
	Message string     `json:"message"`
	By      string     `json:"by"`
	Reason  string     `json:"reason"`
	Since   time.Time  `json:"since"`
	Until   *time.Time `json:"until,omitempty"`
}

// Frozen answers who has frozen something: the freeze, and what was claimed before it and is not settled.
type Frozen struct {
	Message  string   `json:"message"`
	Freeze   Freeze   `json:"freeze"`
	InFlight []Change `json:"in_flight"`
	// More says that more is in flight than is listed.
	More bool   `json:"more,omitempty"`
	Next string `json:"next"`
}

// Freezes writes what is frozen.
func (w Writer) Freezes(all []commit.Freeze) Freezes {
	out := Freezes{Message: w.Texts.T("freeze.count", map[string]any{"n": len(all)}), Items: []Freeze{}, Next: string(fault.NextNone)}
	for _, f := range all {
		out.Items = append(out.Items, w.Freeze(f))
	}
	return out
}

// Freeze writes one freeze.
func (w Writer) Freeze(f commit.Freeze) Freeze {
	args := fault.Args{"name": f.Name, "by": f.By, "reason": f.Reason}
	key := "freeze." + string(f.Kind)
	if f.Until != nil {
		key, args["until"] = key+"_until", f.Until.UTC().Format(time.RFC3339)
	}
	out := Freeze{
		Kind: string(f.Kind), Name: visible.Text(f.Name), Message: w.text(key, args), By: visible.Text(f.By), Reason: f.Reason, Since: f.At.UTC(),
	}
	if f.Until != nil {
		out.Until = when(*f.Until)
	}
	return out
}

// Frozen writes the answer to a freeze call.
func (w Writer) Frozen(f commit.Frozen) Frozen {
	out := Frozen{Freeze: w.Freeze(f.Freeze), InFlight: []Change{}, More: f.More, Next: string(fault.NextNone)}
	for _, c := range f.InFlight {
		out.InFlight = append(out.InFlight, w.Change(c))
	}
	onTheirWay := w.Texts.T("freeze.none_in_flight", nil)
	if n := len(f.InFlight); n > 0 {
		onTheirWay = w.Texts.T("freeze.in_flight", map[string]any{"n": n})
	}
	out.Message = w.Texts.T("join.sentences", map[string]any{"first": w.ended(out.Freeze.Message), "second": onTheirWay})
	return out
}

// ended is a text with a full stop, which one that ends in somebody's own words may lack.
func (w Writer) ended(text string) string {
	if last, _ := utf8.DecodeLastRuneInString(text); strings.ContainsRune(".!?…。！？", last) {
		return text
	}
	return text + w.Texts.T("join.full_stop", nil)
}

// Lifted writes the answer to the end of a freeze.
func (w Writer) Lifted() Body {
	return Body{Message: w.Texts.T("freeze.lifted", nil), Next: string(fault.NextNone)}
}
