package web

import (
	"fmt"
	"net/http"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
)

type changePage struct {
	frame
	dossier
	// Review is the link to the decision, empty if this person has none to make.
	Review string
	// Sent is there once the change was claimed.
	Sent   *sent
	Settle settleForm
}

// sent is what went to the target, and under which key.
type sent struct {
	Key      string
	Attempts []answer.Attempt
	// LastLook is the latest look-up or replay, nil if there was none.
	LastLook *answer.Attempt
}

// change shows one change's whole life. Its address is permanent.
func (c *console) change(v *visit) error {
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	return c.showChange(v, http.StatusOK, y, settleForm{})
}

func (c *console) showChange(v *visit, status int, y commit.Why, form settleForm) error {
	page := changePage{dossier: c.dossierOf(v, y), Settle: form}
	page.frame = c.frameOf(v, v.t("web.change.title", "target", nameOf(page.Change.Target), "id", page.Change.PreviewID), "")
	page.Sent = c.sentOf(y.Change, page.Change)
	page.Settle.Shown = y.Change.Status == commit.StatusUnknown
	page.Settle.Allowed = v.who.HasRole(actor.RoleOperator, actor.RoleAdmin)
	if o := page.Change.Outcome; o != nil && o.SettlesAt != nil && o.SettlesAt.After(y.Change.Now) {
		page.Settle.NotBefore = o.SettlesAt
	}
	approve, reject := reviewable(y.Change.Status)
	if q := page.Quorum; q != nil && q.WhyNot == "" && (approve && q.Voted == "" || reject) {
		page.Review = "/changes/" + page.Change.PreviewID + "/review"
	}
	return c.show(v, status, "change", &page)
}

func (c *console) sentOf(change commit.Change, shown answer.Change) *sent {
	if len(change.Executions) == 0 {
		return nil
	}
	s := &sent{Attempts: shown.Attempts}
	if p := change.Preview; c.Key != nil {
		s.Key = c.Key(p.Tenant, p.ID, change.Executions[0].Item)
	}
	for i, a := range shown.Attempts {
		if a.Kind != string(commit.Send) {
			s.LastLook = &shown.Attempts[i]
		}
	}
	return s
}

// document gives the exact bytes under the digest, so that anybody can check them with sha256sum.
func (c *console) document(v *visit) error {
	id, y, err := c.readable(v)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", id.String()+".json"))
	_, _ = v.w.Write(y.Change.Preview.Document)
	return nil
}
