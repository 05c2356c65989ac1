package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/preview"
)

// bulkPage decides several changes of one kind together: first they are chosen, then shown with what they come to, then it is told what
// became of each. Every one is decided by itself, on its own digest, by the same service as alone.
type bulkPage struct {
	frame
	Action, Kind string
	// Choices are those to choose among, Rows those that were chosen, Results what became of them: one of the three is there.
	Choices, Rows []bulkRow
	Results       []bulkResult
	// Apart are how many of the kind are decided one by one, Gone how many were chosen and wait no longer.
	Apart, Gone int
	// Sums are what the chosen ones come to together.
	Sums []answer.Figure
	// Approved and Refused count the results.
	Recorded, Refused int
	// Said is what was decided: approve or reject.
	Said    string
	Reason  string
	Problem *problem
}

// bulkRow is one change of many.
type bulkRow struct {
	Change answer.Change
	Asks   string
	Left   string
	Chosen bool
	// item is what is summed.
	impact connector.Impact
}

// bulkResult is what became of one.
type bulkResult struct {
	ID, Summary, Status string
	// Refusal says in words why nothing was recorded, empty if it was.
	Refusal string
}

// mostInBulk bounds what is decided together: as many as one page of the queue shows.
const mostInBulk = pageOfQueue

// bulk shows what can be decided together, or, with items in the address, what was chosen of it.
func (c *console) bulk(v *visit) error {
	q := v.r.URL.Query()
	chosen := map[string]bool{}
	for _, id := range q["item"] {
		chosen[id] = true
	}
	return c.showBulk(v, http.StatusOK, q.Get("action"), chosen, nil)
}

func (c *console) showBulk(v *visit, status int, action string, chosen map[string]bool, refusal error) error {
	items, _, now, err := c.Approvals.Queue(v.r.Context(), v.who, approvals.Page{Mine: true, Action: action, Limit: mostInBulk})
	if err != nil {
		return err
	}
	page := bulkPage{frame: c.frameOf(v, v.t("web.bulk.title"), "/"), Action: action}
	if page.Kind, err = v.kindOf(action); err != nil {
		return err
	}
	page.Now, page.Gone = now.UTC(), len(chosen)
	for _, item := range items {
		row := bulkRow{
			Change: v.writer().Change(commit.Change{Preview: item.Preview, Status: commit.StatusPending, Now: now}),
			Asks:   v.asks(item.Preview.Requester), Left: v.left(item.Preview.Deadline.Sub(now)), impact: item.Preview.Impact,
		}
		if row.Chosen = chosen[row.Change.PreviewID]; row.Chosen {
			page.Gone--
		}
		switch {
		case apart(item.Preview, row.Change) != nil:
			page.Apart++
		case len(chosen) == 0:
			page.Choices = append(page.Choices, row)
		case row.Chosen:
			page.Rows = append(page.Rows, row)
		}
	}
	if n := len(page.Rows); n > 0 {
		page.Title = v.t("web.bulk.title_chosen", "n", n)
	}
	page.Sums = v.sums(page.Rows)
	if refusal != nil {
		page.Reason, page.Problem = v.field("reason"), v.problemOf(refusal)
	}
	return c.show(v, status, "bulk", &page)
}

// kindOf is what an action is called. Fault: not_found, for what is no action of this console.
func (v *visit) kindOf(action string) (string, error) {
	key := "action." + action + ".title"
	kind := v.t(key)
	if action == "" || kind == key {
		return "", fault.New(fault.NotFound, nil)
	}
	return kind, nil
}

// apart is why a change is decided by itself and never among others; nil if it need not be.
func apart(p preview.Preview, shown answer.Change) error {
	if p.Ruling.Risk == highRisk || p.Ruling.Confirm || len(unseen(shown.Changes, nil)) > 0 {
		return fault.New(fault.Forbidden, nil).WithKey("web.fault.bulk_apart").WithNext(fault.NextNone)
	}
	return nil
}

// sums adds up the amounts of like differences, each currency by itself. One that is not known makes its sum unknown, and so does one
// that is too large to be added.
func (v *visit) sums(rows []bulkRow) []answer.Figure {
	type key struct {
		name     string
		currency money.Currency
	}
	var order []key
	total, unknown := map[key]*money.Amount{}, map[string]bool{}
	for _, row := range rows {
		for _, f := range row.impact.Figures {
			if !strings.Contains(f.Name, "delta") || f.Percent != "" {
				continue
			}
			if f.Amount == nil {
				unknown[f.Name] = true
				continue
			}
			k := key{f.Name, f.Amount.Currency}
			if total[k] == nil {
				order = append(order, k)
				total[k] = &money.Amount{Currency: f.Amount.Currency}
			}
			sum, err := total[k].Add(*f.Amount)
			unknown[f.Name] = unknown[f.Name] || err != nil
			*total[k] = sum
		}
	}
	var figures []connector.Figure
	for _, k := range order {
		f := connector.Figure{Name: k.name, Amount: total[k]}
		if unknown[k.name] {
			f.Amount = nil
		}
		figures = append(figures, f)
	}
	return v.writer().Figures(connector.Impact{Figures: figures})
}

// decideMany records one decision on each of the chosen changes, and tells what became of each. Sent again, it is the same decisions.
func (c *console) decideMany(v *visit) error {
	if err := v.readForm(); err != nil {
		return err
	}
	kind, err := v.kindOf(v.field("action"))
	if err != nil {
		return err
	}
	items, said := eachOnce(v.r.PostForm["item"]), v.field("decision")
	if err := fitsBulk(items, said); err != nil {
		return err
	}
	reason := v.field("reason")
	if err := preview.CheckText("/reason", reason, leastReasonFor(said), maxReason); err != nil {
		chosen := map[string]bool{}
		for _, item := range items {
			id, _, _ := strings.Cut(item, ":")
			chosen[id] = true
		}
		return c.showBulk(v, statuses[fault.CodeOf(err)], v.field("action"), chosen, err)
	}
	page := bulkPage{frame: c.frameOf(v, v.t("web.bulk.done"), "/"), Action: v.field("action"), Kind: kind, Said: said}
	for _, item := range items {
		result := c.decideOne(v, item, page.Action, approvals.Decision{Approve: said == "approve", Reason: reason})
		if result.Refusal == "" {
			page.Recorded++
		} else {
			page.Refused++
		}
		page.Results = append(page.Results, result)
	}
	return c.show(v, http.StatusOK, "bulk", &page)
}

// eachOnce leaves out what is named again: it is one decision, and is told as one.
func eachOnce(items []string) []string {
	named := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		again := named[item]
		named[item] = true
		return again
	})
}

// The lengths of a reason, as the service has them: a reason that is refused is refused once, before anything is recorded.
const (
	leastReason = 2
	maxReason   = 2000
)

func leastReasonFor(said string) int {
	if said == "reject" {
		return leastReason
	}
	return 0
}

func fitsBulk(items []string, said string) error {
	switch {
	case said != "approve" && said != "reject":
		return fault.New(fault.InvalidInput, nil).WithField("/decision", "web.field.decision", nil)
	case len(items) == 0:
		return fault.New(fault.InvalidInput, nil).WithField("/item", "web.field.bulk_none", nil)
	case len(items) > mostInBulk:
		return fault.New(fault.TooLarge, fault.Args{"limit": mostInBulk})
	}
	return nil
}

// decideOne decides one change, named with the digest that was on the page.
func (c *console) decideOne(v *visit, item, action string, d approvals.Decision) bulkResult {
	name, digest, _ := strings.Cut(item, ":")
	id, ok := preview.ParseID(name)
	if !ok {
		return bulkResult{Refusal: v.problemOf(fault.New(fault.NotFound, nil)).Message}
	}
	r := bulkResult{ID: id.String()}
	err := c.decideAmong(v, id, digest, action, d, &r)
	if err != nil {
		switch fault.CodeOf(err) {
		case fault.DigestMismatch: // its change is not on this page
			err = fault.New(fault.DigestMismatch, nil).WithKey("web.fault.bulk_digest").Because(err)
		case fault.Internal:
			c.Log.ErrorContext(v.r.Context(), "one decision of many failed", "request_id", v.requestID, "change", r.ID, "error", err)
		}
		r.Refusal = v.problemOf(err).Message
	}
	return r
}

func (c *console) decideAmong(v *visit, id preview.ID, digest, action string, d approvals.Decision, r *bulkResult) error {
	y, err := c.Commits.Why(v.r.Context(), v.who, id)
	if err != nil {
		return err
	}
	shown := v.writer().Change(y.Change)
	r.Summary, r.Status = shown.Summary, shown.Status
	if d.Digest, err = canon.ParseDigest(digest); err != nil {
		return fault.New(fault.DigestMismatch, nil).Because(err)
	}
	if shown.Action != action {
		return fault.New(fault.Forbidden, nil).WithKey("web.fault.bulk_apart").WithNext(fault.NextNone)
	}
	if err := apart(y.Change.Preview, shown); err != nil {
		return err
	}
	decided, err := c.Approvals.Decide(v.r.Context(), v.who, id, d)
	if err == nil {
		r.Status = string(decided.State)
	}
	return err
}
