package api

import "github.com/cutonce/cutonce/answer"

// requestApproval puts the caller's change into the approvers' queue. Asking again changes nothing.
func (c *call) requestApproval() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	body, err := c.body(bodyApprovalRequest)
	if err != nil {
		return err
	}
	p, err := c.Approvals.Request(c.ctx(), c.who, id, body.Text("justification"))
	return c.asItStands(answer.OpApprovalRequest, id, p, err)
}
