package web

import (
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// applyForm is the button of whoever may apply: the requester, or the human that an agent asked for.
type applyForm struct {
	// Shown says that the change is approved and this person's own; WhyNot says in words why they cannot apply it all the same.
	Shown  bool
	WhyNot string
	// Fresh is what the target shows now.
	Fresh   *freshness
	Problem *problem
}

// applyFormOf is there for the person whose change it is, once it is approved. The service decides.
func (c *console) applyFormOf(v *visit, y commit.Why) applyForm {
	if y.Change.Status != commit.StatusApproved || !preview.Owns(v.who, y.Change.Preview) {
		return applyForm{Problem: v.refusal}
	}
	f := applyForm{Shown: true, Fresh: c.freshnessOf(v, y), Problem: v.refusal}
	if err := c.Commits.WhyNotApply(v.who, y.Change); err != nil {
		f.WhyNot = v.problemOf(err).Message
	}
	return f
}

// apply sends what was on the page, once, however often the form is sent. The page that it leads to shows what became of it.
func (c *console) apply(v *visit) error {
	id, err := v.changeID()
	if err != nil {
		return err
	}
	if err := v.readForm(); err != nil {
		return err
	}
	if err := c.applyShown(v, id); err != nil {
		return c.applyAgain(v, err)
	}
	return v.goTo("/changes/" + id.String())
}

func (c *console) applyShown(v *visit, id preview.ID) error {
	y, err := c.Commits.Why(v.r.Context(), v.who, id)
	if err != nil {
		return err
	}
	digest, err := canon.ParseDigest(v.field("digest"))
	if err != nil || digest != y.Change.Preview.Digest {
		return fault.New(fault.DigestMismatch, nil).Because(err)
	}
	_, err = c.Commits.Apply(v.r.Context(), v.who, "", id, c.ApplyWait)
	return err
}

// applyAgain shows the change as it is now, with the refusal.
func (c *console) applyAgain(v *visit, refusal error) error {
	if !refused(refusal) {
		return refusal
	}
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	v.refusal = v.problemOf(refusal)
	return c.showChange(v, statuses[fault.CodeOf(refusal)], y, settleForm{})
}
