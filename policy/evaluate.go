package policy

import "github.com/cutonce/cutonce/connector"

// The codes of the warnings that a policy adds to a ruling. Their texts are warning.CODE with the argument rule, and value
// for a missing value; a rule's own warning has text_en and text_ja.
const (
	// WarnRule is the message of a rule whose severity is warn.
	WarnRule = "policy_warning"
	// WarnMissing says that a rule that denies could not see a value, so that people are asked.
	WarnMissing = "policy_missing"
	// WarnError says that a rule could not be evaluated. Somebody must repair it.
	WarnError = "policy_error"
)

// Evaluate gives the ruling on one proposed change. It is a pure function of the policy and the facts: no I/O, no clock, no
// chance, and the same answer for concurrent callers. It cannot fail; whatever goes wrong makes the ruling stricter:
// an allow that cannot be told is not met, a require or a confirm is met, a deny asks the default people and says so in a warning, and a
// warn warns.
func (p *Policy) Evaluate(facts Facts) Ruling {
	s := &scope{facts: facts, policy: p}
	t := tally{policy: p, scope: s}
	for i := range p.rules {
		if r := &p.rules[i]; r.concerns(facts.Action) {
			t.count(r, r.ask(s))
		}
	}
	charges := t.charges()
	ruling := t.ruling()
	if ruling.Verdict != Deny {
		ruling.Charges = charges
	}
	ruling.Version, ruling.Warnings, ruling.Risk = p.version, t.warnings, t.risk
	return ruling
}

// tally collects what the rules said. The riskiest wins: deny, then require, then confirm, then allow.
type tally struct {
	policy    *Policy
	scope     *scope
	denied    *rule
	demands   []demand
	confirmed *rule
	allowed   *rule
	risk      string
	warnings  []connector.Warning
}

// demand is one met requirement with the rule behind it.
type demand struct {
	rule    *rule
	needs   Requirement
	abstain bool
	texts   map[string]string
}

func (t *tally) count(r *rule, a answer) {
	if a.unsure {
		t.doubt(r, a)
	}
	if r.risk != "" && (a.holds || a.unsure) {
		t.risk = r.risk
	}
	switch {
	case r.severity == denies && a.unsure:
		t.demands = append(t.demands, demand{r, t.policy.fallback.needs, t.policy.fallback.abstain, t.policy.fallback.texts})
	case r.severity == requires && (a.holds || a.unsure):
		t.demands = append(t.demands, demand{r, r.needs, r.abstain, r.texts})
	case r.severity == confirms && (a.holds || a.unsure):
		if t.confirmed == nil {
			t.confirmed = r
		}
	case r.severity == warns && (a.holds || a.unsure):
		t.warn(WarnRule, connector.Args{"rule": r.name, "text_en": r.texts["en"], "text_ja": r.texts["ja"]})
	case !a.holds:
	case r.severity == denies && t.denied == nil:
		t.denied = r
	case r.severity == allows && t.allowed == nil:
		t.allowed = r
	}
}

// doubt warns of a rule that is broken, and of a ceiling that could not be checked. Another rule that lacks a value is
// everyday business: a raise from zero has no percentage.
func (t *tally) doubt(r *rule, a answer) {
	switch {
	case a.missing == "":
		t.warn(WarnError, connector.Args{"rule": r.name})
	case r.severity == denies:
		t.warn(WarnMissing, connector.Args{"rule": r.name, "value": a.missing})
	}
}

func (t *tally) warn(code string, args connector.Args) {
	t.warnings = append(t.warnings, connector.Warning{Code: code, Args: args})
}

func (t *tally) ruling() Ruling {
	switch {
	case t.denied != nil:
		return t.by(Deny, t.denied, t.denied.texts)
	case len(t.demands) > 0:
		return t.required()
	case t.confirmed != nil:
		ruling := t.by(Require, t.confirmed, t.confirmed.texts)
		ruling.Confirm = true
		return ruling
	case t.allowed != nil:
		return t.by(Allow, t.allowed, t.allowed.texts)
	}
	ruling := t.by(Require, &t.policy.fallback, t.policy.fallback.texts)
	ruling.Needs, ruling.Abstain = t.policy.fallback.needs, t.policy.fallback.abstain
	return ruling
}

// required asks for everybody that any met rule asks for, and names the rule that asks for the most people (of equals, the
// first in the file).
func (t *tally) required() Ruling {
	top := t.demands[0]
	var needs Requirement
	abstain := true // a rejection is a veto as soon as one of the rules wants it so
	for _, d := range t.demands {
		needs = needs.and(d.needs)
		abstain = abstain && d.abstain
		if d.needs.people() > top.needs.people() {
			top = d
		}
	}
	ruling := t.by(Require, top.rule, top.texts)
	ruling.Needs, ruling.Abstain = needs, abstain
	return ruling
}

func (t *tally) by(verdict Verdict, r *rule, texts map[string]string) Ruling {
	return Ruling{Verdict: verdict, Rule: r.name, Texts: texts, Saw: t.scope.saw(r.looks)}
}
