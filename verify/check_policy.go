package verify

import (
	"context"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/policy"
)

var unmatched = Check{
	ID: "policy", Promise: "The configured policy is in its compiled form, and a change that no rule knows needs people",
	Run: func(_ context.Context, b *bench) (Proof, error) {
		if b.cfg.Rules == nil {
			return Proof{}, notApplicable("no policy is configured")
		}
		facts := policy.Facts{
			Action: noteAction, Input: connector.Input{"id": "x", "text": "new"}, Requester: agent,
			Plan: connector.Plan{
				Target:  connector.Target{System: noteSystem, Kind: "note", ID: "x", Name: "x"},
				Changes: []connector.Change{{Field: "text", Before: connector.Text(""), After: connector.Text("new")}},
			},
		}
		got := b.cfg.Rules.Evaluate(facts)
		if again := b.cfg.Rules.Evaluate(facts); again.Verdict != got.Verdict || again.Rule != got.Rule || got.Version != b.cfg.Rules.Version() {
			return Proof{}, fail("the same facts were ruled %s by %s and then %s by %s", got.Verdict, got.Rule, again.Verdict, again.Rule)
		}
		switch {
		case got.Verdict == policy.Require && len(got.Needs) > 0:
		case got.Rule != "default":
			return Proof{}, notApplicable("the rule %s says %s of every change, so that none is unmatched", got.Rule, got.Verdict)
		default:
			return Proof{}, fail("a change that no rule knows is ruled %s with %d seats, want people", got.Verdict, len(got.Needs))
		}
		return Proof{
			Control: fmt.Sprintf("the configured policy compiles: version %.12s…", b.cfg.Rules.Version()),
			Refusal: fmt.Sprintf("a change of an action that it does not know is not allowed: it needs %s", got.Needs),
		}, nil
	},
}
