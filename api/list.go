package api

import (
	"net/http"

	"github.com/cutonce/cutonce/commit"
)

// list shows the caller's own changes, or the tenant's to those who review them; the newest first.
func (c *call) list() error {
	statuses, err := c.statuses()
	if err != nil {
		return err
	}
	handed, err := c.oneOf(paramNeedsOperator, "true", "false")
	if err != nil {
		return err
	}
	cursor, limit, err := c.page()
	if err != nil {
		return err
	}
	return c.listed(commit.Filter{
		Statuses: statuses, NeedsOperator: handed == "true", TargetID: c.query.Get(paramTarget), Action: c.query.Get(paramAction), Cursor: cursor, Limit: limit,
	})
}

func (c *call) listed(f commit.Filter) error {
	changes, next, err := c.Changes.List(c.ctx(), c.who, f)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Changes(changes, next))
}
