package api

import "github.com/cutonce/cutonce/answer"

// reveal gives a change with its hidden values, once it is on record that this person is shown them.
func (c *call) reveal() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	if _, err := c.body(bodyNone); err != nil {
		return err
	}
	change, err := c.Changes.Reveal(c.ctx(), c.who, id)
	if err == nil {
		c.revealed = id
	}
	return c.answer(answer.OpStatus, change, false, err)
}
