package main

import (
	"context"
	"fmt"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/target"
)

// rollback asks for a rollback as one person's agent and remembers the ID for the last step.
func (d *demo) rollback(ctx context.Context, as *demoAgent, service, environment, to, current string) (answer.Body, error) {
	b, err := as.call(ctx, "deployment_rollback_preview", map[string]any{
		"service": service, "environment": environment, "to_deployment_id": to, "expect_current_deployment_id": current,
		"reason": "Checkout errors since the last deployment",
	})
	d.ofTheDeploys(b.PreviewID)
	return b, err
}

func (d *demo) ofTheDeploys(id string) {
	if id != "" {
		d.previews = append(d.previews, id)
		d.ofDeploys[id] = true
	}
}

func (d *demo) rollbackRefused(ctx context.Context) (string, error) {
	b, err := d.rollback(ctx, d.ono, target.ServiceCheckoutWeb, target.EnvProduction, target.CheckoutWebPrevious, target.CheckoutWebCurrent)
	return fmt.Sprintf("ono's agent: preview(checkout-web, production) → %s: %s", b.Code, b.Message), first(err, want("code", b.Code, "forbidden"))
}

func (d *demo) rollbackDone(ctx context.Context) (string, error) {
	b, err := d.rollback(ctx, d.mori, target.ServiceCheckoutWeb, target.EnvProduction, target.CheckoutWebPrevious, target.CheckoutWebCurrent)
	if err := first(err, want("status", b.Status, "needs_approval")); err != nil {
		return b.Message, err
	}
	d.rolled = b.PreviewID
	own, applied, err := d.decideAndApply(ctx, b.PreviewID, d.asAgent(ctx, b.PreviewID))
	return fmt.Sprintf("%s mori's own approval → %s; hayashi approves; apply → %s", b.Change.Summary, own.Code, applied.Status),
		first(err, want("code of an own approval", own.Code, "forbidden"), want("status", applied.Status, "applied"))
}

// decideAndApply has the requester try to approve, another release manager approve, and the requester apply. The call is the
// requester's own way in: an agent's tools, or a person's API.
func (d *demo) decideAndApply(ctx context.Context, id string, call func(what string) (answer.Body, error)) (own, applied answer.Body, err error) {
	asked, err := call("approval-request")
	if err := first(err, want("status", asked.Status, "pending")); err != nil {
		return asked, applied, err
	}
	path := "/v1/previews/" + id
	seen, err := d.manager.get(ctx, path+"?response_format=detailed")
	if err := first(err, want("a digest is shown", seen.Change != nil && len(seen.Change.Digest) == 64, true)); err != nil {
		return seen, applied, err
	}
	yes := map[string]any{"decision": "approve", "digest": seen.Change.Digest}
	if own, err = d.moriHerself.post(ctx, path+"/decisions", yes); err != nil {
		return own, applied, err
	}
	decided, err := d.manager.post(ctx, path+"/decisions", yes)
	if err := first(err, want("status", decided.Status, "approved")); err != nil {
		return own, applied, err
	}
	applied, err = call("apply")
	d.mark(id)
	return own, applied, err
}

// asAgent calls the agent's tools.
func (d *demo) asAgent(ctx context.Context, id string) func(string) (answer.Body, error) {
	return func(what string) (answer.Body, error) {
		if what == "apply" {
			return d.mori.call(ctx, "deployment_rollback_apply", map[string]any{"preview_id": id})
		}
		return d.mori.call(ctx, "approval_request", map[string]any{"preview_id": id, "justification": "Checkout is failing for customers"})
	}
}

// asPerson calls the JSON API.
func (d *demo) asPerson(ctx context.Context, id string) func(string) (answer.Body, error) {
	return func(what string) (answer.Body, error) {
		body := map[string]any{}
		if what == "approval-request" {
			body["justification"] = "The errors came from elsewhere"
		}
		return d.moriHerself.post(ctx, "/v1/previews/"+id+"/"+what, body)
	}
}

func (d *demo) rollbackWithdrawn(ctx context.Context) (string, error) {
	service, environment := target.PlainService(0), target.EnvStaging
	b, err := d.rollback(ctx, d.mori, service, environment, target.PlainStagingDeployment(0, 3), target.PlainStagingDeployment(0, 4))
	may := target.Permission{User: target.UserMori, Verb: "rollback", Resource: service + "/" + environment}
	if err := first(err, want("status", b.Status, "approved"), d.deploys.SetPermission(ctx, may)); err != nil {
		return b.Message, err
	}
	refused, err := d.mori.call(ctx, "deployment_rollback_apply", map[string]any{"preview_id": b.PreviewID})
	tally, countErr := d.deploys.CountersFor(ctx, d.key(b.PreviewID))
	return fmt.Sprintf("%s %s → %s; permission withdrawn; apply → %s: %s", service, environment, b.Status, refused.Code, refused.Message),
		first(err, countErr, want("code", refused.Code, "forbidden"), want("requests at the target", tally.Received, 0))
}

func (d *demo) rollbackUndone(ctx context.Context) (string, error) {
	b, err := d.moriHerself.post(ctx, "/v1/previews/"+d.rolled+"/undo?response_format=detailed", map[string]any{"reason": "The errors came from elsewhere"})
	d.ofTheDeploys(b.PreviewID)
	if err := first(err, want("status", b.Status, "needs_approval"), want("a link to what it undoes", b.Change != nil && b.Change.Reverts == d.rolled, true)); err != nil {
		return b.Message, err
	}
	_, applied, err := d.decideAndApply(ctx, b.PreviewID, d.asPerson(ctx, b.PreviewID))
	active, readErr := d.deploys.ActiveDeployment(ctx, target.ServiceCheckoutWeb, target.EnvProduction)
	return fmt.Sprintf("mori herself: undo(%s) → %s, linked to it; hayashi approves; apply → %s; active is the build of %s again", d.rolled, b.Status, applied.Status,
		active.Activates), first(err, readErr, want("status", applied.Status, "applied"), want("active build", active.Activates, target.CheckoutWebCurrent))
}
