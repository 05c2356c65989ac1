package web_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/web"
)

// fakes stand in for the services where a test needs what they would not easily do.
type fakes struct {
	web.Approvals
	web.Commits
	web.Sessions
	err     error
	why     commit.Why
	changes []commit.Change
	panics  bool
}

func (f fakes) Queue(context.Context, actor.Actor, approvals.Page) ([]approvals.Item, string, time.Time, error) {
	return nil, "", time.Time{}, f.err
}

func (f fakes) Item(who actor.Actor, p preview.Preview) approvals.Item {
	return approvals.NewService(approvals.Deps{}).Item(who, p)
}

func (f fakes) Why(context.Context, actor.Actor, preview.ID) (commit.Why, error) {
	if f.panics {
		panic("the secret of the panic")
	}
	return f.why, f.err
}

func (f fakes) List(context.Context, actor.Actor, commit.Filter) ([]commit.Change, string, error) {
	return f.changes, "", f.err
}

func (f fakes) Probe(context.Context, actor.Actor, preview.ID) (commit.Change, error) {
	return commit.Change{}, f.err
}

func (f fakes) Glance(context.Context, actor.Actor, preview.Preview, time.Duration) (commit.Glance, error) {
	return commit.Glance{Moved: f.why.Change.Preview.Round > 0, Columns: commit.Columns(f.why.Change.Preview.Plan, nil)}, nil
}

func (f fakes) WhyNotApply(context.Context, actor.Actor, preview.ID) error { return nil }

var errSecret = errors.New("pq: relation secret_table does not exist")

func TestInternalErrorsStayInside(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	r := newRig(t, func(r *rig) {
		f := fakes{err: errSecret}
		r.deps.Approvals, r.deps.Commits = f, f
		r.deps.Log = slog.New(slog.NewTextHandler(&logged, nil))
	})
	b := r.browser()
	b.get("/dev/sign-in?person=kim&code=code-kim")
	id := preview.NewID().String()
	for _, path := range []string{"/", "/outcomes", "/history", "/changes/" + id, "/changes/" + id + "/review"} {
		got := b.get(path).want(http.StatusInternalServerError, "Something went wrong", "req-1", "Tell an operator.")
		if strings.Contains(got.body, "secret") {
			t.Errorf("%s: the page shows the error's text", path)
		}
	}
	b.post("/changes/"+id+"/probe", "reason", "typed text").want(http.StatusInternalServerError, "typed text")
	if got := logged.String(); !strings.Contains(got, "secret_table") || !strings.Contains(got, "request_id=req-1") {
		t.Errorf("the log: got %q, want the error and the request", got)
	}
}

func TestAPanicIsContained(t *testing.T) {
	t.Parallel()
	got := fakeRig(t, fakes{panics: true}, cast["kim"]).browser().get("/changes/"+preview.NewID().String()).want(http.StatusInternalServerError, "req-1")
	if strings.Contains(got.body, "secret") {
		t.Error("the page shows the panic's text")
	}
}

// brokenSessions cannot say who is signed in.
type brokenSessions struct{ web.Sessions }

func (brokenSessions) Actor(*http.Request) (actor.Actor, error) { return actor.Actor{}, errSecret }

func TestADeadStoreIsNotASignOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.Sessions = brokenSessions{} })
	got := r.browser().get("/").want(http.StatusInternalServerError, "Something went wrong")
	if got.url.Path != "/" {
		t.Errorf("got %s, want no way in to be shown", got.url.Path)
	}
}

// TestAnAgentHasNoConsole has sessions that let an agent in, which the real ones refuse.
func TestAnAgentHasNoConsole(t *testing.T) {
	t.Parallel()
	r := fakeRig(t, fakes{}, bot)
	for _, path := range []string{"/", "/history", "/outcomes", "/changes/" + preview.NewID().String()} {
		r.browser().get(path).want(http.StatusForbidden, "Only people can sign in here.")
	}
}

// TestEveryPageWithLittleAndWithMuch shows a change in every status, with nothing known and with all that there can be.
func TestEveryPageWithLittleAndWithMuch(t *testing.T) {
	t.Parallel()
	for _, status := range commit.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			for _, change := range []commit.Change{little(status), much(status)} {
				why := commit.Why{Change: change, Text: connector.Say("why."+whyOf(status), nil), WaitsFor: "", Until: change.Preview.Deadline}
				for _, person := range []string{"kim", "oper"} {
					b := fakeRig(t, fakes{why: why, changes: []commit.Change{change}}, cast[person]).browser()
					id := change.Preview.ID.String()
					for _, path := range []string{"/changes/" + id, "/changes/" + id + "/review", "/outcomes", "/history"} {
						b.get(path + "?lang=en").want(http.StatusOK)
						b.get(path + "?lang=ja").want(http.StatusOK)
					}
				}
			}
		})
	}
}

func whyOf(s commit.Status) string {
	if s == commit.StatusNotApplied {
		return "not_applied.refused"
	}
	return string(s)
}

func stateFor(s commit.Status) preview.State {
	switch s {
	case commit.StatusApplying, commit.StatusUnknown, commit.StatusApplied, commit.StatusNotApplied, commit.StatusPartlyApplied:
		return preview.Claimed
	}
	return preview.State(s)
}

// little is a change of which next to nothing is known.
func little(s commit.Status) commit.Change {
	c := commit.Change{Status: s, Preview: preview.Preview{ID: preview.NewID(), State: stateFor(s), Action: "budget_change"}}
	c.Preview.Ruling.Verdict, c.Preview.Requester, c.Preview.Plan.Target.ID = policy.Allow, cast["sato"], "1"
	if c.Preview.State == preview.Claimed {
		c.Executions = []commit.Execution{{State: commit.Unknown}}
	}
	return c
}

// much is a change with everything on it, all of it from outside and of the worst kind.
func much(s commit.Status) commit.Change {
	const evil = "<script>alert(1)</script>\u202E\x00 {{.}}"
	c := little(s)
	amount, text := money.Amount{Minor: 1_999_999_999_999, Currency: "JPY"}, evil
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	p := &c.Preview
	c.Now, p.CreatedAt, p.Deadline = now, now, now.Add(time.Hour)
	p.Requester = actor.Actor{Kind: actor.Service, Subject: evil, Owner: evil, Issuer: evil}
	p.Justification, p.EndedBy, p.EndReason, p.Document = evil, evil, evil, []byte(evil)
	p.Input = connector.Input{"reason": evil}
	p.Plan = connector.Plan{
		Target:  connector.Target{System: evil, Kind: evil, ID: evil, Name: evil},
		Request: connector.Request{Method: "PUT", Path: evil, Body: []byte(evil), Precondition: evil},
		Changes: []connector.Change{{Field: evil, Before: connector.Value{}, After: connector.Value{Amount: &amount}}, {Field: "b", Before: connector.Value{Text: &text}}},
	}
	p.Impact.Figures = []connector.Figure{{Name: evil}, {Name: "lookalikes"}}
	p.Impact.Warnings = []connector.Warning{{Code: "policy_error", Args: connector.Args{"rule": evil}}}
	p.Ruling = policy.Ruling{
		Verdict: policy.Require, Rule: evil, Version: evil, Saw: map[string]string{evil: evil},
		Needs: policy.Requirement{{AnyOf: []string{evil, "ads-approvers"}, Count: 2}},
	}
	p.Votes = []preview.Vote{{Person: evil, Name: evil, Approve: true, Reason: evil, At: now, Groups: []string{evil}}}
	kinds := []commit.AttemptKind{commit.Send, commit.Lookup, commit.Replay}
	results := []string{"applied", "not_sent", "refused", "drifted", "unknown", "found", "absent", "unsure", ""}
	for i, result := range results {
		c.Attempts = append(c.Attempts, commit.Attempt{
			ID: uuid.New(), Kind: kinds[i%3], StartedAt: now, FinishedAt: &now, Result: result, Evidence: map[string]any{evil: evil},
		})
	}
	c.Events = []commit.Event{{Seq: 1, Kind: evil, Actor: evil, At: now, Body: evil, Hash: evil}, {Seq: 2, Kind: "claimed", Actor: "service:cutonce"}}
	if len(c.Executions) > 0 {
		c.Executions[0] = commit.Execution{
			State: commit.Applied, Evidence: commit.ByStatement, Contradicted: true, ResolvedBy: evil, ResolvedWhy: evil, StartedAt: now,
			NextProbeAt: now, SettleAt: now, NeedsOperator: true, Reason: commit.Refused, Detail: map[string]any{"reason": evil},
		}
	}
	return c
}

// personSessions has one person signed in.
type personSessions struct {
	web.Sessions
	who actor.Actor
}

func (s personSessions) Actor(*http.Request) (actor.Actor, error) { return s.who, nil }

// fakeRig is a console over fakes alone.
func fakeRig(t *testing.T, f fakes, who actor.Actor) *rig {
	t.Helper()
	r := &rig{t: t, clocks: clocks, deps: web.Deps{
		Approvals: f, Commits: f, Sessions: personSessions{who: who}, Version: "test", RequestID: func(*http.Request) string { return "req-1" },
	}}
	r.serve(r.connect("http://127.0.0.1:1"))
	return r
}
