package verify

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// The groups of the run's rule about several people: one of finance, and two of leads or legal.
const (
	finance = "verify-finance"
	leads   = "verify-leads"
	legal   = "verify-legal"
)

var severalPeople = policy.Requirement{{AnyOf: []string{finance}, Count: 1}, {AnyOf: []string{leads, legal}, Count: 2}}

// member is a person of these groups alone.
func member(name string, groups ...string) actor.Actor {
	one := person(name)
	one.Groups = groups
	return one
}

var quorum = Check{
	ID: "quorum", Promise: "Everybody that a rule asks for has agreed: an AND of groups, one seat for each person, and two votes at once leave no quorum unseen",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		if err := b.seats(ctx); err != nil {
			return Proof{}, err
		}
		if err := b.votesAtOnce(ctx); err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "one of finance and two of leads or legal approved a change, in the one seating that fits; two people who voted at the same moment did too",
			Refusal: "somebody in two groups filled one seat, in whatever spelling of their name; and one group's people did not do for another's",
		}, nil
	},
}

// seats lets people come in an order in which only one seating fits.
func (b *bench) seats(ctx context.Context) error {
	p, err := b.asked(ctx, bySeveral+"seats")
	if err != nil {
		return err
	}
	elsewhere := member(strings.ToUpper("kim"), finance, leads)
	elsewhere.Issuer = "https://another.invalid"
	for _, step := range []struct {
		who  actor.Actor
		when string
		want preview.State
	}{
		{member("kim", finance, leads), "after somebody who is in both groups", preview.Pending},
		{elsewhere, "after the same person, known to another issuer in capitals", preview.Pending},
		{member("lee", legal), "after one of legal", preview.Pending},
		{member("ito", finance), "after one of finance, which gives the first one a seat among leads", preview.Approved},
	} {
		p, err = b.core.approvals.Decide(ctx, step.who, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
		if err != nil {
			return fail("%s, the vote was told %v", step.when, err)
		}
		if p.State != step.want {
			return fail("%s, the change is %s, want %s", step.when, p.State, step.want)
		}
	}
	c, err := b.core.apply(ctx, p)
	if err != nil || c.Status != commit.StatusApplied {
		return fail("the change that everybody approved is %s (%v), want applied", c.Status, err)
	}
	return b.wantEffects(p, 1, "after it")
}

// votesAtOnce lets a second vote come between the count of the first and its record.
func (b *bench) votesAtOnce(ctx context.Context) error {
	p, err := b.asked(ctx, bySeveral+"at-once")
	if err != nil {
		return err
	}
	vote := func(c *core, who actor.Actor) (preview.Preview, error) {
		return c.approvals.Decide(ctx, who, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
	}
	if _, err := vote(b.core, member("ito", finance)); err != nil {
		return err
	}
	var once sync.Once
	var inner error
	second, err := b.on(between{ports: b.store, decide: func(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error) {
		once.Do(func() { _, inner = vote(b.core, member("kim", leads)) })
		return b.store.RecordDecision(ctx, d)
	}})
	if err != nil {
		return err
	}
	decided, err := vote(second, member("lee", leads))
	if err := errors.Join(err, inner); err != nil {
		return fail("two votes at once were told %v", err)
	}
	if decided.State != preview.Approved {
		return fail("after two votes at once that complete the quorum, the change is %s, want approved", decided.State)
	}
	return nil
}

var removal = Check{
	ID: "approver-removed", Promise: "Once the removal of an approver has returned, nothing that rests on their word is claimed, and they decide nothing",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		boss := person("boss")
		boss.Roles = []string{actor.RoleAdmin}
		order := approvals.RemovalOrder{Person: "Approver", By: boss, Reason: "a verification run"}
		p, err := b.pending(ctx, "removed")
		if err != nil {
			return Proof{}, err
		}
		waiting, err := b.pending(ctx, "removed-waiting")
		if err != nil {
			return Proof{}, err
		}
		if p, err = b.approve(ctx, p); err != nil {
			return Proof{}, err
		}
		_, epochs, err := b.store.Load(ctx, tenant, p.ID, false)
		if err != nil {
			return Proof{}, err
		}
		if _, err := b.core.approvals.Remove(ctx, order); err != nil {
			return Proof{}, err
		}
		claimed := b.claim(ctx, b.store, p, func(c *commit.Claim) { c.Epochs = epochs })
		_, applied := b.core.apply(ctx, p)
		_, voted := b.approve(ctx, waiting)
		bySQL := b.refusedSQL(ctx, "CU021", "a removed person's vote, written by SQL", `
			insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
			values ($1, $2, 1, $3, 'x', '{}', true, '', $4, '', clock_timestamp())`,
			waiting.ID.UUID(), tenant, actor.PersonID(issuer, "APPROVER"), waiting.Digest[:])
		if err := b.core.approvals.Restore(context.WithoutCancel(ctx), order); err != nil {
			return Proof{}, err
		}
		switch {
		case !errors.Is(claimed, commit.ErrEpochsMoved):
			return Proof{}, fail("a claim that rests on what was seen before the removal was told %v, want a refusal", claimed)
		case !errors.Is(applied, fault.ApprovalRequired):
			return Proof{}, fail("an apply after the removal was told %v, want approval_required", applied)
		case !errors.Is(voted, fault.Forbidden):
			return Proof{}, fail("the removed person's vote was told %v, want forbidden", voted)
		case bySQL != nil:
			return Proof{}, bySQL
		}
		if err := b.wantEffects(p, 0, "after the removal"); err != nil {
			return Proof{}, err
		}
		if waiting, err = b.approve(ctx, waiting); err != nil || waiting.State != preview.Approved {
			return Proof{}, fail("a vote of the person once they were restored left the change %s (%v), want approved", waiting.State, err)
		}
		return Proof{
			Control: "once they were restored, the same person approved a change",
			Refusal: "what they had approved was sent back for approval, a claim that had looked before was refused, and so was their vote, by SQL too",
		}, b.want(ctx, p, commit.StatusNeedsApproval, "after the removal")
	},
}
