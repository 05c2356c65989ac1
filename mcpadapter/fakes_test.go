package mcpadapter_test

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// scripted is the three ports, answering what a test says. It is for what the real core cannot be brought to do: panics,
// leaks, answers that break the schema, and every status at every call.
type scripted struct {
	change   commit.Change
	replayed bool
	err      error
	page     connector.Page
	// before runs first in every call.
	before func()
}

func (s *scripted) begin() {
	if s.before != nil {
		s.before()
	}
}

func (s *scripted) Prepare(context.Context, actor.Actor, preview.Request) (preview.Prepared, error) {
	s.begin()
	return preview.Prepared{Preview: s.change.Preview, Replayed: s.replayed}, s.err
}

func (s *scripted) Find(context.Context, actor.Actor, string, []byte) (connector.Page, error) {
	s.begin()
	return s.page, s.err
}

func (s *scripted) Cancel(context.Context, actor.Actor, preview.ID, string) (preview.Preview, error) {
	s.begin()
	return s.change.Preview, s.err
}

func (s *scripted) Request(context.Context, actor.Actor, preview.ID, string) (preview.Preview, error) {
	s.begin()
	return s.change.Preview, s.err
}

func (s *scripted) Apply(context.Context, actor.Actor, string, preview.ID, time.Duration) (commit.Change, error) {
	s.begin()
	return s.change, s.err
}

func (s *scripted) Status(context.Context, actor.Actor, preview.ID, time.Duration, bool) (commit.Change, error) {
	return s.change, nil
}

func (s *scripted) List(context.Context, actor.Actor, commit.Filter) ([]commit.Change, string, error) {
	s.begin()
	return []commit.Change{s.change}, "", s.err
}

// behind puts the scripted ports behind a door, in place of the core and its database.
func behind(s *scripted) func(*rig) {
	return func(r *rig) { r.deps.Changes, r.deps.Commits, r.deps.Approvals = s, s, s }
}

var databaseNow = time.Date(2026, 7, 28, 9, 0, 0, 0, time.UTC)

// changeIn is a change that stands at a status, with everything that a reader may be shown of it.
func changeIn(status commit.Status, reason commit.Reason) commit.Change {
	before, after := money.Amount{Minor: 10000, Currency: "JPY"}, money.Amount{Minor: 12000, Currency: "JPY"}
	document := []byte(`{}`)
	at := databaseNow.Add(-time.Minute)
	c := commit.Change{Status: status, Now: databaseNow, Preview: preview.Preview{
		ID: preview.NewID(), Tenant: "acme", Action: "budget_change", ActionVersion: 1, Document: document, Digest: canon.Sum(document),
		Requester: actor.Actor{Tenant: "acme", Kind: actor.Agent, Subject: "bot", For: "sato@agency.example"},
		CreatedAt: at, State: stateOf(status), Deadline: databaseNow.Add(time.Minute), Round: 1,
		Justification: "because", EndedBy: "kim@agency.example", EndReason: "no",
		Ruling: policy.Ruling{Verdict: policy.Require, Rule: "large-raise", Version: "v1", Saw: map[string]string{"change": "+60%"},
			Needs: policy.Requirement{{AnyOf: []string{"ads-approvers"}, Count: 1}}},
		Votes: []preview.Vote{{Person: "p", Name: "kim@agency.example", Approve: true, Reason: "ok", Digest: canon.Sum(document), Round: 1, At: at}},
		Content: preview.Content{
			Input: connector.Input{"campaign_id": "2002001", "new_daily_budget_jpy": json.Number("12000"), "reason": "r"},
			Plan: connector.Plan{
				Target: connector.Target{System: "s", Kind: "campaign", ID: "2002001", Name: "名前"}, Version: "v",
				Request: connector.Request{Method: "PATCH", Path: "/x", Body: json.RawMessage(`{}`)},
				Changes: []connector.Change{{Field: "daily_budget", Before: connector.Money(before), After: connector.Money(after)}, {Field: "note"}},
			},
			Impact: connector.Impact{
				Summary: connector.Say("tool.minutes", connector.Args{"minutes": 1}), Reversal: connector.Say("tool.minutes", connector.Args{"minutes": 1}),
				Figures:  []connector.Figure{{Name: "daily_before", Amount: &before}, {Name: "unknown"}},
				Warnings: []connector.Warning{{Code: "lookalike", Args: connector.Args{"names": "x"}}},
			},
		},
	}}
	if c.Preview.State == preview.Claimed {
		c.Executions = []commit.Execution{executionIn(status, reason)}
	}
	return c
}

// stateOf is the state of a preview that shows as the status.
func stateOf(status commit.Status) preview.State {
	if state := preview.State(status); slices.Contains(preview.States(), state) {
		return state
	}
	return preview.Claimed
}

func executionIn(status commit.Status, reason commit.Reason) commit.Execution {
	e := commit.Execution{
		State: commit.State(status), Reason: reason, StartedAt: databaseNow.Add(-time.Second), LeaseUntil: databaseNow.Add(time.Second),
		SettleAt: databaseNow.Add(time.Minute), NextProbeAt: databaseNow.Add(time.Second), Detail: map[string]any{"reason": "said"},
	}
	if status == commit.StatusApplied {
		e.Evidence = commit.ByReceipt
	}
	if reason == commit.ByOperator {
		e.ResolvedBy, e.ResolvedWhy = "op", "looked"
	}
	return e
}
