package api

import "github.com/cutonce/cutonce/answer"

// apply applies an approved change, once. Repeating it is safe and answers how that one execution stands.
func (c *call) apply() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	if _, err := c.body(bodyNone); err != nil {
		return err
	}
	change, err := c.Changes.Apply(c.ctx(), c.who, "", id, c.ApplyWait)
	return c.answer(answer.OpApply, change, change.Replayed, err)
}
