package web

import (
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
)

type reviewPage struct {
	frame
	dossier
	// Named says that the summary names the target and its ID.
	Named bool
	// Rows are the fields that change, the riskiest first; Same are those that stay.
	Rows []row
	Same []answer.Row
	// Numbers are the differences that the change makes; More are the numbers behind them.
	Numbers, More []answer.Figure
	// Tight are the caps that have no room for the change as things stand, in words.
	Tight      []string
	Fresh      *freshness
	Neighbours []neighbour
	// OfTarget is where all changes of the target are.
	OfTarget string
	Form     decisionForm
}

// decisionForm is the form of a decision.
type decisionForm struct {
	// Approve, Reject and Confirm say which buttons there are; with none there is no form.
	Approve, Reject, Confirm bool
	// Moved says that the target is no longer as it was prepared on: there is no approving that.
	Moved bool
	// Typed asks for the target's name, written out; Fresh is the way to a fresh sign-in, if one was asked for.
	Typed, Fresh string
	// Decision and Reason are what was chosen and typed when the form was refused; Seen are the rows that were ticked.
	Decision, Reason string
	Seen             map[string]bool
	Problem          *problem
}

// Open reports whether there is anything to decide.
func (f decisionForm) Open() bool { return f.Approve || f.Reject || f.Confirm }

// Yes is the value of the button that lets the change through, empty if there is none.
func (f decisionForm) Yes() string {
	switch {
	case f.Approve:
		return "approve"
	case f.Confirm:
		return "confirm"
	}
	return ""
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
	page := reviewPage{dossier: c.dossierOf(v, y), Form: form, Fresh: c.freshnessOf(v, y), Neighbours: c.neighboursOf(v, y)}
	page.frame = c.frameOf(v, v.t("web.review.title", "target", nameOf(page.Change.Target)), "")
	page.Now, page.Live = page.MadeAt, v.liveHere(page.Change.PreviewID)
	page.Reveal.As = asReview
	page.Rows, page.Same = rowsOf(page.Change.Changes)
	page.Numbers, page.More = headline(page.Change.Figures)
	t := page.Change.Target
	page.OfTarget = withQuery("/history", "target", t.ID)
	page.Named = strings.Contains(page.Change.Summary, t.Name) && strings.Contains(page.Change.Summary, t.ID)
	for _, e := range page.Change.Exposure {
		if !e.Fits {
			page.Tight = append(page.Tight, v.t("web.cap.full", "cap", e.Cap, "left", shown(e.Left), "limit", shown(e.Limit), "asked", shown(e.Asked)))
		}
	}
	page.buttons(y)
	if r := page.Change.Ruling; r != nil && r.Risk == highRisk && page.Form.Yes() != "" {
		page.Form.Typed = y.Change.Preview.Plan.Target.Shown()
	}
	return c.show(v, status, "review", &page)
}

// buttons are what this person may still say. The service decides.
func (p *reviewPage) buttons(y commit.Why) {
	f := &p.Form
	f.Approve, f.Reject, f.Confirm = false, false, false
	q := p.Quorum
	if q == nil || q.WhyNot != "" {
		return
	}
	f.Approve, f.Reject = reviewable(y.Change.Status)
	f.Approve = f.Approve && q.Voted == ""
	if q.Confirm {
		f.Approve, f.Reject, f.Confirm = false, false, f.Approve
	}
	if p.Fresh != nil && p.Fresh.Moved {
		f.Moved = f.Approve || f.Confirm
		f.Approve, f.Confirm = false, false
	}
}
