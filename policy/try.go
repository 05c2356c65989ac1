package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/internal/money"
)

// expectation is what a case says of its ruling. What it does not say is not compared.
type expectation struct {
	Verdict  Verdict      `yaml:"verdict"`
	Rule     *string      `yaml:"rule"`
	Needs    *[]seatsText `yaml:"needs"`
	Risk     *string      `yaml:"risk"`
	Confirm  *bool        `yaml:"confirm"`
	Abstain  *bool        `yaml:"abstain"`
	Warnings *[]string    `yaml:"warnings"`
	Message  *texts       `yaml:"message"`
	// Charges are what the change takes from each cap, as amounts.
	Charges *map[string]valueText `yaml:"charges"`
}

// riskNone is how a case says that no rule marks the change.
const riskNone = "none"

func (e expectation) check() error {
	if !slices.Contains([]Verdict{Allow, Require, Deny}, e.Verdict) {
		return fmt.Errorf("verdict is %s, %s or %s, not %q", Allow, Require, Deny, string(e.Verdict))
	}
	if e.Risk != nil && *e.Risk != RiskHigh && *e.Risk != riskNone {
		return fmt.Errorf("risk is %s or %s, not %q", RiskHigh, riskNone, *e.Risk)
	}
	var seats []seatsText
	if e.Needs != nil {
		seats = *e.Needs
	}
	var message texts
	if e.Message != nil {
		message = *e.Message
	}
	return errors.Join(checkSeats(seats), message.check())
}

// Difference is one thing that a ruling says and a case expected otherwise.
type Difference struct {
	What     string `json:"what"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Try rules on a case and says what is not as its author expected. Nothing means that the case is kept.
func (p *Policy) Try(c Case) (Ruling, []Difference) {
	var d differences
	facts, err := p.complete(c.Facts)
	if err != nil {
		d.compare("exposure", "a cap of this policy", err.Error())
	}
	got := p.Evaluate(facts)
	d.compare("verdict", string(c.expect.Verdict), string(got.Verdict))
	d.said("rule", c.expect.Rule, got.Rule)
	if c.expect.Needs != nil {
		d.compare("needs", sorted(requirement(*c.expect.Needs)), sorted(got.Needs))
	}
	if c.expect.Risk != nil {
		d.compare("risk", *c.expect.Risk, orNone(got.Risk))
	}
	d.flag("confirm", c.expect.Confirm, got.Confirm)
	d.flag("abstain", c.expect.Abstain, got.Abstain)
	if c.expect.Warnings != nil {
		d.compare("warnings", joined(*c.expect.Warnings), joined(codes(got.Warnings)))
	}
	if c.expect.Message != nil {
		for _, lang := range []string{"en", "ja"} {
			d.compare("message."+lang, (*c.expect.Message)[lang], got.Texts[lang])
		}
	}
	if c.expect.Charges != nil {
		d.compare("charges", chargesOf(*c.expect.Charges), chargesIn(got))
	}
	return got, d
}

func chargesOf(written map[string]valueText) string {
	var said []string
	for name, v := range written {
		if v.amount == nil {
			said = append(said, name+" "+notThere)
			continue
		}
		said = append(said, name+" "+v.amount.String())
	}
	return joined(said)
}

func chargesIn(r Ruling) string {
	var said []string
	for _, c := range r.Charges {
		said = append(said, c.Cap+" "+money.Amount{Minor: c.Minor, Currency: c.Currency}.String())
	}
	return joined(said)
}

type differences []Difference

func (d *differences) compare(what, expected, got string) {
	if expected != got {
		*d = append(*d, Difference{what, expected, got})
	}
}

func (d *differences) said(what string, expected *string, got string) {
	if expected != nil {
		d.compare(what, *expected, got)
	}
}

func (d *differences) flag(what string, expected *bool, got bool) {
	if expected != nil {
		d.compare(what, fmt.Sprint(*expected), fmt.Sprint(got))
	}
}

func orNone(risk string) string {
	if risk == "" {
		return riskNone
	}
	return risk
}

// sorted writes a requirement whatever the order of its seats, which means nothing.
func sorted(r Requirement) string {
	seats := map[string]int{}
	for _, s := range r {
		seats[Requirement{s}.String()]++
	}
	var all []string
	for _, text := range slices.Sorted(maps.Keys(seats)) {
		for range seats[text] {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func joined(list []string) string {
	return strings.Join(slices.Sorted(slices.Values(list)), ", ")
}
