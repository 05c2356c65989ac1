package mcpadapter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

const secret = `pq: relation "previews" at /srv/cutonce/store.go`

// A panic and an unexpected error end one call, with nothing of their text, and operators find both under the request's ID.
func TestNothingInternalLeaves(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*scripted{
		"a panic":           {before: func() { panic(secret) }},
		"a plain error":     {err: errors.New(secret)},
		"a fault's cause":   {err: fault.New(fault.Internal, nil).Because(errors.New(secret))},
		"a nil dereference": {before: func() { var p *scripted; _ = p.replayed }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.change = changeIn(commit.StatusApproved, "")
			r := newRig(t, behind(s))
			for _, c := range []struct{ tool, args string }{
				{"budget_change_preview", budget("2002001", "12000")},
				{"budget_change_apply", id(s.change.Preview.ID.String())},
				{"campaigns_find", `{}`},
				{"changes_find", `{}`},
			} {
				got := r.call(r.issuer.token(), c.tool, c.args)
				if !got.IsError || got.Code != "internal" || got.Next != "contact_operator" || got.RequestID == "" {
					t.Errorf("%s: got %s, want an internal error with a request ID", c.tool, got.Raw)
				}
				if strings.Contains(got.http.text, "previews") || leaked.MatchString(got.http.text) {
					t.Errorf("%s: the text of an internal error left: %s", c.tool, got.http.text)
				}
				if log := r.log.String(); !strings.Contains(log, got.RequestID) || !strings.Contains(log, `"level":"ERROR"`) {
					t.Errorf("%s: the log does not tell of request %s:\n%s", c.tool, got.RequestID, log)
				}
			}
		})
	}
}

func TestPanicInAList(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.CanGrant = func(actor.Actor, []string) bool { panic(secret) } })
	x := r.post(r.issuer.token(), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%s}}`, meta), modernHeaders("tools/list", "", "en"))
	if !strings.Contains(x.text, `"code":-32603`) || strings.Contains(x.text, "previews") {
		t.Errorf("got %s, want an internal error without its text", x.text)
	}
	if got := r.call(r.issuer.token(), "campaigns_find", `{"query":"メロン"}`); got.IsError {
		t.Errorf("the service did not live on: %s", got.Raw)
	}
}

// What a connector finds must be what its schema says; otherwise it is our defect and not the agent's puzzle.
func TestAnswersMatchTheirSchema(t *testing.T) {
	t.Parallel()
	s := &scripted{page: connector.Page{Items: []map[string]any{{"id": 1, "name": "x"}}, Total: 1}}
	r := newRig(t, behind(s))
	got := r.call(r.issuer.token(), "campaigns_find", `{}`)
	if !got.IsError || got.Code != "internal" {
		t.Errorf("got %s, want an internal error", got.Raw)
	}
	if !strings.Contains(r.log.String(), "does not match its schema") {
		t.Errorf("the log does not say what was wrong:\n%s", r.log)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.deps.Limit = func(_ actor.Actor, p actor.Power) error {
			if p == actor.Find {
				return fault.New(fault.RateLimited, fault.Args{"seconds": 3}).After(3e9)
			}
			return nil
		}
	})
	got := r.call(r.issuer.token(), "campaigns_find", `{}`)
	if !got.IsError || got.Code != "rate_limited" || got.RetryAfterS != 3 || !*got.Retryable {
		t.Errorf("got %s, want rate_limited for 3 s", got.Raw)
	}
	if got := r.call(r.issuer.token(), "changes_find", `{}`); got.IsError {
		t.Errorf("another tool was limited too: %s", got.Raw)
	}
}

// A message that calls no tool has no tool's answer to be refused in: HTTP says it.
func TestRateLimitOfOtherMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.deps.Limit = func(actor.Actor, actor.Power) error {
			return fault.New(fault.RateLimited, fault.Args{"seconds": 3}).After(3e9)
		}
	})
	x := r.post(r.issuer.token(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
	if x.status != 429 || x.header.Get("Retry-After") != "3" || !strings.Contains(x.text, `"rate_limited"`) {
		t.Errorf("got %d %v %s, want 429 and when to come again", x.status, x.header, x.text)
	}
	if got := r.call(r.issuer.token(), "change_status", `{}`); !got.IsError || got.Code != "rate_limited" {
		t.Errorf("got %s, want the tool to say so before its arguments are read", got.Raw)
	}
}

// No token, and nothing else that the caller would rather not have kept, is in the log.
func TestLogKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.issuer.token()
	preview := r.previewed("2002008", "12000")
	r.call(token, "budget_change_apply", id(preview))
	r.post(token+"x", `{}`, nil)
	log := r.log.String()
	for _, part := range strings.Split(token, ".")[1:] {
		if strings.Contains(log, part) {
			t.Errorf("the log holds a part of a token:\n%s", log)
		}
	}
	for _, want := range []string{preview, "budget_change_apply", `"status":"applied"`, `"code":"unauthenticated"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %s:\n%s", want, log)
		}
	}
}
