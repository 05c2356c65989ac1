package rollback_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
	"github.com/cutonce/cutonce/internal/target"
)

// with is a good input for checkout-api in production, one deployment back, with members replaced; a nil value removes one.
func with(changes connector.Input) connector.Input {
	in := connector.Input{
		"service": target.ServiceCheckoutAPI, "environment": target.EnvProduction, "to_deployment_id": target.CheckoutAPIPrevious,
		"expect_current_deployment_id": target.CheckoutAPICurrent, "reason": "payments fail since the last deployment",
	}
	maps.Copy(in, changes)
	maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	return in
}

type refusedInput struct {
	in    connector.Input
	code  fault.Code
	path  string
	field string
}

func badInputs() map[string]refusedInput {
	input := fault.InvalidInput
	one := func(name string, value any) connector.Input { return with(connector.Input{name: value}) }
	return map[string]refusedInput{
		"no service":              {one("service", nil), input, "/service", "rollback.field.service"},
		"a number as service":     {one("service", json.Number("1")), input, "/service", "rollback.field.service"},
		"a path in the service":   {one("service", "checkout-api/../ledger"), input, "/service", "rollback.field.service"},
		"dots as a service":       {one("service", ".."), input, "/service", "rollback.field.service"},
		"an upper-case service":   {one("service", "Checkout-API"), input, "/service", "rollback.field.service"},
		"full-width letters":      {one("service", "ｃheckout-api"), input, "/service", "rollback.field.service"},
		"a service with a line":   {one("service", "checkout-api\n"), input, "/service", "rollback.field.service"},
		"too long a service":      {one("service", strings.Repeat("a", 64)), input, "/service", "rollback.field.service"},
		"no environment":          {one("environment", nil), input, "/environment", "rollback.field.environment"},
		"another environment":     {one("environment", "live"), input, "/environment", "rollback.field.environment"},
		"an upper-case one":       {one("environment", "Production"), input, "/environment", "rollback.field.environment"},
		"no destination":          {one("to_deployment_id", nil), input, "/to_deployment_id", "rollback.field.to_deployment_id"},
		"a relative destination":  {one("to_deployment_id", "-1"), input, "/to_deployment_id", "rollback.field.to_deployment_id"},
		"a number as destination": {one("to_deployment_id", json.Number("105")), input, "/to_deployment_id", "rollback.field.to_deployment_id"},
		"a path in it":            {one("to_deployment_id", "dep-000105/rollback"), input, "/to_deployment_id", "rollback.field.to_deployment_id"},
		"a version":               {one("to_deployment_id", "v2026.11.2"), input, "/to_deployment_id", "rollback.field.to_deployment_id"},
		"nothing expected":        {one("expect_current_deployment_id", nil), input, "/expect_current_deployment_id", "rollback.field.expect_current_deployment_id"},
		"true expected":           {one("expect_current_deployment_id", true), input, "/expect_current_deployment_id", "rollback.field.expect_current_deployment_id"},
		"no reason":               {one("reason", nil), input, "/reason", "rollback.field.reason"},
		"a blank reason":          {one("reason", " \n\t　"), input, "/reason", "rollback.field.reason"},
		"a novel of a reason":     {one("reason", strings.Repeat("な", 501)), input, "/reason", "rollback.field.reason"},

		"an unknown service": {one("service", "checkout"), fault.NotFound, "/service", "rollback.field.unknown_service"},
		"an unknown deployment": {one("to_deployment_id", "dep-999999"), fault.NotFound,
			"/to_deployment_id", "rollback.field.unknown_deployment"},
		"another service's deployment": {one("to_deployment_id", target.CheckoutWebPrevious), fault.NotFound,
			"/to_deployment_id", "rollback.field.unknown_deployment"},
		"another environment's deployment": {one("to_deployment_id", target.CheckoutAPIStagingPrevious), fault.NotFound,
			"/to_deployment_id", "rollback.field.unknown_deployment"},
		"a failed deployment": {one("to_deployment_id", target.CheckoutAPIFailed), input,
			"/to_deployment_id", "rollback.field.deployment_failed"},
		"the active deployment": {one("to_deployment_id", target.CheckoutAPICurrent), input,
			"/to_deployment_id", "rollback.field.no_change"},
		"the one before expected": {one("expect_current_deployment_id", target.CheckoutAPIPrevious), fault.ExpectMismatch,
			"/expect_current_deployment_id", "rollback.field.expect_mismatch"},
		"the neighbour's service": {one("service", target.ServiceCheckoutWeb), fault.ExpectMismatch,
			"/expect_current_deployment_id", "rollback.field.expect_mismatch"},
		"the other environment": {one("environment", target.EnvStaging), fault.ExpectMismatch,
			"/expect_current_deployment_id", "rollback.field.expect_mismatch"},
	}
}

// TestBadInputs: each is refused with the place and the way out, in both languages, and nothing reaches the target.
func TestBadInputs(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range badInputs() {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, tt.in)
			var f *fault.Fault
			if !errors.As(err, &f) {
				t.Fatalf("got %v, want a fault", err)
			}
			if f.Code != tt.code || f.Retryable {
				t.Errorf("got %s (retryable %t), want %s", f.Code, f.Retryable, tt.code)
			}
			if len(f.Fields) == 0 || f.Fields[0].Path != tt.path || f.Fields[0].Key != tt.field {
				t.Errorf("got fields %+v, want %s at %s", f.Fields, tt.field, tt.path)
			}
			for _, lang := range catalog.Languages {
				wantText(t, texts.In(lang), f.Key, f.Args)
				for _, field := range f.Fields {
					wantText(t, texts.In(lang), field.Key, field.Args)
				}
			}
		})
	}
	if got := d.Counters().Total; got.Received != 0 {
		t.Errorf("the target received %d changes", got.Received)
	}
}

func wantText(t *testing.T, texts *catalog.Texts, key string, args map[string]any) {
	t.Helper()
	got := texts.T(key, args)
	if got == key || strings.Contains(got, "<no value>") || strings.Contains(got, "{{") {
		t.Errorf("%s in %s reads %q", key, texts.Lang, got)
	}
}

// TestAMismatchShowsWhatIsActive: the answer names the active deployment, for people and for machines.
func TestAMismatchShowsWhatIsActive(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	_, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, with(connector.Input{"expect_current_deployment_id": target.CheckoutWebCurrent}))
	f := fault.From(err)
	current, _ := f.Data["current"].(map[string]any)
	if f.Code != fault.ExpectMismatch || f.Args["found"] != target.CheckoutAPICurrent || current["id"] != target.CheckoutAPICurrent || current["version"] != "v2026.11.3" {
		t.Errorf("got %s %v %v, want expect_mismatch with %s", f.Code, f.Args, f.Data, target.CheckoutAPICurrent)
	}
}

// TestNothingIsToldOfOtherPlaces: an ID of another service or environment is answered as one that does not exist.
func TestNothingIsToldOfOtherPlaces(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	said := map[string]bool{}
	for _, id := range []string{target.CheckoutWebPrevious, target.CheckoutAPIStagingPrevious, "dep-999999"} {
		_, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, with(connector.Input{"to_deployment_id": id}))
		f := fault.From(err)
		delete(f.Fields[0].Args, "id")
		text, err := json.Marshal([]any{f.Code, f.Key, f.Args, f.Fields, f.Data})
		if err != nil {
			t.Fatal(err)
		}
		said[string(text)] = true
	}
	if len(said) != 1 {
		t.Errorf("got %d different answers: %v", len(said), said)
	}
}

// TestTheTargetIsNamedBesideARefusal: a refusal tells what is active, so the service must be able to ask first whether the
// caller may know it.
func TestTheTargetIsNamedBesideARefusal(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	for name, tt := range badInputs() {
		plan, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, tt.in)
		want := "checkout-api/production"
		switch {
		case tt.code == fault.InvalidInput && tt.field != "rollback.field.deployment_failed" && tt.field != "rollback.field.no_change",
			tt.field == "rollback.field.unknown_service":
			want = "" // nothing was read
		case name == "the neighbour's service":
			want = "checkout-web/production"
		case name == "the other environment":
			want = "checkout-api/staging"
		}
		if err == nil || plan.Target.ID != want {
			t.Errorf("%s: got target %q beside %v, want %q", name, plan.Target.ID, err, want)
		}
	}
	if err := d.AddFault(target.Fault{Match: target.Match{Op: target.OpFind}, Times: target.Forever, Do: []target.Step{{Action: target.StatusBefore, Status: 503}}}); err != nil {
		t.Fatal(err)
	}
	if plan, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, with(nil)); err == nil || plan.Target.ID != "checkout-api/production" {
		t.Errorf("a history that cannot be read: got target %q beside %v", plan.Target.ID, err)
	}
}

// TestAllComplaintsAtOnce: an agent should not have to find its mistakes one by one.
func TestAllComplaintsAtOnce(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	_, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, connector.Input{"environment": "live"})
	paths := []string{}
	for _, f := range fault.From(err).Fields {
		paths = append(paths, f.Path)
	}
	want := "/service /environment /to_deployment_id /expect_current_deployment_id /reason"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("got complaints at %s, want %s", got, want)
	}
}

// TestSchemaAgrees: what the schema lets through in the way of shape is what the connector lets through.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	schema, err := intake.Compile(rollback.ActionName, c.Describe().Actions[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range badInputs() {
		err := schema.Check(map[string]any(tt.in))
		service := tt.code != fault.InvalidInput || strings.HasSuffix(tt.field, "no_change") || strings.HasSuffix(tt.field, "failed") || name == "a blank reason"
		if got := err == nil; got != service {
			t.Errorf("%s: the schema accepts: %t, want %t (%v)", name, got, service, err)
		}
	}
	for name, in := range map[string]connector.Input{"as it is": with(nil), "the longest reason": with(connector.Input{"reason": strings.Repeat("な", 500)})} {
		if err := schema.Check(map[string]any(in)); err != nil {
			t.Errorf("%s: the schema refuses: %v", name, err)
		}
		if _, _, err := c.Prepare(t.Context(), mori, rollback.ActionName, in); err != nil {
			t.Errorf("%s: the connector refuses: %v", name, err)
		}
	}
	if err := schema.Check(map[string]any(with(connector.Input{"force": true}))); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("an unknown member: got %v, want invalid_input", err)
	}
}
