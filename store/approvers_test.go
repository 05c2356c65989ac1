package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func removing(person string, by actor.Actor) approvals.RemovalOrder {
	return approvals.RemovalOrder{Person: person, By: by, Reason: "left the agency"}
}

func (r *rig) remove(person string) approvals.Removed {
	r.t.Helper()
	removed, err := r.approvals.Remove(r.t.Context(), removing(person, admin("boss")))
	if err != nil {
		r.t.Fatalf("remove: %v", err)
	}
	return removed
}

func (r *rig) votes(p preview.Preview, names ...string) {
	r.t.Helper()
	for _, name := range names {
		if _, err := r.approve(p, name); err != nil {
			r.t.Fatalf("%s approves: %v", name, err)
		}
	}
}

// What a removed approver has approved goes back when it is applied, in whatever spelling they were removed; others' approvals are asked
// for again.
func TestARemovedApproversChangeGoesBackAtApply(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"kim", "KIM", "https://id.example#kim", "https://elsewhere.example#Kim", " kim "} {
		t.Run(spelling, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.pending("a")
			r.votes(p, "kim")
			claim := r.claimOf(p)
			if removed := r.remove(spelling); removed.Lost != 1 || removed.Removal.At.IsZero() {
				t.Errorf("got %+v, want one change that lost an approval", removed)
			}
			if err := r.store.ClaimApproved(t.Context(), claim); !errors.Is(err, commit.ErrEpochsMoved) {
				t.Errorf("claiming on the epochs from before: got %v, want ErrEpochsMoved", err)
			}
			why, err := r.commits.Why(t.Context(), agent("bot"), p.ID)
			if err != nil || why.Text.Key != "why.approved.removed" || why.Missing.String() != "1 × leads" {
				t.Errorf("why: got %+v, %v, want who is missing now", why.Text, err)
			}
			c, err := r.apply(p)
			if f := fault.From(err); f.Key != "fault.approval_required.removed" || f.Args["names"] != "kim" || c.Status != commit.StatusNeedsApproval || r.target.total() != 0 {
				t.Fatalf("got %v %v, %s with %d effects, want it sent back", err, f.Args, c.Status, r.target.total())
			}
			if _, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, "again"); err != nil {
				t.Fatal(err)
			}
			r.votes(p, "lee")
			if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
				t.Errorf("after another's approval: got %s, %v", c.Status, err)
			}
		})
	}
}

func TestOnlyWhereThePersonIsMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	auto := r.prepare("b", "new")
	other := r.pending("c")
	r.votes(other, "lee")
	r.remove("kim")
	if c, err := r.apply(other); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("approved by another: got %s, %v, want applied", c.Status, err)
	}
	r.rules.set(automatic)
	if c, err := r.apply(auto); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("approved by the policy: got %s, %v, want applied", c.Status, err)
	}
}

// While a change waits, an approval that counts no more leaves its seat empty.
func TestARemovedApproverLeavesTheirSeatEmpty(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	r.votes(p, "kim")
	r.remove("kim")
	r.votes(p, "lee")
	if c := r.status(p.ID); c.Status != commit.StatusPending {
		t.Fatalf("got %s with one approval of two that counts, want pending", c.Status)
	}
	why, err := r.commits.Why(t.Context(), agent("bot"), p.ID)
	if err != nil || why.Missing.String() != "1 × leads" {
		t.Errorf("got %s missing, %v, want one of leads", why.Missing, err)
	}
	r.votes(p, "ito")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestARemovedPersonDecidesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	r.remove("Kim")
	for name, d := range map[string]approvals.Decision{
		"approves": {Approve: true, Digest: p.Digest}, "rejects": {Reason: "no longer wanted", Digest: p.Digest}, "confirms": {Confirm: true, Digest: p.Digest},
	} {
		_, err := r.approvals.Decide(t.Context(), person("kim", "leads"), p.ID, d)
		f := fault.From(err)
		if f.Key != "fault.forbidden.removed" || f.Args["by"] != "boss" || f.Args["reason"] != "left the agency" {
			t.Errorf("%s: got %v %v, want why not", name, err, f.Args)
		}
	}
	items, _, _, err := r.approvals.Queue(t.Context(), person("kim", "leads"), approvals.Page{})
	if err != nil || len(items) != 1 || fault.From(items[0].WhyNot).Key != "fault.forbidden.removed" {
		t.Errorf("the queue: got %+v, %v, want it to say why not", items, err)
	}
	if len(r.status(p.ID).Preview.Votes) != 0 {
		t.Error("a vote of a removed person was stored")
	}
	if err := r.approvals.Restore(t.Context(), removing("KIM", admin("boss"))); err != nil {
		t.Fatal(err)
	}
	r.votes(p, "kim")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("restored: got %s, %v, want applied", c.Status, err)
	}
}

// A removal that comes between a person's look and their word: Postgres refuses the word, and the answer says why.
func TestARemovalBetweenTheLookAndTheVote(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	people := approvals.NewService(approvals.Deps{
		Store: &meanwhile{Store: r.store, do: func() { r.remove("kim") }}, Actions: r.approvals.Actions, Policy: r.rules, Clocks: r.clocks,
	})
	_, err := people.Decide(t.Context(), person("kim", "leads"), p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
	if fault.From(err).Key != "fault.forbidden.removed" || len(r.status(p.ID).Preview.Votes) != 0 {
		t.Errorf("got %v and the votes %v, want to be told of the removal", err, r.status(p.ID).Preview.Votes)
	}
}

func TestARestoredApprovalCountsAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	r.votes(p, "kim")
	r.remove("kim")
	if err := r.approvals.Restore(t.Context(), removing("kim", admin("boss"))); err != nil {
		t.Fatal(err)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

// A confirmation of somebody who was removed since is no word either.
func TestARemovedPersonsConfirmationDoesNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(policy.Ruling{Verdict: policy.Require, Rule: "confirm", Version: policyVersion, Confirm: true})
	p, err := r.approvals.Request(t.Context(), agent("bot"), r.prepare("a", "new").ID, "please")
	if err != nil {
		t.Fatal(err)
	}
	sato := actor.Actor{Tenant: "acme", Kind: actor.Human, Issuer: "https://id.example", Subject: "sato"}
	if _, err := r.approvals.Decide(t.Context(), sato, p.ID, approvals.Decision{Confirm: true, Digest: p.Digest}); err != nil {
		t.Fatal(err)
	}
	r.remove("sato")
	c, err := r.apply(p)
	if fault.From(err).Key != "fault.approval_required.removed" || c.Status != commit.StatusNeedsApproval {
		t.Errorf("got %v, %s, want it sent back", err, c.Status)
	}
}

// meanwhile is a store that does something once, before the first decision is recorded.
type meanwhile struct {
	approvals.Store
	do   func()
	once sync.Once
}

func (m *meanwhile) RecordDecision(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error) {
	m.once.Do(m.do)
	return m.Store.RecordDecision(ctx, d)
}

// Whatever comes first: either the change was claimed before the removal, or it is refused. Nothing is claimed after it.
func TestARemovalAndAClaimHaveOneOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	applied := 0
	for n := range 30 {
		p := r.pending(fmt.Sprint(n))
		r.votes(p, "kim")
		done := make(chan commit.Change)
		go func() {
			c, _ := r.apply(p)
			done <- c
		}()
		if n%3 != 0 { // now and then the removal is likely to come late
			time.Sleep(time.Duration(n) * 300 * time.Microsecond)
		}
		removed := r.remove("kim")
		c := <-done
		claimedAt := time.Time{}
		for _, e := range r.status(p.ID).Events {
			if e.Kind == "claimed" {
				claimedAt = e.At
			}
		}
		switch {
		case c.Status == commit.StatusApplied && !claimedAt.IsZero() && claimedAt.Before(removed.Removal.At):
			applied++
		case c.Status == commit.StatusNeedsApproval && claimedAt.IsZero():
		default:
			t.Errorf("%d: got %s, claimed at %s and removed at %s", n, c.Status, claimedAt, removed.Removal.At)
		}
		if err := r.approvals.Restore(t.Context(), removing("kim", admin("boss"))); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.target.total(); got != applied {
		t.Errorf("got %d effects, want the %d that were claimed in time", got, applied)
	}
}

// A removal waits for a claim that has begun, as a freeze does.
func TestARemovalReturnsAfterTheClaimsBeforeIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	r.votes(p, "kim")
	release := r.hold(p.ID) // the claim has its shared lock and waits for the row
	claim := r.claimOf(p)
	claimed, removed := make(chan error, 1), make(chan error, 1)
	go func() { claimed <- r.store.ClaimApproved(t.Context(), claim) }()
	r.awaitBlocked(1)
	go func() {
		_, err := r.approvals.Remove(t.Context(), removing("kim", admin("boss")))
		removed <- err
	}()
	r.await(`select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
		and database = (select oid from pg_database where datname = current_database()))`)
	select {
	case err := <-removed:
		t.Errorf("removed (%v) before the claim had ended", err)
	default:
	}
	release()
	if err := receive(t, claimed); err != nil {
		t.Errorf("claim: %v", err)
	}
	if err := receive(t, removed); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestWhoMayRemoveApprovers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, by := range map[string]actor.Actor{
		"an agent": with(agent("bot"), func(a *actor.Actor) { a.Roles = []string{actor.RoleAdmin} }), "an approver": person("lee", "leads"), "an operator": operator("oper"),
	} {
		if _, err := r.approvals.Remove(t.Context(), removing("kim", by)); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s removes: got %v, want forbidden", name, err)
		}
		if err := r.approvals.Restore(t.Context(), removing("kim", by)); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s restores: got %v, want forbidden", name, err)
		}
	}
	if err := r.approvals.Restore(t.Context(), removing("kim", admin("boss"))); !errors.Is(err, fault.NotFound) {
		t.Errorf("restoring nobody: got %v, want not_found", err)
	}
	r.remove("BOSS")
	if err := r.approvals.Restore(t.Context(), removing("boss", admin("boss"))); !errors.Is(err, fault.Forbidden) {
		t.Errorf("restoring oneself: got %v, want forbidden", err)
	}
	for _, bad := range []approvals.RemovalOrder{
		{Person: "", By: admin("boss"), Reason: "left the agency"}, {Person: "https://id.example#", By: admin("boss"), Reason: "left the agency"},
		{Person: "kim\u202e", By: admin("boss"), Reason: "left the agency"}, {Person: strings.Repeat("k", 301), By: admin("boss"), Reason: "left the agency"},
		{Person: "kim", By: admin("boss"), Reason: "left"},
	} {
		if _, err := r.approvals.Remove(t.Context(), bad); !errors.Is(err, fault.InvalidInput) {
			t.Errorf("%q for %q: got %v, want invalid_input", bad.Person, bad.Reason, err)
		}
	}
	all, err := r.approvals.Removals(t.Context(), person("lee"))
	if err != nil || len(all) != 1 || all[0].Person != "BOSS" || all[0].By != "boss" {
		t.Errorf("got %+v, %v, want the one that was removed", all, err)
	}
	if _, err := r.approvals.Removals(t.Context(), actor.Actor{Tenant: "acme", Kind: actor.Human}); !errors.Is(err, fault.Forbidden) {
		t.Errorf("somebody without a role lists: got %v, want forbidden", err)
	}
	elsewhere := with(admin("boss"), func(a *actor.Actor) { a.Tenant = "other" })
	if all, err := r.approvals.Removals(t.Context(), elsewhere); err != nil || len(all) != 0 {
		t.Errorf("another tenant: got %+v, %v, want nothing", all, err)
	}
}

// A removal in another tenant takes nothing from anybody here.
func TestARemovalIsOfOneTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	r.votes(p, "kim")
	elsewhere := with(admin("boss"), func(a *actor.Actor) { a.Tenant = "other" })
	if _, err := r.approvals.Remove(t.Context(), removing("kim", elsewhere)); err != nil {
		t.Fatal(err)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestPostgresRefusesWordsOfRemovedPeople(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	r.remove("lee")
	vote := `insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
		select id, tenant_id, round, 'https://x.example#%s', 'x', '{leads}', true, '', digest, 'p1', clock_timestamp() from previews where id = $1`
	for name, tc := range map[string]struct {
		do   []statement
		want string
	}{
		"a removal without its event":     {[]statement{run(`insert into removed_approvers values ('acme', 'kim', 'kim', 'boss', 'why', clock_timestamp())`)}, "CU003"},
		"beside another event":            {[]statement{run(controlSQL("acme", `freeze_epoch = k.freeze_epoch + 1`)), run(`delete from removed_approvers`)}, "CU003"},
		"a restoration without its event": {[]statement{run(`delete from removed_approvers`)}, "CU003"},
		"a name that nobody would meet":   {[]statement{run(`update removed_approvers set person = 'Lee'`)}, "23514"},
		"all of them forgotten":           {[]statement{run(`truncate removed_approvers`)}, "CU001"},
		"a vote of somebody removed":      {[]statement{run(fmt.Sprintf(vote, "LEE"), p.ID.UUID())}, "CU021"},
		"a vote of somebody else":         {[]statement{run(fmt.Sprintf(vote, "kim"), p.ID.UUID())}, "none"},
	} {
		if got := r.sqlState(tc.do...); got != tc.want && !(tc.want == "none" && got != "CU021") {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
