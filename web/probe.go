package web

// probe looks at the target now, for an operator. The page it leads to shows what the look proved.
func (c *console) probe(v *visit) error {
	id, err := v.changeID()
	if err != nil {
		return err
	}
	if _, err := c.Commits.Probe(v.r.Context(), v.who, id); err != nil {
		return c.settleAgain(v, err)
	}
	return v.goTo("/changes/" + id.String())
}
