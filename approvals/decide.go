package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// Decision is what a person says about what was on their screen.
type Decision struct {
	Approve bool
	// Confirm is the word of the requester's own person, where the ruling asks for that. It is no vote, and excludes Approve.
	Confirm bool
	// Reason is required for a rejection.
	Reason string
	// Typed is the target's name as it is shown, which somebody who approves a change of high risk writes out.
	Typed string
	// Digest is the one that was on the screen.
	Digest canon.Digest
}

// leastReason is the shortest reason of a rejection, in characters; two suffice in Japanese.
const leastReason = 2

// retries bounds how often a decision is computed anew because another vote came first.
const retries = 8

// Decide records one person's decision. A repeated decision is the same decision. A different one by the same person is a
// conflict, except that a rejection before the claim is always heard (veto). Faults: not_found, forbidden, digest_mismatch,
// expired, conflict, in_progress, exposure_exceeded, invalid_input. When an error is returned, nothing was recorded.
func (s *Service) Decide(ctx context.Context, who actor.Actor, id preview.ID, d Decision) (preview.Preview, error) {
	if !who.May(actor.Decide) {
		return preview.Preview{}, humansOnly()
	}
	if err := preview.CheckText("/reason", d.Reason, leastFor(d), maxText); err != nil {
		return preview.Preview{}, err
	}
	if decided, done, err := s.decideAtOnce(ctx, who, id, d); done || err != nil {
		return decided, err
	}
	for range retries {
		p, now, err := s.Store.Preview(ctx, who.Tenant, id)
		if err != nil {
			return preview.Preview{}, err
		}
		decided, done, err := s.decide(ctx, who, p, now, d)
		if err != nil || done {
			return decided, err
		}
	}
	return preview.Preview{}, fault.New(fault.Conflict, nil).WithNext(fault.NextRetryLater)
}

// decideAtOnce decides on the preview as this process saw it last, which spares a reading. Only a decision that was recorded counts:
// RecordDecision compares what the verdict was computed from. What the last look would refuse, or has heard before, is looked at anew. A
// change of high risk is always read, because how fresh a sign-in is depends on what time it is; and so are earlier votes, which count
// only while the people who gave them may decide.
func (s *Service) decideAtOnce(ctx context.Context, who actor.Actor, id preview.ID, d Decision) (preview.Preview, bool, error) {
	p, ok := s.Store.Recall(who.Tenant, id)
	if !ok || p.Ruling.Risk == policy.RiskHigh || len(p.Votes) > 0 {
		return preview.Preview{}, false, nil
	}
	decided, done, err := s.decide(ctx, who, p, p.SeenAt, d)
	var refused *fault.Fault
	switch {
	case errors.As(err, &refused), err == nil && (!done || decided.Revision == p.Revision):
		return preview.Preview{}, false, nil
	case err != nil:
		return preview.Preview{}, false, err // what was seen before the call is said by no answer
	}
	return decided, true, nil
}

func leastFor(d Decision) int {
	if d.Approve || d.Confirm {
		return 0
	}
	return leastReason
}

// decide makes one attempt, and returns the preview with the vote. done is false if another change of the preview came first.
func (s *Service) decide(
	ctx context.Context, who actor.Actor, p preview.Preview, now time.Time, d Decision,
) (decided preview.Preview, done bool, err error) {
	if !preview.MayRead(who, p) {
		return p, false, fault.New(fault.NotFound, nil)
	}
	if err := mayDecide(who, p, d); err != nil {
		return p, false, err
	}
	if d.Digest != p.Digest {
		return p, false, fault.New(fault.DigestMismatch, nil)
	}
	if err := s.surely(who, p, now, d); err != nil {
		return p, false, err
	}
	if d.Confirm {
		return s.confirm(ctx, who, p, now)
	}
	if repeated, err := earlier(who, p, d); repeated || err != nil {
		return p, repeated, err
	}
	if err := stillOpen(p, now, d); err != nil {
		return p, false, err
	}
	decided, done, err = s.Store.RecordDecision(ctx, s.record(who, p, d))
	if err != nil {
		return p, false, notRecorded("decision", err)
	}
	return decided, done, nil
}

// whyNot is nil if this person may decide on p, whatever its state: a human, not removed, not involved in asking, with a seat.
func whyNot(who actor.Actor, p preview.Preview) error {
	forbid := func(key string, args fault.Args) error { return fault.New(fault.Forbidden, args).WithKey(key) }
	switch {
	case !who.May(actor.Decide):
		return humansOnly()
	case p.RemovalOf(who.Person()) != nil:
		return removed(*p.RemovalOf(who.Person()))
	case p.Ruling.Confirm && !confirms(who, p):
		return forbid("fault.forbidden.confirm_only", fault.Args{"by": p.Requester.HumanName()})
	case p.Ruling.Confirm:
		return nil
	case p.Requester.Involves(who.Person()):
		return forbid("fault.forbidden.own_change", nil)
	case len(p.Ruling.Needs) == 0:
		return forbid("fault.forbidden.no_people_needed", nil)
	case !preview.Seated(who, p.Ruling):
		return forbid("fault.forbidden.no_seat", fault.Args{"groups": eligible(p)})
	}
	return nil
}

// mayDecide is whyNot for one kind of decision: where a confirmation is asked for, nothing else is heard, and nowhere else is one.
func mayDecide(who actor.Actor, p preview.Preview, d Decision) error {
	if err := whyNot(who, p); err != nil {
		return err
	}
	switch {
	case p.Ruling.Confirm && !d.Confirm:
		return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.confirm_instead")
	case d.Confirm && !p.Ruling.Confirm:
		return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.no_confirmation")
	}
	return nil
}

// confirms reports whether this is the person that the change was asked by or for. It is the same issuer's person, unlike where
// people are kept from deciding: taking two for one would be the mistake here.
func confirms(who actor.Actor, p preview.Preview) bool {
	return who.May(actor.Confirm) && preview.Owns(who, p)
}

// confirmed reports whether that person has confirmed what is stored, and was not removed since.
func confirmed(p preview.Preview) bool {
	c := p.Confirmed
	return c != nil && c.Round == p.Round && c.Digest == p.Digest && p.RemovalOf(c.Person) == nil
}

// notRecorded says what a cap has refused, and passes anything else on.
func notRecorded(what string, err error) error {
	var exceeded *preview.Exceeded
	if errors.As(err, &exceeded) {
		return preview.NoRoom(exceeded)
	}
	return fmt.Errorf("recording the %s: %w", what, err)
}

func (s *Service) confirm(ctx context.Context, who actor.Actor, p preview.Preview, now time.Time) (preview.Preview, bool, error) {
	if confirmed(p) {
		return p, true, nil
	}
	if err := stillOpen(p, now, Decision{Approve: true}); err != nil {
		return p, false, err
	}
	done, moved, err := s.Store.RecordConfirmation(ctx, RecordedConfirmation{
		Tenant: p.Tenant, ID: p.ID, Revision: p.Revision, Digest: p.Digest, By: who, RulingBy: p.Ruling.Version, LiveFor: s.clocks(p).ApplyWindow,
	})
	if err != nil {
		return p, false, notRecorded("confirmation", err)
	}
	return done, moved, nil
}

// surely asks of whoever lets a change of high risk through that they have shown themselves lately, and that they have written out
// what it is about. A rejection is heard from anybody who may decide.
func (s *Service) surely(who actor.Actor, p preview.Preview, now time.Time, d Decision) error {
	if p.Ruling.Risk != policy.RiskHigh || !d.Approve && !d.Confirm {
		return nil
	}
	if who.AuthTime.IsZero() || now.Sub(who.AuthTime) > s.FreshFor {
		return fault.New(fault.Unauthenticated, fault.Args{"minutes": int(s.FreshFor.Minutes())}).WithKey("fault.unauthenticated.fresh").
			WithData(map[string]any{"max_age_s": int(s.FreshFor.Seconds())})
	}
	if !p.Plan.Target.Named(d.Typed) {
		return fault.New(fault.InvalidInput, nil).WithField("/typed", "field.typed", fault.Args{"name": p.Plan.Target.Shown()})
	}
	return nil
}

func humansOnly() error {
	return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.humans_only")
}

// eligible are the groups of which any member has a seat.
func eligible(p preview.Preview) []string {
	var groups []string
	for _, seats := range p.Ruling.Needs {
		groups = append(groups, seats.AnyOf...)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// earlier looks for this person's last vote in this round. A rejection after an own approval goes on as a veto.
func earlier(who actor.Actor, p preview.Preview, d Decision) (repeated bool, err error) {
	for _, v := range slices.Backward(current(p)) {
		switch {
		case !actor.SamePerson(v.Person, who.Person()):
			continue
		case v.Approve == d.Approve:
			return true, nil
		case d.Approve:
			return false, fault.New(fault.Conflict, nil).WithKey("fault.conflict.other_decision").WithNext(fault.NextNone)
		}
		return false, nil
	}
	return false, nil
}

// stillOpen says who won if the change can no longer be decided. Approval needs pending; a rejection is heard until the claim.
func stillOpen(p preview.Preview, now time.Time, d Decision) error {
	switch {
	case p.State == preview.Claimed:
		return fault.New(fault.InProgress, nil)
	case p.State == preview.Expired, p.State.Open() && !now.Before(p.Deadline):
		return fault.New(fault.Expired, nil) // whether or not a sweep has come by
	case p.State == preview.Pending, p.State == preview.Approved && !d.Approve:
		return nil
	}
	return fault.New(fault.Conflict, fault.Args{"status": string(p.State)}).WithKey("fault.conflict.decided").WithNext(fault.NextNone)
}

func (s *Service) record(who actor.Actor, p preview.Preview, d Decision) RecordedDecision {
	vote := preview.Vote{
		Person: who.Person(), Name: who.HumanName(), Groups: who.Groups, Approve: d.Approve, Reason: d.Reason,
		Digest: d.Digest, Round: p.Round, RulingBy: p.Ruling.Version,
	}
	verdict := Tally(p.Ruling, append(current(p), vote))
	r := RecordedDecision{
		Tenant: p.Tenant, ID: p.ID, Revision: p.Revision, Digest: d.Digest, Vote: vote, By: who,
		From: p.State, Next: p.State, LiveFor: s.clocks(p).ApplyWindow, Missing: verdict.Missing,
		Action: p.Action,
	}
	switch {
	case verdict.Vetoed:
		r.Next = preview.Rejected
	case verdict.Met:
		r.Next = preview.Approved
	case p.State == preview.Approved:
		// Without this person's approval too few are left: others must be asked. Their approvals stand.
		r.Next, r.LiveFor = preview.NeedsApproval, s.clocks(p).PreviewTTL
	}
	return r
}
