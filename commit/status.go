package commit

import (
	"context"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// MaxWait is the longest that a call is held: clients give up after sixty seconds, and waiting can always be asked again.
const MaxWait = 50 * time.Second

// poll bounds how stale a waiting call can be. Polling is what guarantees that a waiter wakes.
const poll = 250 * time.Millisecond

// Status answers for a change as it stands, waiting up to wait for it to change if somebody is to move. Faults: not_found.
func (s *Service) Status(ctx context.Context, who actor.Actor, id preview.ID, wait time.Duration, detail bool) (Change, error) {
	c, err := s.visible(ctx, who, id, detail)
	if err == nil && detail && preview.Reviews(who) {
		c = s.withKeys(c)
	}
	if err != nil || wait <= 0 || !moves(c.Status) {
		return c, err
	}
	return s.until(ctx, c, wait, detail, func(now Change) bool { return now.Status != c.Status })
}

// Unclaimed is a change that was just read or written and that nobody has claimed, as Status would answer without asking the database
// again. ok is false where there are executions to be read, and where the clock has ended but for a hold, which only a reading knows of.
func Unclaimed(p preview.Preview) (c Change, ok bool) {
	status := StatusOf(p, nil, p.SeenAt)
	if p.SeenAt.IsZero() || p.State == preview.Claimed || p.State.Open() && status == StatusExpired {
		return Change{}, false
	}
	return Change{Preview: p, Status: status, Now: p.SeenAt}, true
}

func (s *Service) visible(ctx context.Context, who actor.Actor, id preview.ID, detail bool) (Change, error) {
	c, _, err := s.seen(ctx, who, id, detail)
	return c, err
}

// seen is visible, with what an apply would rest on.
func (s *Service) seen(ctx context.Context, who actor.Actor, id preview.ID, detail bool) (Change, Epochs, error) {
	c, epochs, err := s.Store.Load(ctx, who.Tenant, id, detail)
	if err != nil {
		return Change{}, epochs, err
	}
	if !preview.MayRead(who, c.Preview) {
		return Change{}, epochs, fault.New(fault.NotFound, nil)
	}
	if detail && c.Preview.State.Open() && len(c.Preview.Ruling.Charges) > 0 {
		c.Exposure, err = s.Store.Exposure(ctx, who.Tenant, id, c.Preview.Ruling.Charges)
	}
	return c, epochs, err
}

// moves reports whether somebody other than the caller may move the change next.
func moves(s Status) bool { return s == StatusPending || s == StatusApplying || s == StatusUnknown }

// await answers a repeated apply: with the outcome if it is there, else after waiting for it.
func (s *Service) await(ctx context.Context, c Change, wait time.Duration) (Change, error) {
	c.Replayed = c.Preview.State == preview.Claimed
	if c.Status != StatusApplying || wait <= 0 {
		return c, refusal(c)
	}
	c, err := s.until(ctx, c, wait, false, func(now Change) bool { return now.Status != StatusApplying })
	c.Replayed = true
	if err != nil {
		return c, err
	}
	return c, refusal(c)
}

// refusal is what an apply answers where there was nothing to claim and nothing was claimed.
func refusal(c Change) error {
	switch c.Status {
	case StatusNeedsApproval:
		return fault.New(fault.ApprovalRequired, nil)
	case StatusPending:
		return fault.New(fault.ApprovalRequired, nil).WithKey("fault.approval_required.pending").WithNext(fault.NextAwaitApproval)
	case StatusApproved:
		// It was claimed and the send never left, between our look and this one.
		return fault.New(fault.TargetUnavailable, nil)
	}
	return nil
}

func (s *Service) until(ctx context.Context, c Change, wait time.Duration, detail bool, done func(Change) bool) (Change, error) {
	ctx, cancel := context.WithTimeout(ctx, min(wait, MaxWait))
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return c, nil
		case <-s.leaving.Done():
			return c, nil
		case <-ticker.C:
		}
		fresh, _, err := s.Store.Load(context.WithoutCancel(ctx), c.Preview.Tenant, c.Preview.ID, detail)
		if err != nil {
			return c, err
		}
		if len(c.Executions) > 0 && c.Executions[0].Key != "" {
			fresh = s.withKeys(fresh)
		}
		if c = fresh; done(c) {
			return c, nil
		}
	}
}

// Filter asks for a part of a tenant's changes. Zero fields ask for all.
type Filter struct {
	Tenant string
	// Owner restricts to the caller's own changes: its ID, and the person it may apply for.
	OwnerID, OwnerPerson string
	Status               Status
	// Statuses asks for any of several, beside Status.
	Statuses []Status
	TargetID string
	Action   string
	Cursor   string
	Limit    int
	// NeedsOperator restricts to unknown outcomes that were handed over.
	NeedsOperator bool
	// Contradicted restricts to outcomes that later proof has contradicted.
	Contradicted bool
	// Person restricts to changes that somebody whose subject holds this text asked for, decided on or settled.
	Person string
	// Since and Until bound when a change was prepared: from Since on, and before Until.
	Since, Until time.Time
}

// maxPage bounds one page of a list.
const maxPage = 100

// List lists changes, the newest first: an agent's own, or all of the tenant's for people who review. Faults: invalid_input
// for a bad cursor.
func (s *Service) List(ctx context.Context, who actor.Actor, f Filter) ([]Change, string, error) {
	f.Tenant = who.Tenant
	if f.Limit <= 0 || f.Limit > maxPage {
		f.Limit = 20
	}
	if !preview.Reviews(who) {
		f.OwnerID = who.ID()
		if who.Kind == actor.Human {
			f.OwnerPerson = who.Person()
		}
	}
	return s.Store.List(ctx, f)
}
