package policies_test

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/policy"
)

// planned is a rollback's facts as the connector itself makes them, against a simulated platform.
func planned(t *testing.T, service, environment, to, current string, historyUpTo int) policy.Facts {
	t.Helper()
	d := target.NewDeploys(target.DeploysConfig{PlatformConfig: target.PlatformConfig{Token: "t"}, Seed: 1})
	server := httptest.NewServer(d)
	t.Cleanup(func() { _ = d.Close(); server.Close() })
	c, err := rollback.New(rollback.Config{BaseURL: server.URL, Token: "t", System: "deploys.example/platform", HistoryUpTo: historyUpTo})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	who := actor.Actor{Tenant: "platform", Kind: actor.Agent, Issuer: "https://issuer.example", Subject: "agent-7", For: target.UserMori}
	input := connector.Input{
		"service": service, "environment": environment, "to_deployment_id": to, "expect_current_deployment_id": current, "reason": "r",
	}
	plan, impact, err := c.Prepare(t.Context(), who, rollback.ActionName, input)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return policy.Facts{Action: rollback.ActionName, Input: input, Plan: plan, Impact: impact, Requester: who}
}

func TestTheRollbackPolicyRules(t *testing.T) {
	t.Parallel()
	p := load(t)
	api, ledger := target.ServiceCheckoutAPI, target.ServiceLedger
	current, stagingCurrent, ledgerCurrent := target.CheckoutAPICurrent, target.CheckoutAPIStagingCurrent, target.LedgerProduction(target.LedgerCount)
	staging, production := target.EnvStaging, target.EnvProduction
	odd := planned(t, api, staging, target.CheckoutAPIStagingPrevious, stagingCurrent, 0)
	odd.Input = connector.Input{"environment": "canary"}
	blind := planned(t, api, staging, target.CheckoutAPIStagingPrevious, stagingCurrent, 0)
	blind.Impact = connector.Impact{}
	cases := []struct {
		name  string
		facts policy.Facts
		want  policy.Verdict
		rule  string
	}{
		{"staging, one back", planned(t, api, staging, target.CheckoutAPIStagingPrevious, stagingCurrent, 0), policy.Allow, "rollback-in-staging"},
		{"staging, over a migration", planned(t, api, staging, target.CheckoutAPIStagingOldest, stagingCurrent, 0), policy.Require, "rollback-over-migration"},
		{"production, one back", planned(t, api, production, target.CheckoutAPIPrevious, current, 0), policy.Require, "rollback-in-production"},
		{"production, to the one that migrated", planned(t, api, production, target.CheckoutAPIMigration, current, 0), policy.Require, "rollback-in-production"},
		{"production, over a migration", planned(t, api, production, target.CheckoutAPIOldest, current, 0), policy.Require, "rollback-over-migration"},
		{"production, over two", planned(t, ledger, production, target.LedgerProduction(30), ledgerCurrent, 0), policy.Require, "rollback-over-migration"},
		{"production, a history too long to tell", planned(t, ledger, production, target.LedgerProduction(52), ledgerCurrent, 5), policy.Require, "rollback-over-migration"},
		{"an environment nobody thought of", odd, policy.Require, "rollback-in-production"},
		{"an impact that says nothing", blind, policy.Require, "rollback-over-migration"},
		{"nothing known", policy.Facts{Action: rollback.ActionName}, policy.Require, "rollback-over-migration"},
	}
	var golden strings.Builder
	for _, tc := range cases {
		got := p.Evaluate(tc.facts)
		if got.Verdict != tc.want || got.Rule != tc.rule {
			t.Errorf("%s: got %s by %s, want %s by %s", tc.name, got.Verdict, got.Rule, tc.want, tc.rule)
		}
		golden.WriteString(render(t, tc.name, got))
	}
	compare(t, filepath.Join("testdata", "rollbacks.golden"), golden.String())
}

// TestARollbackChangesNoBudgetRuling: the files live together without touching each other's actions.
func TestARollbackChangesNoBudgetRuling(t *testing.T) {
	t.Parallel()
	alone, err := policy.Load(policies.FS, "budgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	together := load(t)
	for _, tc := range cases {
		want, got := alone.Evaluate(tc.facts), together.Evaluate(tc.facts)
		got.Version, want.Version = "", ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-alone +together):\n%s", tc.name, diff)
		}
	}
}
