package adbudget

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
)

// Execute sends the plan's request once. Only a whole 200 that shows this very change is a success; answer.go says what
// counts as a refusal; everything else is unknown.
func (c *Connector) Execute(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Receipt, error) {
	sent, err := c.readPlan(plan)
	if err != nil {
		return connector.Receipt{}, connector.NotSent(err)
	}
	reply, err := c.platform.Send(ctx, plan.Request, call)
	if err != nil {
		return connector.Receipt{}, err
	}
	if reply.Status == http.StatusOK {
		return sent.receipt(reply)
	}
	return c.about(sent, call).Judge(ctx, httptarget.ReadRefusal(reply), documented)
}

// sent is what a plan of ours says, read back from its bytes.
type sent struct {
	plan                 connector.Plan
	id, amount, currency string
}

// readPlan refuses a plan that this connector did not make, before anything is sent.
func (c *Connector) readPlan(plan connector.Plan) (sent, error) {
	s := sent{plan: plan, id: plan.Target.ID}
	if err := c.owns(plan.Target); err != nil {
		return s, err
	}
	if plan.Request.Method != http.MethodPatch || !strings.HasPrefix(plan.Request.Path, "/v1/campaigns/") || plan.Request.Precondition == "" {
		return s, errors.New("the plan's request is not one of ours")
	}
	d, err := httptarget.ParseDocument(plan.Request.Body)
	if err != nil {
		return s, err
	}
	return s, d.Texts(map[string]*string{"daily_budget": &s.amount, "currency": &s.currency})
}

// receipt believes a 200 only if its whole body shows our campaign at our amount. An older body, a body about something
// else or a broken one proves nothing.
func (s sent) receipt(reply connector.Reply) (connector.Receipt, error) {
	d, err := httptarget.ParseDocument(reply.Body)
	if err != nil {
		return connector.Receipt{}, err
	}
	var id, amount, currency, etag, change string
	err = d.Texts(map[string]*string{
		"id": &id, "daily_budget": &amount, "currency": &currency, "etag": &etag, "change_id": &change,
	})
	if err != nil {
		return connector.Receipt{}, err
	}
	if id != s.id || amount != s.amount || currency != s.currency {
		return connector.Receipt{}, errors.New("the platform answered 200 about something else than was asked for")
	}
	evidence := map[string]any{"http_status": int64(reply.Status), "change_id": change, "after": amount, "currency": currency, "etag": etag}
	if reply.Header.Get("Idempotency-Replayed") == "true" {
		evidence["replayed"] = true
	}
	return connector.Receipt{Evidence: evidence, Version: etag}, nil
}
