package api

import (
	"net/http"

	"github.com/cutonce/cutonce/approvals"
)

// removals lists who was removed as an approver.
func (c *call) removals() error {
	all, err := c.Approvals.Removals(c.ctx(), c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Removals(all))
}

// removeApprover takes from a person what they may decide, and tells how many open changes had their approval.
func (c *call) removeApprover() error {
	body, err := c.body(bodyRemoval)
	if err != nil {
		return err
	}
	removed, err := c.Approvals.Remove(c.ctx(), approvals.RemovalOrder{Person: body.Text("person"), By: c.who, Reason: body.Text("reason")})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().RemovedApprover(removed.Removal, removed.Lost))
}

// restoreApprover ends a removal.
func (c *call) restoreApprover() error {
	if _, given := c.query[paramPerson]; !given {
		return badParam(paramPerson, "field.required", nil)
	}
	err := c.Approvals.Restore(c.ctx(), approvals.RemovalOrder{Person: c.query.Get(paramPerson), By: c.who, Reason: c.query.Get(paramReason)})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().RestoredApprover())
}
