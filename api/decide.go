package api

import (
	"fmt"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/internal/canon"
)

// decide records what a person says about exactly what they were shown: the digest is that of the detailed answer. Who
// decides is the token's human and nobody else; the body has no member for it.
func (c *call) decide() error {
	id, err := c.previewID()
	if err != nil {
		return err
	}
	body, err := c.body(bodyDecision)
	if err != nil {
		return err
	}
	digest, err := canon.ParseDigest(body.Text("digest"))
	if err != nil {
		return fmt.Errorf("reading a digest that the schema let pass: %w", err)
	}
	p, err := c.Approvals.Decide(c.ctx(), c.who, id, approvals.Decision{
		Approve: body.Text("decision") == "approve", Confirm: body.Text("decision") == "confirm", Reason: body.Text("reason"), Typed: body.Text("typed"), Digest: digest,
	})
	return c.asItStands(answer.OpDecide, id, p, err)
}
