package rollback_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
	"github.com/cutonce/cutonce/internal/target"
)

func prepare(t *testing.T, c *rollback.Connector, in connector.Input) (connector.Plan, connector.Impact) {
	t.Helper()
	plan, impact, err := c.Prepare(t.Context(), mori, rollback.ActionName, in)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return plan, impact
}

func text(field, before, after string) connector.Change {
	return connector.Change{Field: field, Before: connector.Text(before), After: connector.Text(after)}
}

func TestPlanIsTheExactRequest(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL + "/"})
	plan, _ := prepare(t, c, with(nil))
	from, _ := d.Deployment(target.CheckoutAPICurrent)
	to, _ := d.Deployment(target.CheckoutAPIPrevious)
	want := connector.Plan{
		Target:  connector.Target{System: "deploys.example/platform", Kind: "environment", ID: "checkout-api/production", Name: "checkout-api (production)"},
		Version: "dep-000106",
		Request: connector.Request{
			Method: "POST", Path: "/v1/services/checkout-api/environments/production/rollback", Precondition: `"dep-000106"`,
			Body: []byte(`{"to_deployment_id":"dep-000105"}`),
		},
		Changes: []connector.Change{
			text("deployment", "dep-000106", "dep-000105"), text("version", "v2026.11.3", "v2026.11.2"), text("commit", from.Commit, to.Commit),
		},
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// figuresOf writes an impact's figures as a reader sees them.
func figuresOf(i connector.Impact) map[string]string {
	out := map[string]string{}
	for _, f := range i.Figures {
		out[f.Name] = "unknown"
		if f.Count != nil {
			out[f.Name] = fmt.Sprint(*f.Count)
		}
	}
	return out
}

func codesOf(i connector.Impact) []string {
	codes := []string{}
	for _, w := range i.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// warningIn renders one warning of an impact; empty if it is not there.
func warningIn(texts *catalog.Texts, i connector.Impact, code string) string {
	for _, w := range i.Warnings {
		if w.Code == code {
			return texts.T("warning."+code, w.Args)
		}
	}
	return ""
}

func ledger(to, current int) connector.Input {
	return with(connector.Input{
		"service": target.ServiceLedger, "to_deployment_id": target.LedgerProduction(to), "expect_current_deployment_id": target.LedgerProduction(current),
	})
}

func TestImpact(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	commit := func(id string) string { one, _ := d.Deployment(id); return one.Commit[:12] }
	tests := map[string]struct {
		in       connector.Input
		figures  [4]string // undone, restored, migrations, days
		warnings []string
		summary  string
	}{
		"one back": {
			with(nil), [4]string{"1", "0", "0", "9"}, []string{"undoes_deployments"},
			"Roll checkout-api in production back from v2026.11.3 (dep-000106, commit " + commit("dep-000106") +
				") to v2026.11.2 (dep-000105, commit " + commit("dep-000105") + "), which was deployed on 2026-11-18 08:59 UTC.",
		},
		"over a failed one": {
			with(connector.Input{"to_deployment_id": target.CheckoutAPIStable}), [4]string{"2", "0", "0", "27"}, []string{"undoes_deployments"},
			"Roll checkout-api in production back from v2026.11.3 (dep-000106, commit " + commit("dep-000106") +
				") to v2026.10.3 (dep-000103, commit " + commit("dep-000103") + "), which was deployed on 2026-10-31 08:59 UTC.",
		},
		"to the one that migrated": {
			with(connector.Input{"to_deployment_id": target.CheckoutAPIMigration}), [4]string{"3", "0", "0", "36"},
			[]string{"undoes_deployments", "old_deployment"}, "",
		},
		"before the migration": {
			with(connector.Input{"to_deployment_id": target.CheckoutAPIOldest}), [4]string{"4", "0", "1", "45"},
			[]string{"migration_between", "undoes_deployments", "old_deployment"}, "",
		},
		"a long way, with a look-alike service": {
			ledger(30, 60), [4]string{"29", "0", "2", "90"},
			[]string{"migration_between", "undoes_deployments", "similar_service", "old_deployment"}, "",
		},
		"just after a migration": {
			ledger(50, 60), [4]string{"10", "0", "0", "30"}, []string{"undoes_deployments", "similar_service", "old_deployment"}, "",
		},
	}
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, impact := prepare(t, c, tt.in)
			want := map[string]string{
				"deployments_undone": tt.figures[0], "deployments_restored": tt.figures[1], "migrations_between": tt.figures[2], "days_older": tt.figures[3],
			}
			if diff := cmp.Diff(want, figuresOf(impact)); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, codesOf(impact)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got := texts.In("en").T(impact.Summary.Key, impact.Summary.Args); tt.summary != "" && got != tt.summary {
				t.Errorf("summary: got %q, want %q", got, tt.summary)
			}
			if !impact.Reversible {
				t.Error("got irreversible")
			}
			for _, lang := range catalog.Languages {
				wantText(t, texts.In(lang), impact.Summary.Key, impact.Summary.Args)
				wantText(t, texts.In(lang), impact.Reversal.Key, impact.Reversal.Args)
				for _, w := range impact.Warnings {
					wantText(t, texts.In(lang), "warning."+w.Code, w.Args)
				}
			}
		})
	}
}

// TestWhoseWorkIsUndone: the deployments are named with their authors, the newest first, and a long list says what was cut.
func TestWhoseWorkIsUndone(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	en := texts.In("en")
	author := func(id string) string { one, _ := d.Deployment(id); return one.Author }
	_, impact := prepare(t, c, with(connector.Input{"to_deployment_id": target.CheckoutAPIOldest}))
	want := fmt.Sprintf("These deployments are undone: v2026.11.3 (dep-000106, %s), v2026.11.2 (dep-000105, %s), v2026.10.3 (dep-000103, %s), v2026.10.2 (dep-000102, %s).",
		author("dep-000106"), author("dep-000105"), author("dep-000103"), author("dep-000102"))
	if got := warningIn(en, impact, "undoes_deployments"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want = fmt.Sprintf("Database migrations lie in between: v2026.10.2 (dep-000102, %s). They are not undone. Check that v2026.10.1 runs with the database as it is.",
		author("dep-000102"))
	if got := warningIn(en, impact, "migration_between"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, impact = prepare(t, c, ledger(30, 60))
	if got := warningIn(en, impact, "undoes_deployments"); !strings.Contains(got, " … (+19).") || strings.Count(got, "@platform.example") != 10 {
		t.Errorf("got %q, want ten named and nineteen counted", got)
	}
	if got := warningIn(en, impact, "similar_service"); got != "Other services here have a similar name: ledger-archive." {
		t.Errorf("got %q", got)
	}
}

// TestAFailedMigrationCounts: it may have migrated before it failed.
func TestAFailedMigrationCounts(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	deploy(t, d, target.NewDeployment{ContainsMigration: true, Failed: true})
	now := deploy(t, d, target.NewDeployment{Version: "v2026.12.2"})
	_, impact := prepare(t, c, with(connector.Input{"expect_current_deployment_id": now.ID}))
	if got := figuresOf(impact); got["migrations_between"] != "1" || got["deployments_undone"] != "2" {
		t.Errorf("got %v, want one migration and two deployments undone", got)
	}
}

// TestAfterARollback: what runs is the build of an earlier deployment, and the history is measured from there.
func TestAfterARollback(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	back, _ := prepare(t, c, with(connector.Input{"to_deployment_id": target.CheckoutAPIStable}))
	if _, err := c.Execute(t.Context(), back, call); err != nil {
		t.Fatal(err)
	}
	now, _ := d.Active(target.ServiceCheckoutAPI, target.EnvProduction)
	undo, err := c.Reverse(rollback.ActionName, back)
	if err != nil {
		t.Fatal(err)
	}
	wantInput := map[string]any{
		"service": "checkout-api", "environment": "production", "to_deployment_id": "dep-000106",
		"expect_current_deployment_id": "dep-000103", "reason": "undo",
	}
	if diff := cmp.Diff(wantInput, undo); diff != "" {
		t.Errorf("the undo's input (-want +got):\n%s", diff)
	}
	schema, err := intake.Compile(rollback.ActionName, c.Describe().Actions[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Check(undo); err != nil {
		t.Errorf("the schema refuses the undo's input: %v", err)
	}
	forward, impact := prepare(t, c, undo)
	if forward.Version != now.ID || forward.Request.Precondition != `"`+now.ID+`"` || string(forward.Request.Body) != `{"to_deployment_id":"dep-000106"}` {
		t.Errorf("got version %s, precondition %s, body %s", forward.Version, forward.Request.Precondition, forward.Request.Body)
	}
	if diff := cmp.Diff(text("deployment", "dep-000103", "dep-000106"), forward.Changes[0]); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	want := map[string]string{"deployments_undone": "0", "deployments_restored": "2", "migrations_between": "0", "days_older": "3"}
	if diff := cmp.Diff(want, figuresOf(impact)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"restores_deployments"}, codesOf(impact)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := texts.In("en").T(impact.Summary.Key, impact.Summary.Args); !strings.HasPrefix(got, "Roll checkout-api in production forward from v2026.10.3 (dep-000103") {
		t.Errorf("summary: got %q", got)
	}
	for _, lang := range catalog.Languages {
		wantText(t, texts.In(lang), impact.Summary.Key, impact.Summary.Args)
		wantText(t, texts.In(lang), "warning.restores_deployments", impact.Warnings[0].Args)
	}
	// From here further back: the rollback itself is no deployment that is undone.
	_, impact = prepare(t, c, with(connector.Input{"to_deployment_id": target.CheckoutAPIOldest, "expect_current_deployment_id": now.ID}))
	if got := figuresOf(impact); got["deployments_undone"] != "2" || got["migrations_between"] != "1" {
		t.Errorf("further back: got %v, want two undone and one migration", got)
	}
	if _, err := c.Execute(t.Context(), forward, connector.Call{Key: "key-2"}); err != nil {
		t.Fatal(err)
	}
	// The ID of an earlier rollback stands for what it activated.
	last, _ := d.Active(target.ServiceCheckoutAPI, target.EnvProduction)
	again, _ := prepare(t, c, with(connector.Input{"to_deployment_id": now.ID, "expect_current_deployment_id": last.ID}))
	if got := string(again.Request.Body); got != `{"to_deployment_id":"dep-000103"}` {
		t.Errorf("a rollback's ID as destination: got the body %s", got)
	}
}

// TestRollbacksInBetweenAreNoDeployments: they brought no build of their own, so going back over one undoes nothing more.
func TestRollbacksInBetweenAreNoDeployments(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	back, _ := prepare(t, c, with(nil))
	if _, err := c.Execute(t.Context(), back, call); err != nil {
		t.Fatal(err)
	}
	now := deploy(t, d, target.NewDeployment{})
	_, impact := prepare(t, c, with(connector.Input{"to_deployment_id": target.CheckoutAPIStable, "expect_current_deployment_id": now.ID}))
	if got := figuresOf(impact)["deployments_undone"]; got != "3" {
		t.Errorf("got %s deployments undone, want 3 (%v)", got, impact.Warnings)
	}
}

// TestAMigrationOnTheWayForwardIsToldToo: restoring a build over a migration is as much a question as undoing one.
func TestAMigrationOnTheWayForwardIsToldToo(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	back, _ := prepare(t, c, with(connector.Input{"to_deployment_id": target.CheckoutAPIOldest}))
	if _, err := c.Execute(t.Context(), back, call); err != nil {
		t.Fatal(err)
	}
	undo, err := c.Reverse(rollback.ActionName, back)
	if err != nil {
		t.Fatal(err)
	}
	_, impact := prepare(t, c, undo)
	if got := codesOf(impact); got[0] != "migration_between" {
		t.Errorf("got warnings %v, want migration_between first", got)
	}
}

// TestAHistoryThatIsTooLong: what was not read is not counted as nothing.
func TestAHistoryThatIsTooLong(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL, HistoryUpTo: 20})
	plan, impact := prepare(t, c, ledger(10, 60))
	want := map[string]string{"deployments_undone": "unknown", "deployments_restored": "unknown", "migrations_between": "unknown", "days_older": "150"}
	if diff := cmp.Diff(want, figuresOf(impact)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if got := codesOf(impact); got[0] != "history_unchecked" || impact.Warnings[0].Args["read"] != int64(20) {
		t.Errorf("got warnings %v %v, want history_unchecked of 20 first", got, impact.Warnings[0].Args)
	}
	if got := string(plan.Request.Body); got != `{"to_deployment_id":"dep-000510"}` {
		t.Errorf("got the body %s", got)
	}
	if _, impact = prepare(t, c, ledger(45, 60)); figuresOf(impact)["migrations_between"] != "1" {
		t.Errorf("within what was read: got %v", figuresOf(impact))
	}
}

// TestOneCommitTwice: a field that stays as it is is not shown as a change.
func TestOneCommitTwice(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	was, _ := d.Deployment(target.CheckoutAPICurrent)
	now := deploy(t, d, target.NewDeployment{Version: was.Version, Commit: was.Commit})
	plan, _ := prepare(t, c, with(connector.Input{"to_deployment_id": was.ID, "expect_current_deployment_id": now.ID}))
	if diff := cmp.Diff([]connector.Change{text("deployment", now.ID, was.ID)}, plan.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	find := func(in connector.Input) connector.Page {
		t.Helper()
		page, err := c.Find(t.Context(), person(target.UserPlatformGuest), rollback.FindName, in)
		if err != nil {
			t.Fatalf("Find(%v): %v", in, err)
		}
		return page
	}
	page := find(connector.Input{"service": target.ServiceCheckoutAPI, "environment": target.EnvProduction})
	if page.Total != 6 || len(page.Items) != 6 || page.NextCursor != "" || len(page.Warnings) != 0 {
		t.Fatalf("got %d of %d, next %q, warnings %v, want all six", len(page.Items), page.Total, page.NextCursor, page.Warnings)
	}
	now, _ := d.Deployment(target.CheckoutAPICurrent)
	want := map[string]any{
		"id": now.ID, "service": "checkout-api", "environment": "production", "version": "v2026.11.3", "commit": now.Commit, "author": now.Author,
		"time": "2026-11-27T08:59:00Z", "contains_migration": false, "status": "active",
	}
	if diff := cmp.Diff(want, page.Items[0]); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	schema, err := intake.Compile("item", c.Describe().Finds[0].Item)
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := prepare(t, c, with(nil))
	if _, err := c.Execute(t.Context(), plan, call); err != nil {
		t.Fatal(err)
	}
	page = find(connector.Input{"service": target.ServiceCheckoutAPI, "status": "active"})
	if page.Total != 2 || page.Items[0]["activates"] != target.CheckoutAPIPrevious || page.Items[1]["activates"] != nil {
		t.Errorf("got %v, want the rollback in production and the deployment in staging", page.Items)
	}
	for _, item := range page.Items {
		if err := schema.Check(item); err != nil {
			t.Errorf("the item's schema refuses %v: %v", item, err)
		}
	}
	page = find(connector.Input{"status": "active"})
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Warnings) != 2 {
		t.Fatalf("got warnings %v, want the two pairs of similar services", page.Warnings)
	}
	for _, lang := range catalog.Languages {
		wantText(t, texts.In(lang), page.Warnings[0].Key, page.Warnings[0].Args)
	}
}

func TestFindPages(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	seen := map[string]bool{}
	in := connector.Input{}
	for {
		page, err := c.Find(t.Context(), mori, rollback.FindName, in)
		if err != nil {
			t.Fatalf("Find: %v", err)
		}
		if page.Total != len(d.Deployments()) {
			t.Fatalf("got total %d, want %d", page.Total, len(d.Deployments()))
		}
		for _, item := range page.Items {
			seen[item["id"].(string)] = true
		}
		if page.NextCursor == "" {
			break
		}
		in["cursor"] = page.NextCursor
	}
	if len(seen) != len(d.Deployments()) {
		t.Errorf("got %d deployments over all pages, want %d", len(seen), len(d.Deployments()))
	}
	in["status"] = "failed" // a cursor of another search
	_, err := c.Find(t.Context(), mori, rollback.FindName, in)
	if f := fault.From(err); f.Code != fault.InvalidInput || f.Fields[0].Path != "/cursor" {
		t.Errorf("a foreign cursor: got %v, want invalid_input at /cursor", err)
	}
}

// TestFindShowsWhatTheHumanMayRead: the platform's own permissions decide at every look.
func TestFindShowsWhatTheHumanMayRead(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	one := connector.Input{"service": target.ServiceCheckoutAPI, "environment": target.EnvProduction}
	service := connector.Input{"service": target.ServiceCheckoutAPI}
	d.SetPermission(target.Permission{User: target.UserOno, Verb: "read", Resource: "checkout-api/production"})
	for name, tt := range map[string]struct {
		who    actor.Actor
		in     connector.Input
		code   fault.Code
		reason string
	}{
		"a place that was withdrawn": {person(target.UserOno), one, fault.Forbidden, "withdrawn"},
		"somebody unknown":           {person("nobody@platform.example"), one, fault.Forbidden, "unknown_user"},
		"nobody at all":              {actor.Actor{Tenant: "t1", Kind: actor.Agent, Issuer: "i", Subject: target.UserMori}, service, fault.Forbidden, "no_human_known"},
		"a place that is not there":  {mori, connector.Input{"service": "checkout", "environment": target.EnvProduction}, fault.NotFound, ""},
		"a path as a service":        {mori, connector.Input{"service": "../x", "environment": target.EnvProduction}, fault.InvalidInput, ""},
	} {
		_, err := c.Find(t.Context(), tt.who, rollback.FindName, tt.in)
		if f := fault.From(err); f.Code != tt.code || tt.reason != "" && f.Args["reason"] != tt.reason {
			t.Errorf("%s: got %v %v, want %s %s", name, err, f.Args, tt.code, tt.reason)
		}
	}
	page, err := c.Find(t.Context(), person(target.UserOno), rollback.FindName, service)
	if err != nil || page.Total != 6 || page.Items[0]["environment"] != target.EnvStaging {
		t.Errorf("the whole service: got %d of %+v (%v), want staging alone", page.Total, page.Items, err)
	}
	if page, err = c.Find(t.Context(), person("nobody@platform.example"), rollback.FindName, connector.Input{}); err != nil || page.Total != 0 {
		t.Errorf("somebody unknown, everything: got %d (%v), want nothing", page.Total, err)
	}
}

// TestALookalikeThatMayNotBeSeenIsNotNamed: its name is none of the caller's business, and they cannot hit it.
func TestALookalikeThatMayNotBeSeenIsNotNamed(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	d.SetPermission(target.Permission{User: target.UserMori, Verb: "read", Resource: "ledger-archive/production"})
	_, impact := prepare(t, c, ledger(59, 60))
	if diff := cmp.Diff([]string{"undoes_deployments"}, codesOf(impact)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestAuthorize: the platform's own permissions decide, at prepare and at apply, for the human and not for the agent.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	staging := plan.Target
	staging.ID = "checkout-api/staging"
	nobody := actor.Actor{Tenant: "t1", Kind: actor.Agent, Issuer: "i", Subject: target.UserMori}
	for name, tt := range map[string]struct {
		who  actor.Actor
		at   connector.Target
		want connector.Permission
	}{
		"a release manager, through an agent":      {mori, plan.Target, connector.Permission{Allowed: true, Reason: "granted"}},
		"staging only, in staging":                 {person(target.UserOno), staging, connector.Permission{Allowed: true, Reason: "granted"}},
		"staging only, in production":              {person(target.UserOno), plan.Target, connector.Permission{Reason: "not_granted"}},
		"a person who may only read":               {person(target.UserPlatformGuest), plan.Target, connector.Permission{Reason: "not_granted"}},
		"a person whom the platform does not know": {person(target.UserSato), plan.Target, connector.Permission{Reason: "unknown_user"}},
		"an agent called like a person":            {nobody, plan.Target, connector.Permission{Reason: "no_human_known"}},
	} {
		for _, verb := range []connector.Verb{connector.VerbPrepare, connector.VerbApply} {
			if got, err := c.Authorize(t.Context(), tt.who, verb, tt.at); err != nil || got != tt.want {
				t.Errorf("%s, %s: got %+v, %v, want %+v", name, verb, got, err, tt.want)
			}
		}
	}
	d.SetPermission(target.Permission{User: target.UserMori, Verb: "rollback", Resource: plan.Target.ID})
	if got, err := c.Authorize(t.Context(), mori, connector.VerbApply, plan.Target); err != nil || got.Allowed || got.Reason != "withdrawn" {
		t.Errorf("after the permission was withdrawn: got %+v, %v", got, err)
	}
	other := plan.Target
	other.System = "elsewhere"
	if got, err := c.Authorize(t.Context(), mori, connector.VerbApply, other); err == nil || got.Allowed {
		t.Errorf("another system's target: got %+v, %v, want an error", got, err)
	}
	for _, step := range []target.Step{{Action: target.StatusBefore, Status: 503}, {Action: target.StatusBefore, Status: 200}, {Action: target.TruncateBody}} {
		if err := d.AddFault(target.Once(target.OpPermission, "", step)); err != nil {
			t.Fatal(err)
		}
		if p, err := c.Authorize(t.Context(), mori, connector.VerbApply, plan.Target); err == nil || p.Allowed {
			t.Errorf("%s %d: got %+v, %v, want an error", step.Action, step.Status, p, err)
		}
	}
}

// TestReadFailures: what the platform does not answer is unavailable and may be asked again; nothing of ours was sent.
func TestReadFailures(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	for _, step := range []target.Step{
		{Action: target.StatusBefore, Status: 429, RetryAfterS: 7}, {Action: target.StatusBefore, Status: 500}, {Action: target.StatusBefore, Status: 404},
		{Action: target.StatusBefore, Status: 200}, {Action: target.TruncateBody}, {Action: target.DropBefore},
	} {
		for _, op := range []target.Op{target.OpRead, target.OpFind} {
			times := 1
			if step.Action == target.DropBefore {
				times = 2 // net/http may ask once more by itself
			}
			if err := d.AddFault(target.Fault{Match: target.Match{Op: op}, Times: times, Do: []target.Step{step}}); err != nil {
				t.Fatal(err)
			}
			_, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, with(nil))
			d.ClearFaults()
			var f *fault.Fault
			if !errors.As(err, &f) || f.Code != fault.TargetUnavailable || !f.Retryable {
				t.Errorf("%s %d on %s: got %v, want a retryable target_unavailable", step.Action, step.Status, op, err)
			} else if got := f.RetryAfter.Seconds(); got != float64(step.RetryAfterS) {
				t.Errorf("%s %d on %s: retry after %vs, want %ds", step.Action, step.Status, op, got, step.RetryAfterS)
			}
		}
	}
	wrong := connect(t, rollback.Config{BaseURL: server.URL, Token: "wrong"})
	if _, _, err := wrong.Prepare(t.Context(), mori, rollback.ActionName, with(nil)); fault.CodeOf(err) != fault.TargetUnavailable {
		t.Errorf("a wrong credential: got %v, want target_unavailable", err)
	} else if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error %q holds the credential", err)
	}
}

// TestStrangeReads: an answer about something else, or one that leaves out what a preview rests on, is no answer.
func TestStrangeReads(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"another service":               {`"service":"checkout-api"`, `"service":"checkout-web"`},
		"another service at the top":    {`{"service":"checkout-api","environment":"production","etag"`, `{"service":"checkout-web","environment":"production","etag"`},
		"no etag":                       {`"etag":"\"dep-000106\""`, `"etag":""`},
		"nothing about migrations":      {`"contains_migration":false`, `"migration":false`},
		"a migration in words":          {`"contains_migration":false`, `"contains_migration":"no"`},
		"no author":                     {`"author":"`, `"writer":"`},
		"a time of another form":        {`"time":"2026-11`, `"time":"27 Nov 2026`},
		"a rollback to nowhere":         {`"source":"pipeline"`, `"activates":""`},
		"a list that holds other types": {`{"deployments":[`, `{"deployments":["dep-000106",`},
		"another environment's history": {`"environment":"production"`, `"environment":"staging"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := startDeploys(t, true)
			var changed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				recorder := httptest.NewRecorder()
				d.ServeHTTP(recorder, r)
				body := recorder.Body.String()
				strange := strings.ReplaceAll(body, change[0], change[1])
				if strange != body {
					changed.Store(true)
				}
				w.WriteHeader(recorder.Code)
				_, _ = fmt.Fprint(w, strange)
			}))
			t.Cleanup(server.Close)
			c := connect(t, rollback.Config{BaseURL: server.URL})
			_, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, with(nil))
			if got := fault.CodeOf(err); got != fault.TargetUnavailable || !changed.Load() {
				t.Errorf("got %v (changed %t), want target_unavailable", err, changed.Load())
			}
		})
	}
}

// TestAHistoryThatDoesNotAdvance ends.
func TestAHistoryThatDoesNotAdvance(t *testing.T) {
	t.Parallel()
	d, _ := startDeploys(t, true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/deployments" {
			_, _ = fmt.Fprint(w, `{"deployments":[],"total":0,"next_cursor":"again"}`)
			return
		}
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	if _, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, with(nil)); fault.CodeOf(err) != fault.TargetUnavailable {
		t.Errorf("got %v, want target_unavailable", err)
	}
}

// TestNamesStayAsTheyAre: what a reader cannot see in an author's name is left for whoever shows it to make visible.
func TestNamesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	made, err := d.Deploy(target.NewDeployment{Service: "checkout-api", Environment: "production", Version: "v\u202e1", Author: "abe\u200b@platform.example"})
	if err != nil {
		t.Fatal(err)
	}
	plan, impact := prepare(t, c, with(connector.Input{"expect_current_deployment_id": made.ID}))
	raw, err := json.Marshal(impact.Warnings[0].Args["list"])
	if err != nil {
		t.Fatal(err)
	}
	if *plan.Changes[1].Before.Text != "v\u202e1" || !strings.Contains(string(raw), "v\u202e1") || !strings.Contains(string(raw), "abe\u200b@") {
		t.Errorf("got %q and %s, want them untouched", *plan.Changes[1].Before.Text, raw)
	}
}
