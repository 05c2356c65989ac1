package api

import "github.com/cutonce/cutonce/answer"

// show answers for a change as it stands, after waiting for it to move if the caller asks for that.
func (c *call) show() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	wait, err := c.wait()
	if err != nil {
		return err
	}
	change, err := c.Changes.Status(c.ctx(), c.who, id, wait, c.detailed)
	if err != nil {
		return err
	}
	return c.answer(answer.OpStatus, change, false, nil)
}
