package web

import (
	"net/http"

	"github.com/cutonce/cutonce/commit"
)

type reviewPage struct {
	frame
	dossier
	Form decisionForm
}

// decisionForm is the form under a review.
type decisionForm struct {
	// Approve, Reject and Confirm say which buttons there are; with none there is no form.
	Approve, Reject, Confirm bool
	// Typed asks for the target's name, written out; Fresh is the way to a fresh sign-in, if one was asked for.
	Typed, Fresh string
	// Reason is what was typed when the form was refused.
	Reason  string
	Problem *problem
}

// review shows one change to the person who decides on it.
func (c *console) review(v *visit) error {
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	return c.showReview(v, http.StatusOK, y, decisionForm{})
}

func (c *console) showReview(v *visit, status int, y commit.Why, form decisionForm) error {
	page := reviewPage{dossier: c.dossierOf(v, y), Form: form}
	page.frame = c.frameOf(v, v.t("web.review.title", "target", nameOf(page.Change.Target)), "")
	if q := page.Quorum; q != nil && q.WhyNot == "" {
		page.Form.Approve, page.Form.Reject = reviewable(y.Change.Status)
		page.Form.Approve = page.Form.Approve && q.Voted == ""
		if q.Confirm {
			page.Form = decisionForm{Confirm: page.Form.Approve, Reason: form.Reason, Problem: form.Problem, Fresh: form.Fresh}
		}
	}
	if r := page.Change.Ruling; r != nil && r.Risk == "high" && (page.Form.Approve || page.Form.Confirm) {
		page.Form.Typed = y.Change.Preview.Plan.Target.Shown()
	}
	return c.show(v, status, "review", &page)
}
