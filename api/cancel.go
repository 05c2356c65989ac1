package api

import "github.com/cutonce/cutonce/answer"

// cancel withdraws the caller's change, if nobody has begun to apply it.
func (c *call) cancel() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	body, err := c.body(bodyCancel)
	if err != nil {
		return err
	}
	p, err := c.Previews.Cancel(c.ctx(), c.who, id, body.Text("reason"))
	return c.asItStands(answer.OpCancel, id, p, err)
}
