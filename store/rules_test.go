package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

var leads = policy.Seats{AnyOf: []string{"leads"}, Count: 1}

func TestAStricterPolicySendsAChangeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	c, err := r.apply(p)
	wantCode(t, err, fault.ApprovalRequired)
	if got := c.Preview; c.Status != commit.StatusNeedsApproval || got.Round != 2 || got.Ruling.Needs[0].Count != 2 {
		t.Fatalf("got %s in round %d asking for %s, want needs_approval in round 2 asking for two", c.Status, got.Round, got.Ruling.Needs)
	}
	p, err = r.approvals.Request(t.Context(), agent("bot"), p.ID, "again")
	if err != nil {
		t.Fatal(err)
	}
	// The old vote is on record and does not count: its author may vote again, and both are needed.
	for i, who := range []string{"kim", "lee"} {
		got, err := r.approve(p, who)
		want := []preview.State{preview.Pending, preview.Approved}[i]
		if err != nil || got.State != want || len(got.Votes) != 2+i {
			t.Fatalf("%s: got %s with %d votes, %v, want %s with %d", who, got.State, len(got.Votes), err, want, 2+i)
		}
	}
	if c, err = r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
	if kinds := r.kinds(p.ID); countOf(kinds, "sent_back") != 1 {
		t.Errorf("got events %v, want one return", kinds)
	}
}

// TestARisenRiskSendsAChangeBack: who approved it when it was no high risk had neither to sign in anew nor to write out its name.
func TestARisenRiskSendsAChangeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", leads)
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	high := people(leads)
	high.Risk = policy.RiskHigh
	r.rules.set(high)
	c, err := r.apply(p)
	wantCode(t, err, fault.ApprovalRequired)
	if c.Status != commit.StatusNeedsApproval || c.Preview.Ruling.Risk != policy.RiskHigh || r.target.total() != 0 {
		t.Fatalf("got %s at risk %q with %d effects, want needs_approval at high risk with none", c.Status, c.Preview.Ruling.Risk, r.target.total())
	}
	if p, err = r.approvals.Request(t.Context(), agent("bot"), p.ID, "again"); err != nil {
		t.Fatal(err)
	}
	_, err = r.approve(p, "kim")
	wantCode(t, err, fault.Unauthenticated)
	kim := person("kim", "leads")
	kim.AuthTime = r.status(p.ID).Now
	surely := approvals.Decision{Approve: true, Digest: p.Digest, Typed: p.Plan.Target.Shown()}
	if _, err = r.approvals.Decide(t.Context(), kim, p.ID, surely); err != nil {
		t.Fatal(err)
	}
	if c, err = r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestVotesThatStillSufficeStand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	for _, who := range []string{"kim", "lee"} {
		if _, err := r.approve(p, who); err != nil {
			t.Fatal(err)
		}
	}
	r.rules.set(people(leads))
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestARequirementThatNamesNobodyIsNotMet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.rules.set(people())
	c, err := r.apply(p)
	wantCode(t, err, fault.ApprovalRequired)
	if c.Status != commit.StatusNeedsApproval || r.target.total() != 0 {
		t.Errorf("got %s with %d effects, want needs_approval with 0", c.Status, r.target.total())
	}
}

func TestADenialAtApplyKeepsTheChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.rules.set(policy.Ruling{Verdict: policy.Deny, Rule: "ceiling", Version: policyVersion})
	c, err := r.apply(p)
	wantCode(t, err, fault.PolicyDenied)
	if c.Status != commit.StatusApproved || len(r.kinds(p.ID)) != 1 {
		t.Errorf("got %s with events %v, want approved as it was", c.Status, r.kinds(p.ID))
	}
	r.rules.set(automatic)
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

// What a page shows beside its button is what the apply would answer, and looking moves nothing.
func TestWhyNotApplyIsWhatApplyWouldSay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	why := func() error { return r.commits.WhyNotApply(t.Context(), agent("bot"), p.ID) }
	if err := why(); err != nil {
		t.Errorf("with nothing in the way: got %v", err)
	}
	wantCode(t, r.commits.WhyNotApply(t.Context(), person("choi"), p.ID), fault.Forbidden)
	for _, tc := range []struct {
		now  policy.Ruling
		want fault.Code
	}{
		{policy.Ruling{Verdict: policy.Deny, Rule: "ceiling", Version: policyVersion}, fault.PolicyDenied}, {people(leads), fault.ApprovalRequired},
	} {
		r.rules.set(tc.now)
		wantCode(t, why(), tc.want)
	}
	if got := r.kinds(p.ID); len(got) != 1 {
		t.Errorf("events after looking: got %v, want only its preparation", got)
	}
	r.rules.set(automatic)
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
	if err := why(); err != nil {
		t.Errorf("once applied: got %v, want nothing to say", err)
	}
}

func TestADeniedPreviewIsFinal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(policy.Ruling{Verdict: policy.Deny, Rule: "ceiling", Version: policyVersion})
	p := r.prepare("a", "new")
	r.rules.set(automatic)
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusDenied || r.target.total() != 0 {
		t.Errorf("got %s, %v, want denied", c.Status, err)
	}
	if got, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, ""); err != nil || got.State != preview.Denied {
		t.Errorf("request: got %s, %v, want denied", got.State, err)
	}
	_, err := r.previews.Cancel(t.Context(), agent("bot"), p.ID, "")
	wantCode(t, err, fault.Conflict)
}

func TestTheTargetsOwnPermissionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.target.mu.Lock()
	r.target.deny = "no longer on the team"
	r.target.mu.Unlock()
	c, err := r.apply(p)
	wantCode(t, err, fault.Forbidden)
	if got := fault.From(err).Args["reason"]; got != "no longer on the team" || c.Status != commit.StatusApproved {
		t.Errorf("got %v, %s, want the reason, approved", got, c.Status)
	}
	_, err = r.prepareAs(agent("bot"), "", "b", "new")
	wantCode(t, err, fault.Forbidden)
	r.target.mu.Lock()
	r.target.deny = ""
	r.target.mu.Unlock()
}

func TestAProcessWithAnotherPolicyDoesNotClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	if err := r.store.ActivatePolicy(t.Context(), "p2", "newer"); err != nil {
		t.Fatal(err)
	}
	c, err := r.apply(p)
	wantCode(t, err, fault.Conflict)
	if f := fault.From(err); f.Next != fault.NextRetryLater || f.Key != "fault.conflict.policy_moved" || c.Status != commit.StatusApproved {
		t.Errorf("got %s (%s), %s, want retry_later, approved", f.Next, f.Key, c.Status)
	}
	if err := r.store.ActivatePolicy(t.Context(), policyVersion, "test"); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("an old replica came back: got %v, want superseded", err)
	}
	if err := r.store.ReinstatePolicy(t.Context(), policyVersion, "test"); err != nil {
		t.Fatal(err)
	}
	if c, err = r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

// between runs do after an apply has read the change and its epochs, and before it claims.
func (r *rig) between(do func()) *commit.Service {
	var once sync.Once
	r.stop = func(point string) {
		if point == beforeClaim {
			once.Do(do)
		}
	}
	_, _, s := services(r.t, r, r.store)
	r.stop = nil
	return s
}

func TestWhatMovesBetweenTheLookAndTheClaim(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, sql string
		want      fault.Code // empty: it authorises anew and is applied
	}{
		{"frozen", frozenSQL(""), fault.Frozen},
		{"the tenant is frozen", frozenSQL("acme"), fault.Frozen},
		{"another tenant is frozen", frozenSQL("other"), ""},
		{"frozen and thawed", controlSQL("", `freeze_epoch = k.freeze_epoch + 2`), ""},
		{"an approver was removed", controlSQL("", `approvers_epoch = k.approvers_epoch + 1`), ""},
		{"another policy", controlSQL("", `policy_version = 'p2', policy_epoch = k.policy_epoch + 1`), fault.Conflict},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.prepare("a", "new")
			claim := r.claimOf(p)
			s := r.between(func() {
				r.exec(tc.sql)
				if tc.name == "another tenant is frozen" {
					return // nothing moved for this one
				}
				if err := r.store.ClaimApproved(context.Background(), claim); !errors.Is(err, commit.ErrEpochsMoved) {
					t.Errorf("claiming on the old epochs: got %v, want ErrEpochsMoved", err)
				}
			})
			c, err := s.Apply(t.Context(), agent("bot"), "text_change", p.ID, contentWait)
			if tc.want == "" {
				if err != nil || c.Status != commit.StatusApplied {
					t.Errorf("got %s, %v, want applied", c.Status, err)
				}
				return
			}
			wantCode(t, err, tc.want)
			if c.Status != commit.StatusApproved || r.target.total() != 0 {
				t.Errorf("got %s with %d effects, want approved with 0", c.Status, r.target.total())
			}
		})
	}
}

// TestAFreezeWaitsForClaimsUnderWay: what has the lock of a running claim is waited for; what comes after sees the new policy.
func TestAFreezeWaitsForClaimsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	release := r.hold(p.ID) // the claim has its shared lock and waits for the row
	claim := r.claimOf(p)
	claimed, activated := make(chan error, 1), make(chan error, 1)
	go func() { claimed <- r.store.ClaimApproved(context.Background(), claim) }()
	r.awaitBlocked(1)
	go func() { activated <- r.store.ActivatePolicy(context.Background(), "p2", "newer") }()
	r.await(`select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
		and database = (select oid from pg_database where datname = current_database()))`)
	select {
	case err := <-activated:
		t.Errorf("activated (%v) before the claim had ended", err)
	default:
	}
	release()
	if err := receive(t, claimed); err != nil {
		t.Errorf("claim: %v", err)
	}
	if err := receive(t, activated); err != nil {
		t.Errorf("activate: %v", err)
	}
	// A record is not held up by a policy that waits.
	if _, err := r.store.RecordResult(t.Context(), commit.Result{
		Key: claim.Key, Attempt: claim.Attempt, Kind: commit.Send, Class: connector.ClassRefused, Reason: "no", Answered: true,
	}); err != nil {
		t.Error(err)
	}
}

// TestAChangeThatMovedBeforeItCouldBeSentBack: two processes with different rules, and the milder one was first.
func TestAChangeThatMovedBeforeItCouldBeSentBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	_, _, first := services(t, r, r.store)
	mild := r.rules
	r.rules = &ruler{ruling: people(leads)}
	_, _, strict := services(t, r, r.store)
	r.rules = mild
	release := r.hold(p.ID)
	done := make(chan outcome, 2)
	apply := func(s *commit.Service) {
		c, err := s.Apply(context.Background(), agent("bot"), "text_change", p.ID, contentWait)
		done <- outcome{err, c.Status}
	}
	go apply(first)
	r.awaitBlocked(1)
	go apply(strict)
	r.awaitBlocked(2)
	release()
	for range 2 {
		if got := receive(t, done); got.err != nil || got.status != commit.StatusApplied {
			t.Errorf("got %s, %v, want both told that it is applied", got.status, got.err)
		}
	}
}

func TestWhoMayApply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	sato := person("sato")
	sato.Roles, sato.Scopes = nil, []string{"ledger:write"}
	for _, tc := range []struct {
		name   string
		who    actor.Actor
		action string
		want   fault.Code
	}{
		{"another agent", agent("bot2"), "text_change", fault.NotFound},
		{"the agent for another human", with(agent("bot"), func(a *actor.Actor) { a.For = "kim" }), "text_change", fault.NotFound},
		{"another tenant", with(agent("bot"), func(a *actor.Actor) { a.Tenant = "other" }), "text_change", fault.NotFound},
		{"an approver", person("kim", "leads"), "text_change", fault.Forbidden},
		{"without the scope", with(agent("bot"), func(a *actor.Actor) { a.Scopes = []string{"ledger:read"} }), "text_change", fault.InsufficientScope},
		{"by another action's tool", agent("bot"), "budget_change", fault.InvalidInput},
	} {
		c, err := r.commits.Apply(t.Context(), tc.who, tc.action, p.ID, contentWait)
		wantCode(t, err, tc.want)
		if tc.want == fault.NotFound && c.Preview.Document != nil {
			t.Errorf("%s: was shown the change", tc.name)
		}
	}
	if c, err := r.commits.Apply(t.Context(), sato, "text_change", p.ID, contentWait); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("the human it was asked for: got %s, %v, want applied", c.Status, err)
	}
}

func TestADatabaseThatKeepsSnapshotsIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var name string
	r.scalar(&name, `select quote_ident(current_database())`)
	for _, level := range []string{"repeatable read", "serializable"} {
		r.exec(`alter database ` + name + ` set default_transaction_isolation = '` + level + `'`)
		if s, err := store.Open(t.Context(), store.Config{URL: r.url}); err == nil {
			s.Close()
			t.Errorf("%s: the store opened", level)
		}
	}
	r.exec(`alter database ` + name + ` reset default_transaction_isolation`)
}

func TestTheQueueIsForPeopleWhoReview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.pending("a"), r.pending("b")
	r.shortly(second.ID, 0)
	_, _, _, err := r.approvals.Queue(t.Context(), agent("bot"), approvals.Page{})
	wantCode(t, err, fault.Forbidden)
	items, _, _, err := r.approvals.Queue(t.Context(), person("kim", "leads"), approvals.Page{})
	if err != nil || len(items) != 1 || items[0].Preview.ID != first.ID || items[0].WhyNot != nil {
		t.Errorf("got %d items, %v, want the one that has not lapsed", len(items), err)
	}
	nobody := person("choi")
	nobody.Roles = nil
	if items, _, _, err = r.approvals.Queue(t.Context(), nobody, approvals.Page{}); err != nil || len(items) != 0 {
		t.Errorf("without a role: got %d items, %v, want none", len(items), err)
	}
	requester := person("sato", "leads")
	if items, _, _, err = r.approvals.Queue(t.Context(), requester, approvals.Page{}); err != nil || len(items) != 1 || items[0].WhyNot == nil {
		t.Errorf("the requester: got %d items, %v, want one that they may not decide", len(items), err)
	}
}
