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
	Rows []queueRow
	// Mine is how many of the rows wait for this person.
	Mine int
	More string
	// MadeAt is the database's time of the list.
	MadeAt time.Time
}

// queueRow is one change that waits for people.
type queueRow struct {
	Change answer.Change
	Asks   string
	// Reason is the beginning of the requester's words; Cut says that there is more on the change's own page.
	Reason string
	Cut    bool
	// Justified says that the words came with the request, not with the preview.
	Justified     bool
	Left, ReadAgo string
	Quorum        *quorum
}

// pageOfQueue is how many changes one page of the queue shows.
const pageOfQueue = 50

// queue shows what waits for a decision, the first to expire first.
func (c *console) queue(v *visit) error {
	cursor := v.r.URL.Query().Get("cursor")
	items, next, now, err := c.Approvals.Queue(v.r.Context(), v.who, approvals.Page{Cursor: cursor, Limit: pageOfQueue})
	if err != nil {
		return err
	}
	page := queuePage{frame: c.frameOf(v, v.t("web.queue.title"), "/"), MadeAt: now.UTC()}
	for _, item := range items {
		row := v.queueRow(item, now)
		if row.Quorum.WhyNot == "" && row.Quorum.Voted == "" {
			page.Mine++
		}
		page.Rows = append(page.Rows, row)
	}
	if next != "" {
		page.More = withQuery("/", "cursor", next)
	}
	return c.show(v, http.StatusOK, "queue", &page)
}

func (v *visit) queueRow(item approvals.Item, now time.Time) queueRow {
	p := item.Preview
	reason := p.Justification
	if reason == "" {
		reason = p.Input.Text("reason")
	}
	reason, cut := beginning(reason)
	return queueRow{
		Change: v.writer().Change(commit.Change{Preview: p, Status: commit.StatusPending, Now: now}), Asks: v.asks(p.Requester),
		Reason: reason, Cut: cut, Justified: p.Justification != "", Left: v.left(p.Deadline.Sub(now)),
		ReadAgo: v.readAgo(now.Sub(p.CreatedAt)), Quorum: v.quorumOf(item),
	}
}

// mostWords is how much of the requester's words a row shows, in characters.
const mostWords = 280

func beginning(text string) (shown string, cut bool) {
	runes := []rune(text)
	if len(runes) <= mostWords {
		return text, false
	}
	return string(runes[:mostWords]) + "…", true
}
