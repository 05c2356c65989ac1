package api

import (
	"net/http"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

// queued is one page of the queue.
type queued struct {
	Message    string       `json:"message"`
	Items      []queuedItem `json:"items"`
	NextCursor string       `json:"next_cursor,omitempty"`
	Next       fault.Next   `json:"next"`
}

// queuedItem is one change that waits, and what this person may do about it.
type queuedItem struct {
	Change answer.Change `json:"change"`
	Quorum quorum        `json:"quorum"`
	// MayDecide is false with WhyNot saying why, in the shape of the refusal that a decision would get.
	MayDecide bool         `json:"may_decide"`
	WhyNot    *answer.Body `json:"why_not,omitempty"`
}

type quorum struct {
	Approved int            `json:"approved"`
	Missing  []answer.Seats `json:"missing"`
}

// queue lists what waits for a decision, the first to expire first.
func (c *call) queue() error {
	cursor, limit, err := c.page()
	if err != nil {
		return err
	}
	items, next, now, err := c.Approvals.Queue(c.ctx(), c.who, approvals.Page{Cursor: cursor, Limit: limit})
	if err != nil {
		return err
	}
	out := queued{
		Message: c.writer().Counted(len(items), -1, next), Items: make([]queuedItem, 0, len(items)), NextCursor: next, Next: fault.NextNone,
	}
	for _, item := range items {
		out.Items = append(out.Items, c.queued(item, now))
	}
	return c.json(http.StatusOK, out)
}

func (c *call) queued(item approvals.Item, now time.Time) queuedItem {
	p := item.Preview
	w := c.writer()
	out := queuedItem{
		Change:    w.Asked(commit.Change{Preview: p, Status: commit.StatusOf(p, nil, now), Now: now}),
		Quorum:    quorum{Approved: item.Quorum.Approved, Missing: answer.SeatsOf(item.Quorum.Missing)},
		MayDecide: item.WhyNot == nil,
	}
	if item.WhyNot != nil {
		refusal := w.Fault(item.WhyNot)
		out.WhyNot = &refusal
	}
	return out
}
