package web

import (
	"net/http"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
)

type queuePage struct {
	frame
	Rows   []queueRow
	Filter queueFilter
	// Mine says that the list holds only what waits for this person; First, that it begins with the first to expire.
	Mine, First bool
	More        string
	// Together are the kinds of which several can be decided together.
	Together []statusOption
	// Here is the page's own address.
	Here string
	// MadeAt is the database's time of the list.
	MadeAt time.Time
}

// queueFilter is what of the queue is shown. It is all in the address; Shows are links.
type queueFilter struct {
	Shows, Sorts, Risks, Actions []statusOption
	// Set says that something was chosen beyond whose it is.
	Set bool
}

// queueRow is one change that waits for people.
type queueRow struct {
	Change answer.Change
	Asks   string
	// Rows are the riskiest fields, and Further is how many more there are on the change's own page.
	Rows    []answer.Row
	Further int
	// Numbers are the differences that the change makes.
	Numbers []answer.Figure
	// High says that the change is of high risk.
	High bool
	// Reason is the beginning of the requester's words; Cut says that there is more on the change's own page.
	Reason string
	Cut    bool
	// Justified says that the words came with the request, not with the preview.
	Justified bool
	Left      string
	Quorum    *quorum
}

// pageOfQueue is how many changes one page of the queue shows.
const pageOfQueue = 50

// queue shows what waits for a decision: this person's, unless everybody's is asked for.
func (c *console) queue(v *visit) error {
	ask := v.queueAsked()
	items, next, now, err := c.Approvals.Queue(v.r.Context(), v.who, ask)
	if err != nil {
		return err
	}
	page := queuePage{frame: c.frameOf(v, v.t("web.queue.title"), "/"), MadeAt: now.UTC(), Mine: ask.Mine, First: !ask.RiskFirst}
	page.Now, page.Live, page.Here = page.MadeAt, v.liveHere(""), v.r.URL.RequestURI()
	page.Filter = c.queueFilter(v, ask)
	for _, item := range items {
		page.Rows = append(page.Rows, v.queueRow(item, now))
	}
	if ask.Mine {
		page.Together = v.together(items)
	}
	if next != "" {
		page.More = withQuery(v.r.URL.RequestURI(), "cursor", next)
	}
	return c.show(v, http.StatusOK, "queue", &page)
}

// together are the kinds of which more than one on the page can be decided together, as links.
func (v *visit) together(items []approvals.Item) []statusOption {
	count := map[string]int{}
	var kinds []statusOption
	for _, item := range items {
		action := item.Preview.Action
		if apart(item.Preview, v.writer().Change(commit.Change{Preview: item.Preview})) != nil {
			continue
		}
		if count[action]++; count[action] == 2 {
			kinds = append(kinds, statusOption{Value: withQuery("/bulk", "action", action), Label: v.t("action." + action + ".title")})
		}
	}
	return kinds
}

// queueAsked reads the filter. What it does not know is not asked for.
func (v *visit) queueAsked() approvals.Page {
	q := v.r.URL.Query()
	return approvals.Page{
		Cursor: q.Get("cursor"), Limit: pageOfQueue, Mine: q.Get("show") != "all", High: q.Get("risk") == highRisk,
		Action: q.Get("action"), RiskFirst: q.Get("sort") == "risk",
	}
}

func (c *console) queueFilter(v *visit, ask approvals.Page) queueFilter {
	f := queueFilter{Set: ask.High || ask.RiskFirst || ask.Action != ""}
	for _, o := range []struct {
		to          *[]statusOption
		value, name string
		chosen      bool
	}{
		{&f.Shows, "/", "web.queue.show.mine", ask.Mine}, {&f.Shows, "/?show=all", "web.queue.show.all", !ask.Mine},
		{&f.Sorts, "", "web.queue.sort.expiry", !ask.RiskFirst}, {&f.Sorts, "risk", "web.queue.sort.risk", ask.RiskFirst},
		{&f.Risks, "", "web.queue.risk.any", !ask.High}, {&f.Risks, highRisk, "web.queue.risk.high", ask.High},
		{&f.Actions, "", "web.queue.action.any", ask.Action == ""},
	} {
		*o.to = append(*o.to, statusOption{Value: o.value, Label: v.t(o.name), Chosen: o.chosen})
	}
	if c.Freezes == nil {
		return f
	}
	actions, _ := c.Freezes.Freezable()
	for _, action := range actions {
		f.Actions = append(f.Actions, statusOption{Value: action, Label: v.t("action." + action + ".title"), Chosen: action == ask.Action})
	}
	return f
}

// highRisk is the risk of a change that takes a fresh sign-in and a written name.
const highRisk = "high"

func (v *visit) queueRow(item approvals.Item, now time.Time) queueRow {
	p := item.Preview
	reason := p.Justification
	if reason == "" {
		reason = p.Input.Text("reason")
	}
	reason, cut := beginning(reason)
	row := queueRow{
		Change: v.writer().Change(commit.Change{Preview: p, Status: commit.StatusPending, Now: now}), Asks: v.asks(p.Requester),
		Reason: reason, Cut: cut, Justified: p.Justification != "", Left: v.left(p.Deadline.Sub(now)), High: p.Ruling.Risk == highRisk,
		Quorum: v.quorumOf(item),
	}
	row.Numbers, _ = headline(row.Change.Figures)
	rows, _ := rowsOf(row.Change.Changes)
	for i, r := range rows {
		if i == mostFields {
			row.Further = len(rows) - mostFields
			break
		}
		row.Rows = append(row.Rows, r.Row)
	}
	return row
}

// mostWords is how much of the requester's words a row shows, in characters; mostFields how many of its fields.
const (
	mostWords  = 140
	mostFields = 3
)

func beginning(text string) (shown string, cut bool) {
	runes := []rune(text)
	if len(runes) <= mostWords {
		return text, false
	}
	return string(runes[:mostWords]) + "…", true
}
