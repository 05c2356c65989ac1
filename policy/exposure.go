package policy

import (
	"fmt"
	"slices"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/cutonce/cutonce/internal/money"
)

// Exposure is what the changes that one cap counts come to, in the scope, currency and present window of one change, which is not among
// them. It is a picture: caps are kept where changes are approved, whatever a rule or a person made of it.
type Exposure struct {
	Cap    string `json:"cap"`
	Per    string `json:"per"`
	Window string `json:"window"`
	// Limit is for the whole window. Its currency is empty where it is not known, which only a case can leave out.
	Limit money.Amount `json:"limit"`
	// Applied has been applied. Reserved is taken by changes that are approved or being applied, Unknown by those of which nobody knows;
	// both count as if they were applied. Pending is what changes ask for that wait for people: it takes nothing yet.
	Applied  money.Amount `json:"applied"`
	Reserved money.Amount `json:"reserved"`
	Unknown  money.Amount `json:"unknown"`
	Pending  money.Amount `json:"pending"`
	// Asked is what this change takes.
	Asked    money.Amount `json:"asked"`
	ResetsAt time.Time    `json:"resets_at"`
}

// Left is what the limit leaves before this change; less than nothing where the limit has come down.
func (e Exposure) Left() (money.Amount, error) {
	left := e.Limit
	for _, taken := range []money.Amount{e.Applied, e.Reserved, e.Unknown} {
		var err error
		if left, err = left.Sub(taken); err != nil {
			return money.Amount{}, fmt.Errorf("what the cap %s leaves: %w", e.Cap, err)
		}
	}
	return left, nil
}

// UsesExposure reports whether any rule looks at what changes add up to, so that Facts.Exposure is needed.
func (p *Policy) UsesExposure() bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool { return r.exposed })
}

// Counted are the shares by which the totals of a change's caps are asked for: of each cap that is about it and can measure it, whether
// or not it takes anything. It is as pure as Evaluate.
func (p *Policy) Counted(facts Facts) []Charge {
	s := &scope{facts: facts, policy: p}
	var all []Charge
	for _, c := range p.caps {
		if charge, measured := c.measure(s); measured {
			all = append(all, charge)
		}
	}
	return all
}

// totals are what a rule may look at of a cap.
var totals = map[string]func(Exposure) (money.Amount, error){
	"limit":    func(e Exposure) (money.Amount, error) { return e.Limit, nil },
	"applied":  func(e Exposure) (money.Amount, error) { return e.Applied, nil },
	"reserved": func(e Exposure) (money.Amount, error) { return e.Reserved, nil },
	"unknown":  func(e Exposure) (money.Amount, error) { return e.Unknown, nil },
	"pending":  func(e Exposure) (money.Amount, error) { return e.Pending, nil },
	"left":     func(e Exposure) (money.Amount, error) { return e.Left() },
}

const exposureName = "exposure"

// exposed is exposure.CAP in a rule.
type exposed struct {
	of  *scope
	cap string
}

// total is exposure.CAP.TOTAL: an amount, or nothing known where the cap does not measure the change or nobody has asked.
func (s *scope) total(name, which string) cell {
	found := cell{path: exposureName + "." + name + "." + which}
	for _, e := range s.facts.Exposure {
		if e.Cap != name {
			continue
		}
		if amount, err := totals[which](e); err == nil && amount.Currency != "" {
			found.amount = &amount
		}
	}
	return found
}

// exposures gives exposure any field that could be a cap's name; inspect refuses those that are none.
func exposures(name string) *types.FieldType {
	return &types.FieldType{
		Type: types.NewObjectType("a cap"),
		IsSet: func(object any) bool {
			s := object.(*scope)
			return slices.ContainsFunc(s.facts.Exposure, func(e Exposure) bool { return e.Cap == name })
		},
		GetFrom: func(object any) (any, error) { return exposed{object.(*scope), name}, nil },
	}
}

// capTotals are the fields of exposure.CAP.
func capTotals(name string) *types.FieldType {
	if totals[name] == nil {
		return nil
	}
	return &types.FieldType{
		Type: types.NewObjectType("a total"),
		IsSet: func(object any) bool {
			e := object.(exposed)
			return e.of.total(e.cap, name).known()
		},
		GetFrom: func(object any) (any, error) {
			e := object.(exposed)
			return e.of.total(e.cap, name), nil
		},
	}
}
