package web

import (
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// decide records what a person says about exactly what was on their page. A refusal shows the change as it is now, with the
// typed text still in the form.
func (c *console) decide(v *visit) error {
	id, err := v.changeID()
	if err != nil {
		return err
	}
	if err := v.readForm(); err != nil {
		return err
	}
	if err := c.recordDecision(v, id); err != nil {
		return c.decideAgain(v, err)
	}
	return v.goTo("/changes/" + id.String())
}

func (c *console) recordDecision(v *visit, id preview.ID) error {
	d := approvals.Decision{Reason: v.field("reason"), Typed: v.field("typed")}
	switch v.field("decision") {
	case "approve":
		d.Approve = true
	case "confirm":
		d.Confirm = true
	case "reject":
	default:
		return fault.New(fault.InvalidInput, nil).WithField("/decision", "web.field.decision", nil)
	}
	digest, err := canon.ParseDigest(v.field("digest"))
	if err != nil {
		return fault.New(fault.DigestMismatch, nil).Because(err)
	}
	d.Digest = digest
	if d.Approve || d.Confirm {
		if err := c.allSeen(v, id); err != nil {
			return err
		}
	}
	_, err = c.Approvals.Decide(v.r.Context(), v.who, id, d)
	return err
}

// allSeen refuses to let through what has risky rows that nobody says they have seen: it is this page that shows them.
func (c *console) allSeen(v *visit, id preview.ID) error {
	y, err := c.Commits.Why(v.r.Context(), v.who, id)
	if err != nil {
		return err
	}
	rows := v.writer().Change(y.Change).Changes
	if missing := unseen(rows, v.r.PostForm["seen"]); len(missing) > 0 {
		return fault.New(fault.InvalidInput, nil).WithField("/seen", "web.field.seen", fault.Args{"n": len(missing)})
	}
	return nil
}

func (c *console) decideAgain(v *visit, refusal error) error {
	if !refused(refusal) {
		return refusal
	}
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	form := decisionForm{
		Decision: v.field("decision"), Reason: v.field("reason"), Problem: v.problemOf(refusal), Fresh: c.freshSignIn(v, refusal), Seen: map[string]bool{},
	}
	for _, field := range v.r.PostForm["seen"] {
		form.Seen[field] = true
	}
	return c.showReview(v, statuses[fault.CodeOf(refusal)], y, form)
}

// keyFresh names the refusal of a sign-in that is too old for what was asked.
const keyFresh = "fault.unauthenticated.fresh"

// freshSignIn is where a person shows themselves again, if that is what a refusal asks for and there is a provider to do it.
func (c *console) freshSignIn(v *visit, refusal error) string {
	if fault.From(refusal).Key != keyFresh || c.SignIn == nil {
		return ""
	}
	return withQuery(withQuery(startSignIn, "fresh", "1"), "next", "/changes/"+v.r.PathValue("id")+"/review")
}

// toChange answers a form's address that was opened as a link: it shows the change, and nothing is done.
func (c *console) toChange(v *visit) error {
	id, err := v.changeID()
	if err != nil {
		return err
	}
	return v.goTo("/changes/" + id.String())
}
