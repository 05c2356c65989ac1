package adbudget

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/visible"
)

// Execute sends the plan's request once. Only a whole 200 that shows this very change is a success; answer.go says what
// counts as a refusal; everything else is unknown.
func (c *Connector) Execute(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Receipt, error) {
	sent, err := c.readPlan(plan)
	if err == nil && call.Key == "" {
		err = errors.New("a send without our mark could never be looked up")
	}
	if err != nil {
		return connector.Receipt{}, connector.NotSent(err)
	}
	reply, err := c.platform.sender.Send(ctx, connector.Outgoing{
		Method: plan.Request.Method, URL: c.platform.base + plan.Request.Path, Body: plan.Request.Body,
		Header: c.changeHeaders(plan, call),
	})
	if err != nil {
		return connector.Receipt{}, err
	}
	if reply.Status == http.StatusOK {
		return sent.receipt(reply)
	}
	return c.refused(ctx, sent, call, readRefusal(reply))
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
	d, err := parseDocument(plan.Request.Body)
	if err != nil {
		return s, err
	}
	return s, d.texts(map[string]*string{"daily_budget": &s.amount, "currency": &s.currency})
}

// changeHeaders mark the change with our key and name the people behind it. The key goes along even where the platform does
// not honour it: its history records it, which is what a look-up needs.
func (c *Connector) changeHeaders(plan connector.Plan, call connector.Call) http.Header {
	h := c.platform.headers()
	h.Set("Content-Type", "application/json")
	h.Set("Idempotency-Key", call.Key)
	h.Set("If-Match", plan.Request.Precondition)
	for name, value := range map[string]string{
		"X-On-Behalf-Of": call.OnBehalfOf,
		"X-Approved-By":  strings.Join(call.ApprovedBy, ", "),
		"X-Agent":        call.Agent,
		"X-Preview-Id":   call.PreviewID,
	} {
		if value != "" {
			h.Set(name, visible.Text(value)) // a header holds no control characters
		}
	}
	return h
}

// receipt believes a 200 only if its whole body shows our campaign at our amount. An older body, a body about something
// else or a broken one proves nothing.
func (s sent) receipt(reply connector.Reply) (connector.Receipt, error) {
	d, err := parseDocument(reply.Body)
	if err != nil {
		return connector.Receipt{}, err
	}
	var id, amount, currency, etag, change string
	err = d.texts(map[string]*string{
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

// refused judges an answer other than 200. Even a documented refusal speaks only for the delivery that it answers: a
// middlebox may have delivered the request twice and passed on the second answer, which then says that the campaign has
// moved, because the first delivery moved it. So the platform's history is asked before a refusal is believed.
func (c *Connector) refused(ctx context.Context, s sent, call connector.Call, r refusal) (connector.Receipt, error) {
	if !r.documented() && !r.moved() {
		return connector.Receipt{}, r
	}
	mine, err := c.marked(ctx, s, call)
	switch {
	case err == nil && mine != nil:
		return connector.Receipt{Evidence: mine.evidence(), Version: mine.etag}, nil
	case !r.moved():
		return connector.Receipt{}, connector.Rejected(r.status, r.words())
	}
	historyKnown := err == nil
	now, err := c.platform.campaign(ctx, s.id)
	switch {
	case err == nil && !historyKnown && now.amount == s.amount:
		return connector.Receipt{}, fmt.Errorf("the campaign has moved to the very amount that was sent, and there is no history to ask: %w", r)
	case err != nil && !historyKnown:
		return connector.Receipt{}, fmt.Errorf("the campaign has moved, and neither it nor its history can be read: %w", r)
	case err != nil:
		return connector.Receipt{}, &connector.DriftedError{}
	}
	reading := c.reading(now)
	return connector.Receipt{}, &connector.DriftedError{Now: &reading}
}
