package api

import "github.com/cutonce/cutonce/answer"

// probe looks at the target now, for an operator: at an unknown outcome, or again at what was called not applied.
func (c *call) probe() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	if _, err := c.body(bodyNone); err != nil {
		return err
	}
	change, err := c.Changes.Probe(c.ctx(), c.who, id)
	return c.answer(answer.OpProbe, change, false, err)
}
