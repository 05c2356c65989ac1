package store_test

import (
	"strings"
	"testing"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func TestWhoMayDecide(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bot := agent("bot")
	bot.Owner = "mori"
	r.rules.set(people(leads))
	prepared := r.mustPrepare(bot, "", "a", "new")
	p, err := r.approvals.Request(t.Context(), bot, prepared.Preview.ID, "please")
	if err != nil {
		t.Fatal(err)
	}
	asAgent := func(a actor.Actor) actor.Actor { a.Kind = actor.Agent; return a }
	asService := func(a actor.Actor) actor.Actor { a.Kind = actor.Service; return a }
	admin := person("mori", "leads")
	admin.Roles = append(admin.Roles, actor.RoleAdmin)
	for _, tc := range []struct {
		name string
		who  actor.Actor
		want fault.Code
		key  string
	}{
		{"an agent with a seat", asAgent(person("kim", "leads")), fault.Forbidden, "fault.forbidden.humans_only"},
		{"a service with a seat", asService(person("kim", "leads")), fault.Forbidden, "fault.forbidden.humans_only"},
		{"the requester itself", bot, fault.Forbidden, "fault.forbidden.humans_only"},
		{"a human named like the agent", person("bot", "leads"), fault.Forbidden, "fault.forbidden.own_change"},
		{"the human behind it", person("sato", "leads"), fault.Forbidden, "fault.forbidden.own_change"},
		{"in capitals", person("SATO", "leads"), fault.Forbidden, "fault.forbidden.own_change"},
		{"in a look-alike that folds", person("\u017fato", "leads"), fault.Forbidden, "fault.forbidden.own_change"}, // long s
		{"from an issuer in capitals", with(person("Sato", "leads"), func(a *actor.Actor) { a.Issuer = "HTTPS://ID.EXAMPLE" }), fault.Forbidden, "fault.forbidden.own_change"},
		{"the agent's owner", person("Mori", "leads"), fault.Forbidden, "fault.forbidden.own_change"},
		{"an admin is not exempt", admin, fault.Forbidden, "fault.forbidden.own_change"},
		{"an approver without a seat", person("kim", "sales"), fault.Forbidden, "fault.forbidden.no_seat"},
		{"nobody in particular", with(person("kim"), func(a *actor.Actor) { a.Roles = nil }), fault.NotFound, ""},
		{"another tenant", with(person("kim", "leads"), func(a *actor.Actor) { a.Tenant = "other" }), fault.NotFound, ""},
	} {
		for _, approve := range []bool{true, false} {
			_, err := r.approvals.Decide(t.Context(), tc.who, p.ID, approvals.Decision{Approve: approve, Reason: "because", Digest: p.Digest})
			if f := fault.From(err); f.Code != tc.want || tc.key != "" && f.Key != tc.key {
				t.Errorf("%s, approve %v: got %v, want %s (%s)", tc.name, approve, err, tc.want, tc.key)
			}
		}
	}
	if kinds := r.kinds(p.ID); len(kinds) != 2 {
		t.Errorf("got events %v, want none of a decision", kinds)
	}
	// A Cyrillic о is another person.
	if got, err := r.approvals.Decide(t.Context(), person("sat\u043e", "leads"), p.ID, approvals.Decision{Approve: true, Digest: p.Digest}); err != nil || got.State != preview.Approved {
		t.Errorf("another person: got %s, %v, want approved", got.State, err)
	}
}

func TestWhatMayBeDecided(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	approve := func(p preview.Preview) error { _, err := r.approve(p, "kim"); return err }
	reject := func(p preview.Preview) error { _, err := r.reject(p, "kim"); return err }
	r.rules.set(automatic)
	auto := r.prepare("auto", "new")
	r.rules.set(people(leads))
	unasked := r.prepare("unasked", "new")
	late := r.pending("late")
	r.shortly(late.ID, 0) // and no sweep
	canceled := r.pending("canceled")
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), canceled.ID, ""); err != nil {
		t.Fatal(err)
	}
	other := r.pending("other")
	other.Digest = canon.Sum([]byte("what somebody else saw"))
	unknown := preview.Preview{ID: preview.NewID()}
	for _, tc := range []struct {
		name    string
		p       preview.Preview
		want    fault.Code
		wantKey string
	}{
		{"approved by policy: no people needed", auto, fault.Forbidden, "fault.forbidden.no_people_needed"},
		{"nobody has asked", unasked, fault.Conflict, "fault.conflict.decided"},
		{"after the deadline, before any sweep", late, fault.Expired, "fault.expired"},
		{"canceled", canceled, fault.Conflict, "fault.conflict.decided"},
		{"on another digest", other, fault.DigestMismatch, "fault.digest_mismatch"},
		{"unknown", unknown, fault.NotFound, "fault.not_found"},
	} {
		for name, decide := range map[string]func(preview.Preview) error{"approve": approve, "reject": reject} {
			if f := fault.From(decide(tc.p)); f.Code != tc.want || f.Key != tc.wantKey {
				t.Errorf("%s, %s: got %s (%s), want %s (%s)", tc.name, name, f.Code, f.Key, tc.want, tc.wantKey)
			}
		}
	}
	if got := r.status(other.ID); len(got.Preview.Votes) != 0 {
		t.Errorf("got %d votes on another digest, want none", len(got.Preview.Votes))
	}
}

func TestDecidingTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"kim", "KIM", "Kim"} {
		if got, err := r.approve(p, same); err != nil || got.State != preview.Pending || len(got.Votes) != 1 {
			t.Errorf("%s again: got %s with %d votes, %v, want the same decision", same, got.State, len(got.Votes), err)
		}
	}
	if kinds := r.kinds(p.ID); countOf(kinds, "vote") != 1 {
		t.Errorf("got events %v, want one vote", kinds)
	}
	if got, err := r.reject(p, "Kim"); err != nil || got.State != preview.Rejected {
		t.Errorf("a veto after one's own approval: got %s, %v, want rejected", got.State, err)
	}
	_, err := r.approve(p, "kim")
	if f := fault.From(err); f.Code != fault.Conflict {
		t.Errorf("approving after one's own rejection: got %v, want conflict", err)
	}
	if got, err := r.reject(p, "kim"); err != nil || got.State != preview.Rejected {
		t.Errorf("the same rejection: got %s, %v, want the same", got.State, err)
	}
}

func TestApprovingAfterOnesOwnRejectionIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	if _, err := r.reject(p, "kim"); err != nil {
		t.Fatal(err)
	}
	_, err := r.approve(p, "KIM")
	if f := fault.From(err); f.Code != fault.Conflict || f.Key != "fault.conflict.other_decision" {
		t.Errorf("got %v, want conflict (other_decision)", err)
	}
}

func TestAVetoIsHeardUntilTheClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.reject(p, "lee"); err != nil || got.State != preview.Rejected || got.EndedBy != "lee" || got.EndReason != "not now" {
		t.Errorf("got %s by %q (%q), %v, want rejected by lee", got.State, got.EndedBy, got.EndReason, err)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusRejected || r.target.total() != 0 {
		t.Errorf("got %s, %v, want rejected", c.Status, err)
	}
	q := r.pending("b")
	if _, err := r.approve(q, "kim"); err != nil {
		t.Fatal(err)
	}
	begun, resume := r.target.stuck(receipt)
	r.applyAsync(q)
	receive(t, begun)
	_, err := r.reject(q, "lee")
	wantCode(t, err, fault.InProgress)
	_, err = r.previews.Cancel(t.Context(), agent("bot"), q.ID, "")
	wantCode(t, err, fault.InProgress)
	close(resume)
	r.awaitStatus(q.ID, commit.StatusApplied)
}

func TestReasons(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	for name, tc := range map[string]struct {
		approve bool
		reason  string
		ok      bool
	}{
		"no reason to reject": {false, "", false}, "blanks": {false, " \n ", false}, "one character": {false, "x", false},
		"too long": {false, strings.Repeat("あ", 2001), false}, "NUL": {false, "no\x00no", false}, "not UTF-8": {false, "no\xff", false},
		"approving needs none": {true, "", true}, "approving with NUL": {true, "\x00", false},
	} {
		_, err := r.approvals.Decide(t.Context(), person("kim", "leads"), p.ID, approvals.Decision{Approve: tc.approve, Reason: tc.reason, Digest: p.Digest})
		if tc.ok != (err == nil) || err != nil && fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got, err := r.approvals.Decide(t.Context(), person("lee", "leads"), p.ID, approvals.Decision{Reason: "却下", Digest: p.Digest}); err != nil || got.State != preview.Rejected {
		t.Errorf("two characters: got %s, %v, want rejected", got.State, err)
	}
	for name, reason := range map[string]string{"NUL": "\x00", "not UTF-8": "\xff", "too long": strings.Repeat("x", 2001)} {
		q := r.prepare(name, "new")
		_, err := r.previews.Cancel(t.Context(), agent("bot"), q.ID, reason)
		wantCode(t, err, fault.InvalidInput)
		_, err = r.approvals.Request(t.Context(), agent("bot"), q.ID, reason)
		wantCode(t, err, fault.InvalidInput)
	}
	_, err := r.commits.Resolve(t.Context(), commit.Resolution{Key: commit.Key{ID: p.ID}, By: operator("ito"), Reason: "seen\x00it", Evidence: "log\xff12"})
	if f := fault.From(err); f.Code != fault.InvalidInput || len(f.Fields) != 2 {
		t.Errorf("resolve: got %v, want both texts refused", err)
	}
}

func TestAskingForApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(people(leads))
	p := r.prepare("a", "new")
	for name, who := range map[string]actor.Actor{
		"another agent": agent("bot2"), "an approver": person("kim", "leads"), "another tenant": with(agent("bot"), func(a *actor.Actor) { a.Tenant = "other" }),
	} {
		_, err := r.approvals.Request(t.Context(), who, p.ID, "")
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: got %v, want not_found", name, err)
		}
	}
	got, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, "first")
	if err != nil || got.State != preview.Pending || got.Justification != "first" || !got.Deadline.After(p.Deadline) {
		t.Errorf("got %s (%q), %v, want pending with a longer deadline", got.State, got.Justification, err)
	}
	if again, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, "second"); err != nil || again.Justification != "first" || !again.Deadline.Equal(got.Deadline) {
		t.Errorf("asking again: got %q until %s, %v, want nothing changed", again.Justification, again.Deadline, err)
	}
	if kinds := r.kinds(p.ID); countOf(kinds, "approval_requested") != 1 {
		t.Errorf("got events %v, want one request", kinds)
	}
}
