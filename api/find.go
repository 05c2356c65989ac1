package api

import "net/http"

// find runs a read-only tool of a connector, so that a program finds the IDs that a change needs.
func (c *call) find() error {
	input, err := c.rawBody()
	if err != nil {
		return err
	}
	page, err := c.Previews.Find(c.ctx(), c.who, c.echo.Param("tool"), input)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Found(page))
}
