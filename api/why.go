package api

import "net/http"

// why explains a change: who moves next, since when and until when, and what stands in the way.
func (c *call) why() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	explanation, err := c.Changes.Why(c.ctx(), c.who, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Explain(explanation))
}
