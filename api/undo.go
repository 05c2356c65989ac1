package api

// undo makes the preview of the change that would put the target back.
func (c *call) undo() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	key, err := idempotencyKey(c.echo.Request().Header)
	if err != nil {
		return err
	}
	body, err := c.body(bodyUndo)
	if err != nil {
		return err
	}
	made, err := c.Previews.Undo(c.ctx(), c.who, id, body.Text("reason"), key)
	if err != nil {
		return err
	}
	return c.prepared(made)
}
