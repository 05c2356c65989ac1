package web

import (
	"net/http"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// revealForm is where hidden values are asked for. Which they are, and in whose place the mask stands, package answer knows.
type revealForm struct {
	// Hidden says that the page hides values, Shown that it shows them; Allowed that this person may have them shown.
	Hidden, Shown, Allowed bool
	// As is what to show them on: the review, or the change's own page.
	As string
}

const (
	asReview   = "review"
	asDocument = "document"
)

func (v *visit) revealFormOf(p preview.Preview) revealForm {
	hidden := v.writer().Hides(p)
	return revealForm{Hidden: hidden, Shown: p.Plan.Sensitive() && !hidden, Allowed: preview.MayReveal(v.who, p)}
}

// reveal answers with the page that shows the hidden values of a change, once it is on record that this person is shown them. It is the
// answer to a post and has no address: nothing leads back to it, it keeps itself fresh by nothing, and no-store holds as everywhere.
func (c *console) reveal(v *visit) error {
	id, err := v.changeID()
	if err != nil {
		return err
	}
	if _, err := c.Commits.Reveal(v.r.Context(), v.who, id); err != nil {
		return c.settleAgain(v, err)
	}
	v.revealed = id
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	switch v.field("as") {
	case asDocument:
		return v.sendDocument(y)
	case asReview:
		return c.showReview(v, http.StatusOK, y, decisionForm{})
	}
	return c.showChange(v, http.StatusOK, y, settleForm{})
}

// shownDocument is the canonical JSON, empty where it holds what is hidden.
func (v *visit) shownDocument(y commit.Why) string {
	if v.writer().Hides(y.Change.Preview) {
		return ""
	}
	return string(y.Change.Preview.Document)
}
