package web

import (
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// settleForm is the part of a change's page where operators settle an unknown outcome.
type settleForm struct {
	// Shown says that the outcome is unknown; Allowed, that this person is an operator. The service decides.
	Shown, Allowed bool
	// LookOnly says that the outcome is settled, but that a look may still contradict it.
	LookOnly bool
	// NotBefore is when "it did not happen" begins to count, nil once that has passed.
	NotBefore *time.Time
	// ShowsRequested and ShowsPreview say what the last look saw where a statement would contradict it: a warning beside it.
	ShowsRequested, ShowsPreview bool
	// Outcome, Reason and Evidence are what was said when the form was refused.
	Outcome, Reason, Evidence string
	Problem                   *problem
}

// warn compares what the last look saw with what was asked for. It is no proof of either: others change the target too.
func (f *settleForm) warn(columns []answer.Column) {
	for _, c := range columns {
		if c.Shows != "" { // the values are masked, and all alike
			f.ShowsRequested = f.ShowsRequested || c.Shows == string(commit.ShowsRequested)
			f.ShowsPreview = f.ShowsPreview || c.Shows == string(commit.ShowsPreview)
			continue
		}
		now := valueOf(c.Now)
		f.ShowsRequested = f.ShowsRequested || now != unread && now == valueOf(c.Requested)
		f.ShowsPreview = f.ShowsPreview || now != unread && now == valueOf(c.AtPreview)
	}
}

// unread is the value of what is not known, which equals nothing.
var unread = answer.Value{}

func valueOf(v *answer.Value) answer.Value {
	if v == nil {
		return unread
	}
	return *v
}

// resolve records an operator's statement about an unknown outcome.
func (c *console) resolve(v *visit) error {
	id, err := v.changeID()
	if err != nil {
		return err
	}
	if err := v.readForm(); err != nil {
		return err
	}
	if err := c.recordStatement(v, id); err != nil {
		return c.settleAgain(v, err)
	}
	return v.goTo("/changes/" + id.String())
}

func (c *console) recordStatement(v *visit, id preview.ID) error {
	r := commit.Resolution{
		Key: commit.Key{Tenant: v.who.Tenant, ID: id}, By: v.who, Reason: v.field("reason"), Evidence: v.field("evidence"),
	}
	switch v.field("outcome") {
	case "applied":
		r.Applied = true
	case "not_applied":
	default:
		return fault.New(fault.InvalidInput, nil).WithField("/outcome", "web.field.outcome", nil)
	}
	_, err := c.Commits.Resolve(v.r.Context(), r)
	return err
}

// settleAgain shows the change as it is now, with the refusal and all that was typed.
func (c *console) settleAgain(v *visit, refusal error) error {
	if !refused(refusal) {
		return refusal
	}
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	return c.showChange(v, statuses[fault.CodeOf(refusal)], y, settleForm{
		Outcome: v.field("outcome"), Reason: v.field("reason"), Evidence: v.field("evidence"), Problem: v.problemOf(refusal),
	})
}
