package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/test/fleet"
)

// The daily budgets that checks ask for, from fleet.Budget: one approver, two of them, and one who has just signed in and writes the
// target's name. See policyOfTheSuite.
const (
	large    = 2 * fleet.Budget
	vast     = 5 * fleet.Budget
	enormous = 8 * fleet.Budget
)

// campaign adds one to the platform under a name like no other, and returns both.
func (w *scene) campaign() (id, name string) {
	n := w.made.Add(1)
	sum := sha256.Sum256(fmt.Append(nil, "campaign", n))
	name = "Sale " + hex.EncodeToString(sum[:6])
	return w.campaignNamed(name), name
}

// campaignNamed adds one under this name.
func (w *scene) campaignNamed(name string) (id string) {
	id = fmt.Sprintf("8%09d", w.made.Add(1))
	w.must(w.f.Ads.AddCampaign(w.ctx, target.Campaign{
		ID: id, AccountID: "acc-jp-01", Name: name, Status: target.StatusEnabled, Owner: target.UserSato, Currency: "JPY",
		DailyBudget: strconv.Itoa(fleet.Budget),
	}))
	return id
}

// change is one that was prepared.
type change struct {
	id, digest, campaign, name string
}

// prepares has somebody prepare a budget for a campaign.
func (w *scene) prepares(who, campaign, name string, yen int, reason string) change {
	body := map[string]any{"campaign_id": campaign, "new_daily_budget_jpy": yen, "reason": reason}
	if name != "" {
		body["expect_campaign_name"] = name
	}
	r, err := w.api(who).Do(w.ctx, http.MethodPost, "/v1/actions/budget_change/previews", body)
	w.must(err)
	if r.PreviewID == "" {
		w.fail("preparing: %s", r.Message)
	}
	c := change{id: r.PreviewID, campaign: campaign, name: name}
	s, err := w.api(who).Status(w.ctx, c.id, 0)
	w.must(err)
	c.digest = s.Change.Digest
	return c
}

// asks has somebody ask for approval.
func (w *scene) asks(who string, c change) change {
	return w.asksSaying(who, c, "Finance agreed on Tuesday.")
}

// asksSaying asks with these words.
func (w *scene) asksSaying(who string, c change, words string) change {
	r, err := w.api(who).Do(w.ctx, http.MethodPost, "/v1/previews/"+c.id+"/approval-request", map[string]any{"justification": words})
	w.must(err)
	want(w, "asking for approval ("+r.Message+")", r.Status, "pending")
	return c
}

// pending is a change of the agent's to a campaign of its own that waits for people.
func (w *scene) pending(yen int) change {
	id, name := w.campaign()
	return w.asks("agent", w.prepares("agent", id, name, yen, "The autumn sale begins on Friday."))
}

// status is how a change stands.
func (w *scene) status(c change) string {
	return w.statusFor("agent", c)
}

// statusFor is how a change stands, as somebody else sees it.
func (w *scene) statusFor(who string, c change) string {
	r, err := w.api(who).Status(w.ctx, c.id, 0)
	w.must(err)
	return r.Status
}

// effects is how often a change took effect at the platform, by the key that the scene's tenant sends under.
func (w *scene) effects(c change) int {
	tally, err := w.f.Ads.CountersFor(w.ctx, w.key(c))
	w.must(err)
	return tally.Effects
}

// key is what the platform knows a change by.
func (w *scene) key(c change) string {
	id, ok := preview.ParseID(c.id)
	if !ok {
		w.fail("%q is no preview ID", c.id)
	}
	return commit.IdempotencyKey([]byte(w.f.Secret), w.tenant, id, 0)
}

// applies has the agent apply a change and wants this status.
func (w *scene) applies(c change, status string) {
	r, err := w.api("agent").Apply(w.ctx, c.id)
	w.must(err)
	want(w, "applying ("+r.Message+")", r.Status, status)
}

// decides has somebody decide at the API.
func (w *scene) decides(who string, c change, decision string) {
	r, err := w.api(who).Decide(w.ctx, c.id, decision, c.digest)
	w.must(err)
	if r.HTTP != http.StatusOK {
		w.fail("%s by %s: %d %s", decision, who, r.HTTP, r.Message)
	}
}

// unknown is a change whose reply was lost, and whose platform cannot be asked what happened.
func (w *scene) unknown() change {
	id, name := w.campaign()
	c := w.prepares("agent", id, name, fleet.Budget+10_000, "The autumn sale begins on Friday.")
	w.must(w.f.Ads.AddFault(w.ctx,
		target.Once(target.OpChange, id, target.Step{Action: target.DropAfter}),
		target.Fault{Match: target.Match{Op: target.OpLookup, Resource: id}, Times: target.Forever, Do: []target.Step{{Action: target.LookupUnavailable}}},
	))
	w.applies(c, "unknown")
	return c
}

// review is the page on which people decide; whole is the change's own.
func (c change) review() string { return "/changes/" + c.id + "/review" }
func (c change) whole() string  { return "/changes/" + c.id }

// rolls has an agent ask for the rollback of a plain service to a deployment, and returns the change.
func (w *scene) rolls(service, from, to string) change {
	r, err := w.api("mori-agent").Do(w.ctx, http.MethodPost, "/v1/actions/deployment_rollback/previews", map[string]any{
		"service": service, "environment": target.EnvProduction, "to_deployment_id": to, "expect_current_deployment_id": from,
		"reason": "The new version loses orders.",
	})
	w.must(err)
	if r.PreviewID == "" {
		w.fail("preparing a rollback: %s %+v", r.Message, r.Fields)
	}
	c := change{id: r.PreviewID, name: service}
	s, err := w.api("mori-agent").Status(w.ctx, c.id, 0)
	w.must(err)
	c.digest = s.Change.Digest
	return w.asks("mori-agent", c)
}

// odd is a rollback to a version in whose name one letter is another alphabet's.
func (w *scene) odd() (c change, version string) {
	n := w.made.Add(1)
	service := target.PlainService(int(n) % target.PlainServiceCount)
	version = fmt.Sprintf("v2026.12.%d-rele\u0430se", n)
	back, err := w.deploys.Deploy(w.ctx, target.NewDeployment{Service: service, Environment: target.EnvProduction, Version: version, Author: "ito@platform.example"})
	w.must(err)
	active, err := w.deploys.Deploy(w.ctx, target.NewDeployment{
		Service: service, Environment: target.EnvProduction, Version: fmt.Sprintf("v2026.12.%d", n), Author: "ito@platform.example",
	})
	w.must(err)
	return w.rolls(service, active.ID, back.ID), version
}
