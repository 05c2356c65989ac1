package rollback

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/visible"
)

// Execute sends the plan's request once. Only a whole 201 that shows this very rollback is a success; answer.go says what
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
	if reply.Status == http.StatusCreated {
		return sent.receipt(reply)
	}
	return c.refused(ctx, sent, call, readRefusal(reply))
}

// sent is what a plan of ours says, read back from its bytes.
type sent struct {
	plan connector.Plan
	at   place
	to   string
}

// readPlan refuses a plan that this connector did not make, before anything is sent.
func (c *Connector) readPlan(plan connector.Plan) (sent, error) {
	at, err := c.owns(plan.Target)
	if err != nil {
		return sent{}, err
	}
	s := sent{plan: plan, at: at}
	if plan.Request.Method != http.MethodPost || plan.Request.Path != rollbackPath(at) || plan.Request.Precondition == "" {
		return s, errors.New("the plan's request is not one of ours")
	}
	d, err := parseDocument(plan.Request.Body)
	if err != nil {
		return s, err
	}
	return s, d.texts(map[string]*string{"to_deployment_id": &s.to})
}

// changeHeaders mark the rollback with our key and name the people behind it. The key goes along even where the platform
// does not honour it: its history records it, which is what a look-up needs.
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

// receipt believes a 201 only if its whole body shows the build that was asked for as the one that is active now, in this
// place.
func (s sent) receipt(reply connector.Reply) (connector.Receipt, error) {
	d, err := parseDocument(reply.Body)
	if err != nil {
		return connector.Receipt{}, err
	}
	made, err := readDeployment(d)
	if err != nil {
		return connector.Receipt{}, err
	}
	var change string
	if err := d.texts(map[string]*string{"change_id": &change}); err != nil {
		return connector.Receipt{}, err
	}
	if made.place != s.at || made.Activates != s.to {
		return connector.Receipt{}, errors.New("the platform answered 201 about something else than was asked for")
	}
	evidence := map[string]any{
		"http_status": int64(reply.Status), "change_id": change, "deployment_id": made.ID, "activates": made.Activates,
		"version": made.Version, "commit": made.Commit,
	}
	if reply.Header.Get("Idempotency-Replayed") == "true" {
		evidence["replayed"] = true
	}
	return connector.Receipt{Evidence: evidence, Version: made.ID}, nil
}

// refused judges an answer other than 201. Even a documented refusal speaks only for the delivery that it answers: a
// middlebox may have delivered the request twice and passed on the second answer, which then says that another deployment is
// active, because the first delivery made it so. So the platform's history is asked before a refusal is believed.
func (c *Connector) refused(ctx context.Context, s sent, call connector.Call, r refusal) (connector.Receipt, error) {
	if !r.documented() && !r.moved() {
		return connector.Receipt{}, r
	}
	mine, err := c.marked(ctx, s, call)
	switch {
	case err == nil && mine != nil:
		return connector.Receipt{Evidence: mine.evidence(), Version: mine.deploymentID}, nil
	case err != nil && r.there():
		return connector.Receipt{}, fmt.Errorf("the build that was sent is active, and there is no history to ask: %w", r)
	case !r.moved():
		return connector.Receipt{}, connector.Rejected(r.status, r.words())
	}
	return connector.Receipt{}, c.drifted(ctx, s, r, err == nil)
}

// drifted judges the platform's word that another deployment is active. Without a history it is not believed where the
// active build is the very one that was sent.
func (c *Connector) drifted(ctx context.Context, s sent, r refusal, historyKnown bool) error {
	now, err := c.platform.environment(ctx, s.at)
	switch {
	case err == nil && !historyKnown && now.current.build() == s.to:
		return fmt.Errorf("the environment has moved to the very build that was sent, and there is no history to ask: %w", r)
	case err != nil && !historyKnown:
		return fmt.Errorf("the environment has moved, and neither it nor its history can be read: %w", r)
	case err != nil:
		return &connector.DriftedError{}
	}
	reading := c.reading(now)
	return &connector.DriftedError{Now: &reading}
}
