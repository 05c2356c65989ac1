// Package approvals is where people approve or reject exactly what they were shown.
//
// It promises that a decision counts only for the digest that was on the screen, only from a human other than the requester,
// only once per person, and only while the change waits. Agents can ask (Request) and nothing else. Start at
// Service.Decide and Quorum.
package approvals

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// Store keeps requests and decisions. Each method is one transaction.
type Store interface {
	// Preview reads a preview with its votes and the database's time. It returns the fault not_found for an unknown ID.
	Preview(ctx context.Context, tenant string, id preview.ID) (preview.Preview, time.Time, error)
	// Recall is a preview as this process saw it last. It asks nobody, and state, votes and clock may be out of date: go by it only
	// to a method that compares them.
	Recall(tenant string, id preview.ID) (p preview.Preview, ok bool)
	// RequestApproval moves needs_approval to pending. moved is false if it was not in that state, or too late.
	RequestApproval(ctx context.Context, m preview.Move) (p preview.Preview, moved bool, err error)
	// RecordDecision stores a vote and the state it leads to, if the preview is still at the revision, digest and states
	// that the verdict was computed from, and returns what became of it. moved is false otherwise, and nothing is stored.
	// A vote that would approve what a cap has no room for is not stored: the error is a *preview.Exceeded.
	RecordDecision(ctx context.Context, d RecordedDecision) (p preview.Preview, moved bool, err error)
	// RecordConfirmation stores the confirmation that approves a change, under the same comparisons and caps.
	RecordConfirmation(ctx context.Context, c RecordedConfirmation) (p preview.Preview, moved bool, err error)
	// RemoveApprover removes a person of the order's tenant with its event, and moves the approvers' epoch. It returns once every claim
	// that began before it has ended.
	RemoveApprover(ctx context.Context, o RemovalOrder) (Removed, error)
	// RestoreApprover ends a removal. restored is false if there was none.
	RestoreApprover(ctx context.Context, o RemovalOrder) (restored bool, err error)
	// RemovedApprovers lists who was removed in a tenant, by name.
	RemovedApprovers(ctx context.Context, tenant string) ([]preview.Removal, error)
	// Exposure reads what the caps of these charges come to, but for the preview apart.
	Exposure(ctx context.Context, tenant string, apart preview.ID, charges []policy.Charge) ([]policy.Exposure, error)
	// Queue lists pending changes of a tenant, the first to expire first.
	Queue(ctx context.Context, tenant string, page Page) ([]preview.Preview, string, time.Time, error)
}

// Page asks for a part of a list. Zero fields ask for all.
type Page struct {
	Cursor string
	Limit  int
	// Mine asks for what the person may still decide on; High for changes of high risk; Action for those of one action.
	Mine, High bool
	Action     string
	// RiskFirst has the changes of high risk before the others; each in the order in which they expire.
	RiskFirst bool
	// Seats is for the store: the person whose seats are asked for, nil if everybody's are. What they may not decide on all the same is
	// left out by the service.
	Seats *Seats
}

// Seats are the groups and the name of somebody who may decide, or confirm.
type Seats struct {
	Groups []string
	Person string
}

// pageOf is how many changes a page has where nobody says, and at most.
const (
	pageOf   = 50
	mostOf   = 100
	mostAsks = 25
)

// RecordedDecision is one vote with the verdict computed from it.
type RecordedDecision struct {
	Tenant   string
	ID       preview.ID
	Revision int64
	Digest   canon.Digest
	Vote     preview.Vote
	By       actor.Actor
	// Next is the state that the vote leads to; equal to From if it changes nothing yet.
	From, Next preview.State
	// LiveFor is how long Next lives, where it is another state than From: the apply window, or the preview's.
	LiveFor time.Duration
	Missing policy.Requirement
	// Action is for those who count decisions; it is not stored.
	Action string
}

// RecordedConfirmation is the word of the requester's own person.
type RecordedConfirmation struct {
	Tenant   string
	ID       preview.ID
	Revision int64
	Digest   canon.Digest
	By       actor.Actor
	// RulingBy is the version of the policy that lets them; LiveFor the apply window.
	RulingBy string
	LiveFor  time.Duration
}

// Ruler is the policy that rules at apply.
type Ruler interface {
	Evaluate(policy.Facts) policy.Ruling
	// UsesTime reports whether Evaluate depends on the moment.
	UsesTime() bool
	// UsesExposure reports whether Evaluate looks at what changes add up to; Counted are the charges to ask that by.
	UsesExposure() bool
	Counted(policy.Facts) []policy.Charge
}

// Deps are what a Service needs.
type Deps struct {
	Store   Store
	Actions *connector.Registry
	Policy  Ruler
	Clocks  connector.Clocks
	// FreshFor is how old a sign-in may be that approves a change of high risk; zero means DefaultFresh.
	FreshFor time.Duration
}

// DefaultFresh is how old a sign-in may be that approves a change of high risk.
const DefaultFresh = 15 * time.Minute

// Service is the approval queue.
type Service struct{ Deps }

// NewService makes a Service.
func NewService(d Deps) *Service {
	if d.FreshFor == 0 {
		d.FreshFor = DefaultFresh
	}
	return &Service{Deps: d}
}

// maxText bounds a justification or reason, in characters.
const maxText = 2000

// Request puts a change into the queue. Only its requester may ask; asking again changes nothing. The returned preview may
// be in any later state: the transports show it as a status call would.
func (s *Service) Request(ctx context.Context, who actor.Actor, id preview.ID, justification string) (preview.Preview, error) {
	p, err := s.waiting(ctx, who.Tenant, id)
	if err != nil {
		return preview.Preview{}, err
	}
	if !preview.Owns(who, p) {
		return preview.Preview{}, fault.New(fault.NotFound, nil)
	}
	if err := s.mayAsk(who, p, justification); err != nil {
		return s.anew(ctx, p, err)
	}
	if p.State != preview.NeedsApproval {
		return p, nil
	}
	moved, _, err := s.Store.RequestApproval(ctx, preview.Move{
		Tenant: who.Tenant, ID: id, By: who, Reason: justification, LiveFor: s.clocks(p).ApprovalFor,
	})
	return moved, err
}

// waiting is a preview that nobody has been asked about yet, as this process saw it last, or any as it is stored. Whose it is and what
// it is about never changes, and RequestApproval compares the rest.
func (s *Service) waiting(ctx context.Context, tenant string, id preview.ID) (preview.Preview, error) {
	if p, ok := s.Store.Recall(tenant, id); ok && p.State == preview.NeedsApproval {
		return p, nil
	}
	p, _, err := s.Store.Preview(ctx, tenant, id)
	return p, err
}

// anew is how a change stands now, beside an error: what was seen before the call is said by no answer.
func (s *Service) anew(ctx context.Context, p preview.Preview, refusal error) (preview.Preview, error) {
	fresh, _, err := s.Store.Preview(ctx, p.Tenant, p.ID)
	if err != nil {
		return preview.Preview{}, refusal
	}
	return fresh, refusal
}

func (s *Service) mayAsk(who actor.Actor, p preview.Preview, justification string) error {
	if err := s.mayWrite(who, p); err != nil {
		return err
	}
	return preview.CheckText("/justification", justification, 0, maxText)
}

func (s *Service) mayWrite(who actor.Actor, p preview.Preview) error {
	action, ok := s.Actions.Action(p.Action)
	if !ok {
		return fault.New(fault.Conflict, nil).WithKey("fault.conflict.action_version").WithNext(fault.NextPrepareAgain)
	}
	return preview.RequireScopes(who, action.Scopes...)
}

func (s *Service) clocks(p preview.Preview) connector.Clocks {
	action, _ := s.Actions.Action(p.Action)
	return action.Clocks.Or(s.Clocks)
}

// Item is one change of the queue, with what this person may do about it.
type Item struct {
	Preview preview.Preview
	Quorum  Verdict
	// WhyNot is nil if the person may decide, else the refusal they would get.
	WhyNot error
}

// Queue lists what waits for a decision. Every person of the tenant with a reviewing role or a seat may read it.
func (s *Service) Queue(ctx context.Context, who actor.Actor, page Page) ([]Item, string, time.Time, error) {
	if !who.May(actor.Queue) {
		return nil, "", time.Time{}, humansOnly()
	}
	if page.Limit <= 0 || page.Limit > mostOf {
		page.Limit = pageOf
	}
	if page.Mine {
		page.Seats = &Seats{Groups: append([]string{}, who.Groups...), Person: who.Person()}
	}
	return s.pages(ctx, who, page)
}

// pages asks the store until a page is full: a few of what it finds are not this person's to decide on after all. The store goes on from
// the last that it has given, so a page ends with it.
func (s *Service) pages(ctx context.Context, who actor.Actor, page Page) ([]Item, string, time.Time, error) {
	limit := page.Limit
	items := make([]Item, 0, limit)
	for asked := 1; ; asked++ {
		page.Limit = limit - len(items)
		previews, next, now, err := s.Store.Queue(ctx, who.Tenant, page)
		if err != nil {
			return nil, "", time.Time{}, err
		}
		for _, p := range previews {
			if item := s.Item(who, p); preview.MayRead(who, p) && (!page.Mine || item.waitsFor(who)) {
				items = append(items, item)
			}
		}
		if page.Cursor = next; next == "" || !page.Mine || len(items) == limit || asked == mostAsks {
			return items, next, now, nil
		}
	}
}

// waitsFor reports whether this person may decide, and has not.
func (i Item) waitsFor(who actor.Actor) bool {
	return i.WhyNot == nil && !slices.ContainsFunc(current(i.Preview), func(v preview.Vote) bool { return actor.SamePerson(v.Person, who.Person()) })
}

// Item computes the quorum so far and what the person may do about a preview.
func (s *Service) Item(who actor.Actor, p preview.Preview) Item {
	return Item{Preview: p, Quorum: Tally(p.Ruling, current(p)), WhyNot: whyNot(who, p)}
}

// Missing are the seats that the votes so far leave empty.
func (s *Service) Missing(p preview.Preview) policy.Requirement {
	return Tally(p.Ruling, current(p)).Missing
}

// UsesTime reports whether Standing depends on the moment: on its time, or on what other changes have come to by then.
func (s *Service) UsesTime() bool { return s.Policy.UsesTime() || s.Policy.UsesExposure() }

// Standing says whether an approved preview may still be applied under the policy as it is now; at is the database's time.
func (s *Service) Standing(ctx context.Context, p preview.Preview, at time.Time) (preview.Standing, policy.Ruling, error) {
	facts := policy.Facts{Action: p.Action, Input: p.Input, Plan: p.Plan, Impact: p.Impact, Requester: p.Requester, Now: at}
	if s.Policy.UsesExposure() {
		var err error
		if facts.Exposure, err = s.Store.Exposure(ctx, p.Tenant, p.ID, s.Policy.Counted(facts)); err != nil {
			return preview.NeedsMore, policy.Ruling{}, fmt.Errorf("reading what changes add up to: %w", err)
		}
	}
	now := s.Policy.Evaluate(facts)
	switch now.Verdict {
	case policy.Allow:
		return preview.Stands, now, nil
	case policy.Deny:
		return preview.DeniedNow, now, nil
	}
	// People who let through what was no high risk then have neither shown themselves lately nor written out what it is about.
	if now.Risk == policy.RiskHigh && p.Ruling.Risk != policy.RiskHigh {
		return preview.NeedsMore, now, nil
	}
	// A requirement that names nobody is met by nobody.
	if now.Confirm && confirmed(p) || len(now.Needs) > 0 && Tally(now, current(p)).Met {
		return preview.Stands, now, nil
	}
	return preview.NeedsMore, now, nil
}

// current are the votes of the preview's present round on its digest, but for those of people who were removed since.
func current(p preview.Preview) []preview.Vote {
	var votes []preview.Vote
	for _, v := range p.Votes {
		if p.Counts(v) {
			votes = append(votes, v)
		}
	}
	return votes
}
