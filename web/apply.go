package web

import (
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// applyForm is the button of whoever may apply: the requester, or the human that an agent asked for.
type applyForm struct {
	// Shown says that the change is approved and this person's own; WhyNot says in words why it cannot be applied all the same, NotYou
	// that it is this person who cannot. Back says why all that an apply would do is send it back for approval.
	Shown, NotYou bool
	WhyNot, Back  string
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
	err := c.Commits.WhyNotApply(v.r.Context(), v.who, y.Change.Preview.ID)
	if err == nil {
		if y.WaitsFor != "" { // Apply would answer target_busy
			f.WhyNot = v.t("web.apply.busy", "preview_id", y.WaitsFor)
		}
		return f
	}
	why := v.problemOf(err).Message
	switch fault.CodeOf(err) {
	case fault.ApprovalRequired:
		f.Back = why
		return f
	case fault.Forbidden, fault.InsufficientScope:
		f.NotYou = true
	case fault.Internal:
		c.Log.ErrorContext(v.r.Context(), "whether a change may be applied is not known", "request_id", v.requestID, "error", err)
	}
	f.WhyNot = why
	return f
}

// hindrance is why nobody can apply the change as it stands, empty if somebody can or it is for this person alone.
func (f applyForm) hindrance() string {
	if f.NotYou {
		return ""
	}
	return f.WhyNot + f.Back
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
