package rollback

import (
	"context"
	"errors"
	"net/http"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
)

// Execute sends the plan's request once. Only a whole 201 that shows this very rollback is a success; answer.go says what
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
	if reply.Status == http.StatusCreated {
		return sent.receipt(reply)
	}
	return c.about(sent, call).Judge(ctx, httptarget.ReadRefusal(reply), documented)
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
	d, err := httptarget.ParseDocument(plan.Request.Body)
	if err != nil {
		return s, err
	}
	return s, d.Texts(map[string]*string{"to_deployment_id": &s.to})
}

// receipt believes a 201 only if its whole body shows the build that was asked for as the one that is active now, in this
// place.
func (s sent) receipt(reply connector.Reply) (connector.Receipt, error) {
	d, err := httptarget.ParseDocument(reply.Body)
	if err != nil {
		return connector.Receipt{}, err
	}
	made, err := readDeployment(d)
	if err != nil {
		return connector.Receipt{}, err
	}
	var change string
	if err := d.Texts(map[string]*string{"change_id": &change}); err != nil {
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
