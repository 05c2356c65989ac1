package policy

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/money"
)

// Charge is what one change takes from one cap, computed from the policy and the facts alone. Whether there is room is asked when
// the change is approved, against what is live then. It is stored with the ruling, so its JSON names are part of the schema.
type Charge struct {
	Cap string `json:"cap"`
	Per string `json:"per"`
	// Scope names the target, account or requester that the cap counts for; it is empty per tenant.
	Scope  string `json:"scope"`
	Window string `json:"window"`
	// Zone is where the window begins and ends.
	Zone     string         `json:"zone"`
	Currency money.Currency `json:"currency"`
	// Minor is the gross increase; a decrease is 0 and gives nothing back. Before is the value that this change found.
	Minor  int64 `json:"minor"`
	Before int64 `json:"before"`
	// Limit is the amount in minor units; where Percent is set instead, it is that much of the value at the window's start.
	Limit   *int64 `json:"limit,omitempty"`
	Percent string `json:"percent,omitempty"`
}

// Exceeded says that a cap has no room for a change. It is stored with the ruling that denies for it.
type Exceeded struct {
	Cap    string `json:"cap"`
	Per    string `json:"per"`
	Window string `json:"window"`
	// Limit is for the whole window; Used has been applied in it; Held is taken by changes that are approved, being applied or
	// unknown, and Unknown is the part of it of which nobody knows whether it was applied; Asked is what this change needs.
	Limit    money.Amount `json:"limit"`
	Used     money.Amount `json:"used"`
	Held     money.Amount `json:"held"`
	Unknown  money.Amount `json:"unknown"`
	Asked    money.Amount `json:"asked"`
	ResetsAt time.Time    `json:"resets_at"`
}

// Error is for logs.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("the cap %s would be exceeded: limit %s, used %s, held %s, asked %s", e.Cap, e.Limit, e.Used, e.Held, e.Asked)
}

// Ruling is the denial that a change gets for it at prepare.
func (e *Exceeded) Ruling(of Ruling) Ruling {
	of.Verdict, of.Rule, of.Exceeded = Deny, capRule(e.Cap), e
	of.Needs, of.Texts, of.Saw, of.Confirm, of.Abstain = nil, nil, nil, false, false
	return of
}

// capRule is how a cap is named where a rule's name is expected. No rule can have such a name.
func capRule(name string) string { return "cap:" + name }

// capText is a cap as written.
type capText struct {
	Name    string    `yaml:"name"`
	Actions []string  `yaml:"actions"`
	Field   string    `yaml:"field"`
	Per     string    `yaml:"per"`
	Window  string    `yaml:"window"`
	Limit   limitText `yaml:"limit"`
}

// limitText is {KRW: 1000000, USD: "5000.00"} or {percent: 50}.
type limitText struct {
	amounts map[money.Currency]int64
	percent string
}

// UnmarshalYAML reads either form and nothing else.
func (l *limitText) UnmarshalYAML(node ast.Node) error {
	line := node.GetToken().Position.Line
	var written map[string]decimalText
	if err := yaml.NodeToValue(node, &written); err != nil {
		return err
	}
	if of, ok := written["percent"]; ok {
		if len(written) > 1 {
			return fmt.Errorf("line %d: limit is amounts or a percentage, not both", line)
		}
		value, err := percent(string(of))
		if err != nil || value.Cmp(new(big.Rat)) <= 0 {
			return fmt.Errorf("line %d: limit: %q is no percentage above zero", line, string(of))
		}
		l.percent = string(of)
		return nil
	}
	l.amounts = map[money.Currency]int64{}
	for code, decimal := range written {
		amount, err := money.Parse(string(decimal), money.Currency(code))
		if err != nil || amount.Minor < 0 {
			return fmt.Errorf("line %d: limit: %s %s is no amount: write KRW: 1000000 or USD: \"5000.00\"", line, code, string(decimal))
		}
		l.amounts[amount.Currency] = amount.Minor
	}
	return nil
}

// decimalText is a number as it was written.
type decimalText string

// UnmarshalYAML keeps the digits.
func (d *decimalText) UnmarshalYAML(node ast.Node) error {
	switch n := node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		*d = decimalText(node.GetToken().Value)
	case *ast.StringNode:
		*d = decimalText(n.Value)
	default:
		return fmt.Errorf("line %d: %s is not a number", node.GetToken().Position.Line, node)
	}
	return nil
}

// capNames are shorter than rules' names and hold no hyphens, so that expressions could name them.
var capNames = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func (c capText) check() error {
	switch {
	case !capNames.MatchString(c.Name):
		return errors.New("a cap's name is lower-case letters, digits and underscores")
	case len(c.Actions) == 0 || slices.Contains(c.Actions, ""):
		return errors.New("actions must name the actions that it counts")
	case c.Field == "":
		return errors.New("field must name the field whose increase counts, such as daily_budget")
	case !slices.Contains([]string{"target", "account", "requester", "tenant"}, c.Per):
		return fmt.Errorf("per is target, account, requester or tenant, not %q", c.Per)
	case !slices.Contains([]string{"hour", "day", "week", "month"}, c.Window):
		return fmt.Errorf("window is hour, day, week or month, not %q", c.Window)
	case len(c.Limit.amounts) == 0 && c.Limit.percent == "":
		return errors.New("limit is missing: {KRW: 1000000} or {percent: 50}")
	case c.Limit.percent != "" && c.Per != "target":
		return errors.New("a limit in percent of the value at the window's start is per target: only one thing has one value")
	}
	return nil
}

// capsOf collects the caps of all files. They need the policy's zone, for that is where windows begin.
func capsOf(sources []source, w when) ([]capText, error) {
	var all []capText
	for _, s := range sources {
		for _, c := range s.Caps {
			switch {
			case w.zone == nil:
				return nil, fmt.Errorf("policy %s: cap %s: declare where its windows begin, at the top of a policy file: zone: Asia/Tokyo", s.name, c.Name)
			case slices.ContainsFunc(all, func(other capText) bool { return other.Name == c.Name }):
				return nil, fmt.Errorf("policy %s: there is a second cap %s", s.name, c.Name)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// describe is the cap's part of the policy's version.
func (c capText) describe() map[string]any {
	limit := map[string]any{"percent": c.Limit.percent}
	for code, minor := range c.Limit.amounts {
		limit[string(code)] = fmt.Sprint(minor)
	}
	return map[string]any{
		"name": c.Name, "actions": list(slices.Sorted(slices.Values(c.Actions))), "field": c.Field, "per": c.Per, "window": c.Window, "limit": limit,
	}
}

// charge is what one change takes. counts is false where the cap is not about it or it takes nothing; missing is set where that
// cannot be told, because a value is not known or its currency has no limit.
func (c capText) charge(s *scope) (charge Charge, counts bool, missing string) {
	charge, measured := c.measure(s)
	switch {
	case !slices.Contains(c.Actions, s.facts.Action):
		return charge, false, ""
	case charge.Currency == "":
		return charge, false, "change." + c.Field
	case !measured && charge.Minor > 0:
		return charge, false, fmt.Sprintf("limit.%s", charge.Currency)
	}
	// A decrease counts for a percentage as well: it tells what the value was when the window began.
	return charge, charge.Percent != "" || charge.Minor > 0, ""
}

// measure is the share of one change, which may be nothing. measured is false where the cap is not about the change, a value is not known
// (the share then has no currency), or its currency has no limit.
func (c capText) measure(s *scope) (charge Charge, measured bool) {
	change := s.field(c.Field)
	before, after := change.Before.Amount, change.After.Amount
	if !slices.Contains(c.Actions, s.facts.Action) || before == nil || after == nil {
		return Charge{}, false
	}
	increase, err := after.Sub(*before)
	if err != nil {
		return Charge{}, false
	}
	charge = Charge{
		Cap: c.Name, Per: c.Per, Scope: c.scope(s.facts), Window: c.Window, Zone: s.policy.when.zoneName, Currency: before.Currency,
		Minor: max(increase.Minor, 0), Before: before.Minor, Percent: c.Limit.percent,
	}
	if c.Limit.percent != "" {
		return charge, true
	}
	limit, known := c.Limit.amounts[before.Currency]
	charge.Limit = &limit
	return charge, known
}

func (c capText) scope(f Facts) string {
	switch c.Per {
	case "target":
		return f.Plan.Target.Key()
	case "account":
		return f.Plan.Target.System
	case "requester":
		return f.Requester.ID()
	}
	return ""
}

// charges measures a change against every cap. A cap that cannot tell asks the default's people, as a deny does.
func (t *tally) charges() (all []Charge) {
	for _, c := range t.policy.caps {
		charge, counts, missing := c.charge(t.scope)
		if missing != "" {
			t.warn(WarnMissing, connector.Args{"rule": capRule(c.Name), "value": missing})
			fallback := t.policy.fallback
			t.demands = append(t.demands, demand{&rule{name: capRule(c.Name)}, fallback.needs, fallback.abstain, fallback.texts})
		}
		if counts {
			all = append(all, charge)
		}
	}
	return all
}
