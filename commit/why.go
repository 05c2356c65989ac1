package commit

import (
	"context"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Why explains why a change stands where it stands: who moves next, since when, until when, and what stands in the way.
type Why struct {
	Change Change
	// Text is the explanation in one sentence.
	Text connector.Message
	// Mover is who moves next: requester, approvers, service, operator or nobody.
	Mover string
	Since time.Time
	// Until is when the present state ends by its clock, zero if it does not.
	Until time.Time
	// WaitsFor is the change that holds the same target, empty if none.
	WaitsFor string
	// Behind are the changes of this tenant that are approved and wait for this one's target, for people who review; at most
	// mostBehind.
	Behind []string
	// Missing is who must still approve, where people are waited for.
	Missing preview.Requirement
	// Next is the step for the requester.
	Next fault.Next
}

// Why explains a change to anybody who may read it. Faults: not_found.
func (s *Service) Why(ctx context.Context, who actor.Actor, id preview.ID) (Why, error) {
	c, epochs, err := s.seen(ctx, who, id, true)
	if err != nil {
		return Why{}, err
	}
	if preview.Reviews(who) {
		c = s.withKeys(c)
	}
	w := explain(c)
	if e := c.Preview.Ruling.Exceeded; e != nil && c.Status == StatusDenied {
		f := preview.NoRoom(e)
		w.Text = connector.Say(f.Key, connector.Args(f.Args))
	}
	if c.Status == StatusPending || c.Status == StatusApproved {
		w.Missing = s.Recheck.Missing(c.Preview)
	}
	if lost := c.Preview.Lost(); c.Status == StatusApproved && len(w.Missing) > 0 && len(lost) > 0 {
		w.Text = connector.Say("why.approved.removed", connector.Args{"names": strings.Join(lost, ", ")})
	}
	if w.Behind, err = s.behind(ctx, who, c); err != nil {
		return Why{}, err
	}
	if c.held() {
		w.Text, w.Mover, w.Next = connector.Say("why.held", nil), "service", fault.NextCheckStatus
		return w, nil
	}
	if c.Status == StatusApproved && epochs.Frozen {
		explainFreeze(epochs, &w)
		return w, nil
	}
	if c.Status == StatusApproved {
		holder, _, err := s.Store.HolderOf(ctx, who.Tenant, c.Preview.Plan.Target.Key())
		if err != nil {
			return Why{}, err
		}
		if holder != nil && *holder != id {
			w.WaitsFor, w.Next = holder.String(), fault.NextRetryLater
			w.Text = connector.Say("why.target_busy", connector.Args{"preview_id": w.WaitsFor})
		}
	}
	return w, nil
}

// mostBehind bounds how many changes behind one are named.
const mostBehind = 20

// behind names who waits for a change that holds its target.
func (s *Service) behind(ctx context.Context, who actor.Actor, c Change) ([]string, error) {
	if !preview.Reviews(who) || c.Status != StatusApplying && c.Status != StatusUnknown {
		return nil, nil
	}
	waiting, err := s.Store.Behind(ctx, who.Tenant, c.Preview.ID, mostBehind)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range waiting {
		names = append(names, id.String())
	}
	return names, nil
}

type explanation struct {
	mover string
	next  fault.Next
}

var explanations = map[Status]explanation{
	StatusNeedsApproval: {"requester", fault.NextRequestApproval},
	StatusPending:       {"approvers", fault.NextAwaitApproval},
	StatusApproved:      {"requester", fault.NextApply},
	StatusDenied:        {"nobody", fault.NextNone},
	StatusRejected:      {"nobody", fault.NextNone},
	StatusCanceled:      {"nobody", fault.NextPrepareAgain},
	StatusExpired:       {"nobody", fault.NextPrepareAgain},
	StatusApplying:      {"service", fault.NextCheckStatus},
	StatusUnknown:       {"service", fault.NextCheckStatus},
	StatusApplied:       {"nobody", fault.NextNone},
	StatusNotApplied:    {"nobody", fault.NextPrepareAgain},
	StatusPartlyApplied: {"nobody", fault.NextCheckStatus},
}

// NextFor is the requester's next step in a status.
func NextFor(s Status) fault.Next { return explanations[s].next }

func explain(c Change) Why {
	e := explanations[c.Status]
	w := Why{Change: c, Mover: e.mover, Next: e.next, Since: c.Preview.CreatedAt}
	w.Text = connector.Say("why."+string(c.Status), whyArgs(c))
	if e := c.Preview.Ruling.Exceeded; e != nil && c.Status == StatusDenied {
		f := preview.NoRoom(e)
		w.Text = connector.Say(f.Key, connector.Args(f.Args))
	}
	if c.Confirms() {
		w.Text = connector.Say("why."+string(c.Status)+".confirm", connector.Args{"by": c.Preview.Requester.HumanName(), "rule": c.Preview.Ruling.Rule})
		w.Mover = "requester"
	}
	if c.Status.open() {
		w.Until = c.Preview.Deadline
	}
	for _, event := range c.Events {
		if event.Kind != "probed" && event.Kind != "handed_over" && event.Kind != "revealed" {
			w.Since = event.At // looking again is no change, and neither is reading
		}
	}
	if len(c.Executions) > 0 {
		explainExecution(c, &w)
	}
	return w
}

// explainFreeze says what an apply would be refused with: who froze what, why, and until when.
func explainFreeze(epochs Epochs, w *Why) {
	f := fault.New(fault.Frozen, nil).WithKey("fault.frozen.restored")
	if !epochs.Restoring {
		f = frozen(*epochs.FrozenBy)
		if until := epochs.FrozenBy.Until; until != nil && until.Before(w.Until) {
			w.Until = *until
		}
	}
	w.Text, w.Mover, w.Next = connector.Say(f.Key, connector.Args(f.Args)), "operator", f.Next
}

// Confirms reports whether the change waits for its requester's own person, and for nobody else.
func (c Change) Confirms() bool {
	return c.Preview.Ruling.Confirm && (c.Status == StatusNeedsApproval || c.Status == StatusPending)
}

func whyArgs(c Change) connector.Args {
	return connector.Args{
		"rule": c.Preview.Ruling.Rule, "by": c.Preview.EndedBy, "reason": c.Preview.EndReason,
		"groups": Groups(c.Preview.Ruling),
	}
}

func explainExecution(c Change, w *Why) {
	e := c.Executions[0]
	switch c.Status {
	case StatusUnknown:
		w.Until = time.Time{}
		if e.NeedsOperator {
			w.Mover = "operator"
			w.Text = connector.Say("why.unknown.operator", nil)
		}
		if first := e.Standing(c.Now); first != nil {
			w.Text = connector.Say("why.unknown.proposed", connector.Args{"by": first.Name})
			w.Until = first.At.Add(ProposalFor)
		}
	case StatusApplying:
		w.Until = e.LeaseUntil
	case StatusNotApplied:
		w.Text = connector.Say("why.not_applied."+string(e.Reason), connector.Args{"by": e.ResolvedBy, "reason": e.ResolvedWhy})
	}
}

func (s Status) open() bool {
	return s == StatusNeedsApproval || s == StatusPending || s == StatusApproved
}

// Groups writes a ruling's requirement as text: "1 × ads-approvers, 2 × finance / legal".
func Groups(r preview.Ruling) string { return r.Needs.String() }
