package connectortest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/connectortest"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
)

// mutant is a good connector with one dishonest habit.
type mutant struct {
	*adbudget.Connector
	execute   func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error)
	lookup    func(f connector.Finding, err error, p connector.Plan) (connector.Finding, error)
	prepare   func(ctx context.Context, c *adbudget.Connector, p *connector.Plan, i *connector.Impact)
	authorize func(p connector.Permission, err error) (connector.Permission, error)
}

func (m *mutant) Execute(ctx context.Context, p connector.Plan, call connector.Call) (connector.Receipt, error) {
	if m.execute != nil {
		return m.execute(ctx, m.Connector, p, call)
	}
	return m.Connector.Execute(ctx, p, call)
}

func (m *mutant) Lookup(ctx context.Context, p connector.Plan, call connector.Call) (connector.Finding, error) {
	f, err := m.Connector.Lookup(ctx, p, call)
	if m.lookup != nil {
		return m.lookup(f, err, p)
	}
	return f, err
}

func (m *mutant) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	p, i, err := m.Connector.Prepare(ctx, who, action, in)
	if m.prepare != nil && err == nil {
		m.prepare(ctx, m.Connector, &p, &i)
	}
	return p, i, err
}

func (m *mutant) Authorize(ctx context.Context, who actor.Actor, verb connector.Verb, at connector.Target) (connector.Permission, error) {
	p, err := m.Connector.Authorize(ctx, who, verb, at)
	if m.authorize != nil {
		return m.authorize(p, err)
	}
	return p, err
}

// rewrite makes a habit of answering one class of outcomes with another.
func rewrite(from connector.Class, to func(error) error) func(context.Context, *adbudget.Connector, connector.Plan, connector.Call) (connector.Receipt, error) {
	return func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error) {
		receipt, err := c.Execute(ctx, p, call)
		if connector.Classify(err) == from {
			err = to(err)
		}
		return receipt, err
	}
}

// mutants are the habits, each with the part of the suite that must catch it.
func mutants() map[string]struct {
	part  string
	habit mutant
} {
	var prepared atomic.Int64
	refuse := func(err error) error { return connector.Rejected(400, err.Error()) }
	return map[string]struct {
		part  string
		habit mutant
	}{
		"calls every failure not sent":  {"send", mutant{execute: rewrite(connector.ClassUnknown, connector.NotSent)}},
		"calls every failure a refusal": {"answers/404_page_after_the_effect", mutant{execute: rewrite(connector.ClassUnknown, refuse)}},
		"calls every failure a success": {"send/cut_before_the_reply", mutant{
			execute: rewrite(connector.ClassUnknown, func(error) error { return nil })}},
		"never proves that nothing left": {"send/never_left", mutant{
			execute: rewrite(connector.ClassNotSent, func(err error) error { return errors.New(err.Error()) })}},
		"calls a drift a refusal": {"target/moved", mutant{execute: rewrite(connector.ClassDrifted, refuse)}},
		"calls a refusal unknown": {"target/refused", mutant{
			execute: rewrite(connector.ClassRefused, func(err error) error { return errors.New(err.Error()) })}},
		"sends again when in doubt": {"send/cut_before_the_target_saw_it", mutant{
			execute: func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error) {
				receipt, err := c.Execute(ctx, p, call)
				if connector.Classify(err) == connector.ClassUnknown {
					return c.Execute(ctx, p, call)
				}
				return receipt, err
			}}},
		"looks up by value": {"lookup/values_are_no_mark", mutant{
			lookup: func(f connector.Finding, err error, p connector.Plan) (connector.Finding, error) {
				if f.Now[adbudget.FieldBudget].Equal(p.Changes[0].After) {
					f.Found = connector.EffectFound
				}
				return f, err
			}}},
		"takes no answer for absence": {"lookup", mutant{
			lookup: func(f connector.Finding, err error, _ connector.Plan) (connector.Finding, error) {
				if err != nil || f.Found == connector.EffectUnsure {
					return connector.Finding{Found: connector.EffectAbsent}, nil
				}
				return f, err
			}}},
		"never finds anything": {"lookup/after_the_effect", mutant{
			lookup: func(connector.Finding, error, connector.Plan) (connector.Finding, error) {
				return connector.Finding{Found: connector.EffectUnsure}, nil
			}}},
		"changes while it prepares": {"prepare/read-only", mutant{
			prepare: func(ctx context.Context, c *adbudget.Connector, p *connector.Plan, _ *connector.Impact) {
				_, _ = c.Execute(ctx, *p, connector.Call{Key: "prepare"})
			}}},
		"prepares differently each time": {"prepare/deterministic", mutant{
			prepare: func(_ context.Context, _ *adbudget.Connector, p *connector.Plan, _ *connector.Impact) {
				p.Request.Path += fmt.Sprintf("?n=%d", prepared.Add(1))
			}}},
		"plans another version than it read": {"prepare/the_plan_stands_on_its_own", mutant{
			prepare: func(_ context.Context, _ *adbudget.Connector, p *connector.Plan, _ *connector.Impact) {
				p.Version = "*"
			}}},
		"names what it hides": {"prepare/the_plan_stands_on_its_own", mutant{
			prepare: func(_ context.Context, _ *adbudget.Connector, p *connector.Plan, i *connector.Impact) {
				p.Changes[0].Sensitive = true
				i.Summary.Args["again"] = p.Changes[0].After.Amount.Decimal()
			}}},
		"has a warning without a text": {"describe", mutant{
			prepare: func(_ context.Context, _ *adbudget.Connector, _ *connector.Plan, i *connector.Impact) {
				i.Warnings = append(i.Warnings, connector.Warning{Code: "unheard_of"})
			}}},
		"allows when nobody answers": {"prepare/no_answer_is_no_preview", mutant{
			authorize: func(p connector.Permission, err error) (connector.Permission, error) {
				return connector.Permission{Allowed: p.Allowed || err != nil}, nil
			}}},
	}
}

const habitVariable = "CONNECTORTEST_HABIT"

// TestSuiteCatches runs the suite on each mutant in a process of its own and wants it to fail there, and to pass the very
// same part without the habit.
func TestSuiteCatches(t *testing.T) {
	t.Parallel()
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for habit, wantFailure := range map[string]bool{name: true, "": false} {
				pattern := "^TestMutant$"
				for part := range strings.SplitSeq(m.part, "/") {
					pattern += "/^" + part + "$"
				}
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern, "-test.count=1", "-test.v")
				cmd.Env = append(os.Environ(), habitVariable+"=habit:"+habit)
				out, err := cmd.CombinedOutput()
				if !strings.Contains(string(out), "/"+m.part) {
					t.Fatalf("there is no part %s:\n%s", m.part, out)
				}
				if failed := err != nil; failed != wantFailure {
					t.Errorf("with the habit %q the part %s failed: %t, want %t\n%s", habit, m.part, failed, wantFailure, out)
				}
			}
		})
	}
}

// TestMutant is the suite in that other process.
func TestMutant(t *testing.T) {
	t.Parallel()
	habit, asked := strings.CutPrefix(os.Getenv(habitVariable), "habit:")
	if !asked {
		t.Skip("runs in the processes of TestSuiteCatches")
	}
	connectortest.Run(t, connectortest.Subject{New: func(t *testing.T) connectortest.Rig { return mutantRig(t, mutants()[habit].habit) }})
}

func mutantRig(t *testing.T, habit mutant) connectortest.Rig {
	t.Helper()
	const token = "simulator-token"
	ads := target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: token}, Seed: 1})
	server := httptest.NewServer(ads)
	t.Cleanup(func() { _ = ads.Close(); server.Close() })
	id := target.PlainJPY(0)
	edit := func(e target.CampaignEdit) func(*testing.T) {
		return func(t *testing.T) {
			if _, err := ads.Edit(id, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	return connectortest.Rig{
		Address: strings.TrimPrefix(server.URL, "http://"),
		At: func(t *testing.T, address string) connector.Connector {
			c, err := adbudget.New(adbudget.Config{BaseURL: "http://" + address, Token: token, System: "ads.example/agency"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			m := habit
			m.Connector = c
			return &m
		},
		Actor:  actor.Actor{Tenant: "t1", Kind: actor.Human, Issuer: "https://issuer.example", Subject: target.UserSato},
		Action: adbudget.ActionName,
		Input: connector.Input{
			"campaign_id": id, "new_daily_budget_jpy": json.Number("12000"), "reason": "the suite",
		},
		Effects: func(key string) int { return ads.CountersFor(key).Effects },
		State:   func() string { return fmt.Sprint(ads.Campaigns(), ads.Entries(), ads.Counters().Total) },
		Move:    edit(target.CampaignEdit{DailyBudget: "11000"}),
		Refuse:  edit(target.CampaignEdit{Status: target.StatusRemoved}),
		Finds:   map[string]connector.Input{adbudget.FindName: {"query": "メロン"}},
	}
}
