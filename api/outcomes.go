package api

import "github.com/cutonce/cutonce/commit"

// outcomes lists the changes whose effect is not known; with needs_operator=true only those that wait for a person.
func (c *call) outcomes() error {
	handed, err := c.oneOf(paramNeedsOperator, "true", "false")
	if err != nil {
		return err
	}
	cursor, limit, err := c.page()
	if err != nil {
		return err
	}
	return c.listed(commit.Filter{Status: commit.StatusUnknown, NeedsOperator: handed == "true", Cursor: cursor, Limit: limit})
}
