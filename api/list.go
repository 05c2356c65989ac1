package api

import (
	"net/http"

	"github.com/cutonce/cutonce/commit"
)

// list shows the caller's own changes, or the tenant's to those who review them; the newest first.
func (c *call) list() error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	if f.Cursor, f.Limit, err = c.page(); err != nil {
		return err
	}
	return c.listed(f)
}

// filter reads a search.
func (c *call) filter() (commit.Filter, error) {
	f := commit.Filter{TargetID: c.query.Get(paramTarget), Action: c.query.Get(paramAction), Person: c.query.Get(paramPerson)}
	var handed, contradicted string
	var err1, err2, err3, err4, err5 error
	f.Statuses, err1 = c.statuses()
	handed, err2 = c.oneOf(paramNeedsOperator, "true", "false")
	contradicted, err3 = c.oneOf(paramContradicted, "true", "false")
	f.Since, err4 = c.moment(paramSince)
	f.Until, err5 = c.moment(paramUntil)
	f.NeedsOperator, f.Contradicted = handed == "true", contradicted == "true"
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func (c *call) listed(f commit.Filter) error {
	changes, next, err := c.Changes.List(c.ctx(), c.who, f)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Changes(changes, next))
}
