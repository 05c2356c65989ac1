package store_test

import (
	"errors"
	"testing"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

var byConfirmation = policy.Ruling{Verdict: policy.Require, Rule: "small", Version: policyVersion, Confirm: true}

func (r *rig) asked(id string, ruling policy.Ruling) preview.Preview {
	r.t.Helper()
	r.rules.set(ruling)
	p, err := r.approvals.Request(r.t.Context(), agent("bot"), r.prepare(id, "new").ID, "please")
	if err != nil || p.State != preview.Pending {
		r.t.Fatalf("request: got %s, %v, want pending", p.State, err)
	}
	return p
}

func (r *rig) confirm(p preview.Preview, who actor.Actor) (preview.Preview, error) {
	return r.approvals.Decide(r.t.Context(), who, p.ID, approvals.Decision{Confirm: true, Digest: p.Digest})
}

func requester(change ...func(*actor.Actor)) actor.Actor {
	a := actor.Actor{Tenant: "acme", Kind: actor.Human, Issuer: "https://id.example", Subject: "sato"}
	for _, f := range change {
		f(&a)
	}
	return a
}

func TestTheRequestersOwnPersonConfirmsAndNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", byConfirmation)
	for name, tc := range map[string]struct {
		who  actor.Actor
		want string
	}{
		"an approver":               {person("kim", "leads"), "fault.forbidden.confirm_only"},
		"the agent":                 {agent("bot"), "fault.forbidden.humans_only"},
		"the agent with every role": {with(agent("bot"), func(a *actor.Actor) { a.Roles = []string{actor.RoleAdmin, actor.RoleApprover} }), "fault.forbidden.humans_only"},
		"an admin":                  {admin("lee"), "fault.forbidden.confirm_only"},
		"the same name elsewhere":   {requester(func(a *actor.Actor) { a.Tenant = "other" }), "fault.not_found"},
		"the same name, another issuer": {requester(func(a *actor.Actor) {
			a.Issuer, a.Roles = "https://other.example", []string{actor.RoleApprover}
		}), "fault.forbidden.confirm_only"},
	} {
		if _, err := r.confirm(p, tc.who); fault.From(err).Key != tc.want {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
	if _, err := r.approve(p, "kim"); fault.From(err).Key != "fault.forbidden.confirm_only" {
		t.Errorf("a vote: got %v, want confirm_only", err)
	}
	own := approvals.Decision{Approve: true, Digest: p.Digest}
	if _, err := r.approvals.Decide(t.Context(), requester(), p.ID, own); fault.From(err).Key != "fault.forbidden.confirm_instead" {
		t.Errorf("the requester votes: got %v, want confirm_instead", err)
	}
	wrong := p
	wrong.Digest[0]++
	if _, err := r.confirm(wrong, requester()); !errors.Is(err, fault.DigestMismatch) {
		t.Errorf("another digest: got %v, want digest_mismatch", err)
	}
	for range 2 { // saying it again is the same word
		got, err := r.confirm(p, requester())
		if err != nil || got.State != preview.Approved || len(got.Votes) != 0 || got.Confirmed == nil || got.Confirmed.Name != "sato" {
			t.Fatalf("got %s, %d votes, %+v, %v, want approved by sato's word", got.State, len(got.Votes), got.Confirmed, err)
		}
	}
	if kinds := r.kinds(p.ID); countOf(kinds, "confirmed") != 1 || countOf(kinds, "approved")+countOf(kinds, "vote") != 0 {
		t.Errorf("got events %v, want one confirmation and no vote", kinds)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestAStricterPolicyMakesNothingOfAConfirmation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", byConfirmation)
	if _, err := r.confirm(p, requester()); err != nil {
		t.Fatal(err)
	}
	r.rules.set(people(leads))
	c, err := r.apply(p)
	wantCode(t, err, fault.ApprovalRequired)
	if c.Status != commit.StatusNeedsApproval || c.Preview.Confirmed != nil {
		t.Fatalf("got %s, %+v, want needs_approval and no confirmation", c.Status, c.Preview.Confirmed)
	}
	if p, err = r.approvals.Request(t.Context(), agent("bot"), p.ID, "again"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.confirm(p, requester()); fault.From(err).Key != "fault.forbidden.own_change" {
		t.Errorf("confirming where people are asked: got %v, want own_change", err)
	}
	if _, err := r.confirm(p, person("kim", "leads")); fault.From(err).Key != "fault.forbidden.no_confirmation" {
		t.Errorf("an approver confirms: got %v, want no_confirmation", err)
	}
	if _, err = r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	if c, err = r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestPostgresRefusesConfirmationsThatDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", byConfirmation)
	other := r.asked("b", people(leads))
	confirmed := func(id preview.ID, state, who, digest string) string {
		return `update previews p set state = '` + state + `', approved_at = clock_timestamp(), audit_seq = p.audit_seq + 1, confirmed = jsonb_build_object(
			'person', '` + who + `', 'digest', ` + digest + `) where id = '` + id.UUID().String() + `'`
	}
	own := "https://id.example#sato"
	for name, tc := range map[string]struct{ sql, want string }{
		"another person":         {confirmed(p.ID, "approved", "https://id.example#kim", "encode(digest, 'hex')"), "CU006"},
		"another issuer's":       {confirmed(p.ID, "approved", "https://x.example#sato", "encode(digest, 'hex')"), "CU006"},
		"of another digest":      {confirmed(p.ID, "approved", own, "'00'"), "CU006"},
		"without approving":      {confirmed(p.ID, "pending", own, "encode(digest, 'hex')"), "CU006"},
		"where people are asked": {confirmed(other.ID, "approved", own, "encode(digest, 'hex')"), "CU006"},
		"without its event":      {confirmed(p.ID, "approved", own, "encode(digest, 'hex')"), "23503"},
		"a vote instead": {`insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
			select id, tenant_id, 1, 'x#kim', 'kim', '{leads}', true, '', digest, 'p1', clock_timestamp() from previews where id = '` + p.ID.UUID().String() + `'`, "CU006"},
	} {
		if got := r.sqlState(run(tc.sql)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func abstaining(needs ...policy.Seats) policy.Ruling {
	ruling := people(needs...)
	ruling.Abstain = true
	return ruling
}

func (r *rig) says(p preview.Preview, who string, approve bool) preview.Preview {
	r.t.Helper()
	d := approvals.Decision{Approve: approve, Reason: "because", Digest: p.Digest}
	got, err := r.approvals.Decide(r.t.Context(), person(who, "leads"), p.ID, d)
	if err != nil {
		r.t.Fatalf("%s: %v", who, err)
	}
	return got
}

func TestARejectionThatIsNoVetoTakesOnePersonAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", abstaining(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	if got := r.says(p, "kim", false); got.State != preview.Pending || got.EndedBy != "" {
		t.Fatalf("got %s, ended by %q, want pending still", got.State, got.EndedBy)
	}
	for _, again := range []string{"kim", "KIM"} {
		_, err := r.approve(p, again)
		if fault.From(err).Key != "fault.conflict.other_decision" {
			t.Errorf("%s approves after all: got %v, want other_decision", again, err)
		}
	}
	r.says(p, "lee", true)
	if got := r.says(p, "park", true); got.State != preview.Approved {
		t.Fatalf("got %s, want approved by two others", got.State)
	}
	kinds := r.kinds(p.ID)
	if countOf(kinds, "abstained") != 1 || countOf(kinds, "rejected") != 0 || countOf(kinds, "approved") != 1 {
		t.Errorf("got events %v, want one that took a person away, and the approval", kinds)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestAnApproverWhoLeavesLateLeavesASeatEmpty(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", abstaining(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	r.says(p, "kim", true)
	before := r.says(p, "lee", true)
	// Somebody who had not approved: the quorum stands, and so does its clock.
	after := r.says(p, "choi", false)
	if after.State != preview.Approved || !after.Deadline.Equal(before.Deadline) || !after.ApprovedAt.Equal(before.ApprovedAt) {
		t.Errorf("got %s until %s, want approved until %s as before", after.State, after.Deadline, before.Deadline)
	}
	got := r.says(p, "kim", false)
	if got.State != preview.NeedsApproval || got.Round != p.Round {
		t.Fatalf("got %s in round %d, want needs_approval in the same round", got.State, got.Round)
	}
	c, err := r.apply(p)
	if wantCode(t, err, fault.ApprovalRequired); r.target.total() != 0 {
		t.Errorf("got %s with %d effects, want none", c.Status, r.target.total())
	}
	if p, err = r.approvals.Request(t.Context(), agent("bot"), p.ID, "one more, please"); err != nil {
		t.Fatal(err)
	}
	if got = r.says(p, "park", true); got.State != preview.Approved {
		t.Errorf("got %s, want approved by lee and park", got.State)
	}
	if got = r.says(p, "lee", false); got.State != preview.NeedsApproval {
		t.Errorf("got %s, want needs_approval", got.State)
	}
}

// The rules at apply decide what a rejection is.
func TestAVetoAtApplyIsHeardOfARejectionThatWasNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", abstaining(leads))
	r.says(p, "kim", false)
	r.says(p, "lee", true)
	r.rules.set(people(leads))
	c, err := r.apply(p)
	if wantCode(t, err, fault.ApprovalRequired); c.Status != commit.StatusNeedsApproval {
		t.Errorf("got %s, want it sent back", c.Status)
	}
}

func TestPostgresRefusesAnApprovalAfterARejection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.asked("a", abstaining(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	r.says(p, "kim", false)
	got := r.sqlState(run(`insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
		select id, tenant_id, 1, 'x#KIM', 'kim', '{leads}', true, '', digest, 'p1', clock_timestamp() from previews where id = '` + p.ID.UUID().String() + `'`))
	if got != "CU006" {
		t.Errorf("got %q, want CU006", got)
	}
}
