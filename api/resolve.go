package api

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

// resolve settles an unknown outcome by an operator's word, with reason and evidence.
func (c *call) resolve() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	body, err := c.body(bodyResolution)
	if err != nil {
		return err
	}
	item, err := itemOf(body)
	if err != nil {
		return err
	}
	change, err := c.Changes.Resolve(c.ctx(), commit.Resolution{
		Key: commit.Key{Tenant: c.who.Tenant, ID: id, Item: item}, By: c.who,
		Applied: body.Text("outcome") == "applied", Reason: body.Text("reason"), Evidence: body.Text("evidence"),
	})
	return c.answer(answer.OpResolve, change, false, err)
}

// itemOf reads which item of the change is meant: the first, unless the body says otherwise.
func itemOf(body connector.Input) (int, error) {
	number, given := body["item"].(json.Number)
	if !given {
		return 0, nil
	}
	item, err := strconv.Atoi(number.String())
	if err != nil {
		return 0, fmt.Errorf("reading an item that the schema let pass: %w", err)
	}
	return item, nil
}
