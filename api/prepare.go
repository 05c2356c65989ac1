package api

import (
	"net/http"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/preview"
)

// prepare makes the preview of a change: 201 with its place, or 200 if it had been made before.
//
// Two calls with one key at the same moment get the same preview, so none is told 409 to come again.
func (c *call) prepare() error {
	key, err := idempotencyKey(c.echo.Request().Header)
	if err != nil {
		return err
	}
	input, err := c.rawBody()
	if err != nil {
		return err
	}
	made, err := c.Previews.Prepare(c.ctx(), c.who, preview.Request{Action: c.echo.Param("action"), Input: input, Key: key})
	if err != nil {
		return err
	}
	return c.prepared(made)
}

// prepared answers with a preview and its place.
func (c *call) prepared(made preview.Prepared) error {
	change, err := c.standing(made.Preview.ID, made.Preview, nil)
	if err != nil {
		return err
	}
	c.echo.Response().Header().Set("Location", "/v1/previews/"+made.Preview.ID.String())
	body := c.writer().Of(answer.OpPrepare, change, made.Replayed, nil)
	switch {
	case body.Code != "":
		return c.problem(body, nil)
	case made.Replayed:
		return c.json(http.StatusOK, body)
	}
	c.subject = body.PreviewID
	return c.json(http.StatusCreated, body)
}
