package web

import (
	"encoding/json"
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
	Attempts []sentAttempt
	// LastLook is the latest look-up or replay, nil if there was none.
	LastLook *answer.Attempt
}

// sentAttempt is an outward call. Event is the entry of the timeline that holds its evidence, 0 if none does: evidence is
// shown once.
type sentAttempt struct {
	answer.Attempt
	Event int64
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
	page.Settle.LookOnly = !page.Settle.Shown && y.Change.WorthALook()
	page.Settle.Allowed = v.who.May(actor.Resolve)
	if o := page.Change.Outcome; o != nil {
		page.Settle.warn(o.Columns)
		if o.SettlesAt != nil && o.SettlesAt.After(y.Change.Now) {
			page.Settle.NotBefore = o.SettlesAt
		}
	}
	approve, reject := reviewable(y.Change.Status)
	if q := page.Quorum; q != nil && q.WhyNot == "" && (approve && q.Voted == "" || reject && !q.Confirm) {
		page.Review = "/changes/" + page.Change.PreviewID + "/review"
	}
	return c.show(v, status, "change", &page)
}

func (c *console) sentOf(change commit.Change, shown answer.Change) *sent {
	if len(change.Executions) == 0 {
		return nil
	}
	s := &sent{}
	if p := change.Preview; c.Key != nil {
		s.Key = c.Key(p.Tenant, p.ID, change.Executions[0].Item)
	}
	told := toldIn(shown.Events)
	for i, a := range shown.Attempts {
		s.Attempts = append(s.Attempts, sentAttempt{a, told[a.ID]})
		if a.Kind != string(commit.Send) {
			s.LastLook = &shown.Attempts[i]
		}
	}
	return s
}

// toldIn finds, for each attempt, the event that holds its result. An event that cannot be read holds none.
func toldIn(events []answer.Event) map[string]int64 {
	told := map[string]int64{}
	for _, e := range events {
		var body struct{ Attempt, Result string }
		if err := json.Unmarshal([]byte(e.Body), &body); err == nil && body.Result != "" {
			told[body.Attempt] = e.Seq
		}
	}
	return told
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
