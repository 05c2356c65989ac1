package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

type changePage struct {
	frame
	dossier
	// Review is the link to the decision, empty if this person has none to make.
	Review string
	// Sent is there once the change was claimed.
	Sent   *sent
	Settle settleForm
	// Behind are the other open changes of the same target, while this one holds it.
	Behind []behindRow
	// Clash is what contradicts what, where the outcome was contradicted.
	Clash *clash
	// Surprise is the event that found an effect of a change which has ended otherwise, 0 if there is none.
	Surprise int64
	Timeline []entry
	// Record is whether the timeline is whole, nil where that was not checked.
	Record *record
	Again  *again
	// Address is the page's permanent address, for print.
	Address string
}

// behindRow is a change that waits for another one of its target.
type behindRow struct {
	Change answer.Change
	Asks   string
}

// sent is what went to the target, and under which key.
type sent struct {
	Key string
	// Attempts are the sends and the latest look; Earlier, the looks before it.
	Attempts, Earlier []sentAttempt
	// Calls is how many there are of all.
	Calls int
	// Left is false where it is proved that nothing left: it would have been sent.
	Left bool
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
	page.Now, page.Live = page.MadeAt, v.liveHere(page.Change.PreviewID)
	page.Sent = c.sentOf(v, y.Change, page.Change)
	page.Timeline, page.Record, page.Again = v.timeline(page.Change.Events), c.recordOf(v, y.Change.Preview.ID), c.againOf(v, y.Change)
	page.Address = c.address(page.Change.PreviewID)
	if o := page.Change.Outcome; o != nil && o.Contradicted {
		page.Clash = clashOf(page.Timeline)
	}
	for _, e := range page.Timeline {
		if e.Kind == "effect_found" {
			page.Surprise = e.Seq
		}
	}
	var err error
	if page.Behind, err = c.behind(v, y.Change); err != nil {
		return err
	}
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
	if q := page.Quorum; q != nil && !approve && !reject {
		q.WhyNot, q.Missing = "", nil // nobody decides any more
	}
	if q := page.Quorum; q != nil && q.WhyNot == "" && (approve && q.Voted == "" || reject && !q.Confirm) {
		page.Review = "/changes/" + page.Change.PreviewID + "/review"
	}
	if q := page.Quorum; q != nil && !approve {
		q.WhyNot = "" // what is approved waits for no more of them
	}
	return c.show(v, status, "change", &page)
}

// address is where a change's page is for ever.
func (c *console) address(id string) string {
	return strings.TrimSuffix(c.PublicURL, "/") + "/changes/" + id
}

// mostBehind bounds how many changes behind one are shown.
const mostBehind = 20

// behind lists what is open on the target that a change holds, as far as this person may see it.
func (c *console) behind(v *visit, change commit.Change) ([]behindRow, error) {
	if change.Status != commit.StatusApplying && change.Status != commit.StatusUnknown {
		return nil, nil
	}
	target := change.Preview.Plan.Target
	waiting, _, err := c.Commits.List(v.r.Context(), v.who, commit.Filter{
		TargetID: target.ID, Limit: mostBehind,
		Statuses: []commit.Status{commit.StatusNeedsApproval, commit.StatusPending, commit.StatusApproved},
	})
	if err != nil {
		return nil, err
	}
	var rows []behindRow
	for _, w := range waiting {
		if w.Preview.Plan.Target.Key() == target.Key() {
			rows = append(rows, behindRow{v.writer().Change(w), v.asks(w.Preview.Requester)})
		}
	}
	return rows, nil
}

func (c *console) sentOf(v *visit, change commit.Change, shown answer.Change) *sent {
	if len(change.Executions) == 0 {
		return nil
	}
	e := change.Executions[0]
	s := &sent{Left: e.State != commit.NotSent && e.Evidence != commit.NoneNeeded}
	if p := change.Preview; c.Key != nil && preview.Reviews(v.who) {
		s.Key = c.Key(p.Tenant, p.ID, change.Executions[0].Item)
	}
	told, looks := toldIn(shown.Events), []sentAttempt(nil)
	for i, a := range shown.Attempts {
		if a.Kind == string(commit.Send) {
			s.Attempts = append(s.Attempts, sentAttempt{a, told[a.ID]})
			continue
		}
		looks, s.LastLook = append(looks, sentAttempt{a, told[a.ID]}), &shown.Attempts[i]
	}
	if last := len(looks) - 1; last >= 0 {
		s.Earlier, s.Attempts = looks[:last], append(s.Attempts, looks[last])
	}
	s.Calls = len(shown.Attempts)
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
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	return v.sendDocument(y)
}

func (v *visit) sendDocument(y commit.Why) error {
	p := y.Change.Preview
	if v.writer().Hides(p) {
		return fault.New(fault.Forbidden, nil).WithKey("web.fault.hidden_document").WithNext(fault.NextNone)
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", p.ID.String()+".json"))
	_, _ = v.w.Write(p.Document)
	return nil
}
