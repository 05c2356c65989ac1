package rollback_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/target"
)

var call = connector.Call{
	Key: "key-1", OnBehalfOf: target.UserMori, Agent: "deploy-agent", ApprovedBy: []string{target.UserHayashi, target.UserOno}, PreviewID: "pv_1",
}

func TestExecuteNamesThePeople(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	receipt, err := c.Execute(t.Context(), plan, call)
	if err != nil {
		t.Fatalf("Execute: %v", err)
	}
	now, _ := d.Active(target.ServiceCheckoutAPI, target.EnvProduction)
	if now.Version != "v2026.11.2" || now.Author != target.UserMori || receipt.Version != now.ID {
		t.Errorf("got %+v active, receipt %s", now, receipt.Version)
	}
	want := map[string]any{
		"http_status": int64(201), "change_id": "chg-000001", "deployment_id": "dep-010001", "activates": "dep-000105",
		"version": "v2026.11.2", "commit": now.Commit,
	}
	if diff := cmp.Diff(want, receipt.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	entry := d.Entries()[0]
	got := []string{entry.Key, entry.OnBehalfOf, entry.ApprovedBy, entry.Agent}
	if diff := cmp.Diff([]string{"key-1", target.UserMori, target.UserHayashi + ", " + target.UserOno, "deploy-agent"}, got); diff != "" {
		t.Errorf("the target's log (-want +got):\n%s", diff)
	}
	if receipt, err = c.Execute(t.Context(), plan, call); err != nil || receipt.Evidence["replayed"] != true {
		t.Errorf("the same key again: got %v, %v, want the first answer, marked as such", receipt.Evidence, err)
	}
}

// TestNoHeaderIsForged: a name from outside cannot add a header, and cannot keep a change from being sent.
func TestNoHeaderIsForged(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	forged := call
	forged.Agent = "agent\r\nX-Approved-By: root@platform.example"
	forged.ApprovedBy = nil
	if _, err := c.Execute(t.Context(), plan, forged); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	entry := d.Entries()[0]
	if entry.ApprovedBy != "" || !strings.Contains(entry.Agent, "⟨U+000D⟩⟨U+000A⟩") {
		t.Errorf("got agent %q, approved by %q", entry.Agent, entry.ApprovedBy)
	}
}

// TestOnlyOurPlansAreSent: a stored plan that was changed does not reach the target.
func TestOnlyOurPlansAreSent(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	for name, spoil := range map[string]func(*connector.Plan, *connector.Call){
		"another path": func(p *connector.Plan, _ *connector.Call) {
			p.Request.Path = "/v1/services/ledger/environments/production/rollback"
		},
		"another target":        func(p *connector.Plan, _ *connector.Call) { p.Target.ID = "ledger/production" },
		"another kind":          func(p *connector.Plan, _ *connector.Call) { p.Target.Kind = "service" },
		"no precondition":       func(p *connector.Plan, _ *connector.Call) { p.Request.Precondition = "" },
		"another method":        func(p *connector.Plan, _ *connector.Call) { p.Request.Method = "PUT" },
		"a body of other sense": func(p *connector.Plan, _ *connector.Call) { p.Request.Body = []byte(`{"deployment":"dep-000105"}`) },
		"no key":                func(_ *connector.Plan, k *connector.Call) { k.Key = "" },
	} {
		plan, _ := prepare(t, c, with(nil))
		spoilt := call
		spoil(&plan, &spoilt)
		_, err := c.Execute(t.Context(), plan, spoilt)
		if got := connector.Classify(err); got != connector.ClassNotSent {
			t.Errorf("%s: got %s (%v), want not_sent", name, got, err)
		}
	}
	if n := d.Counters().Total; n.Received != 0 {
		t.Errorf("the target received %d changes", n.Received)
	}
}

func TestDriftShowsThreeColumns(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	made := deploy(t, d, target.NewDeployment{})
	_, err := c.Execute(t.Context(), plan, call)
	var drifted *connector.DriftedError
	if !errors.As(err, &drifted) || drifted.Now == nil {
		t.Fatalf("got %v, want drifted with a reading", err)
	}
	want := map[string]connector.Value{
		"deployment": connector.Text(made.ID), "version": connector.Text("v2026.12.1"), "commit": connector.Text(made.Commit),
	}
	if diff := cmp.Diff(want, drifted.Now.Values); diff != "" || drifted.Now.Version != made.ID {
		t.Errorf("now at %s (-want +got):\n%s", drifted.Now.Version, diff)
	}
}

// TestDocumentedRefusals: only status and code together are the platform's word. Each is answered with and without it.
func TestDocumentedRefusals(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{
		"400 invalid_body": true, "400 invalid_key": true, "401 unauthenticated": true, "404 service_not_found": true, "404 environment_not_found": true,
		"413 too_large": true, "415 unsupported_media_type": true, "422 unknown_deployment": true, "422 deployment_failed": true,
		// That is what our own first delivery would have made of it.
		"422 already_current": false,
		"409 in_progress":     false, "422 key_reused": false, "403 forbidden": false, "429 too_many_requests": false, "500 invalid_body": false,
		"200 invalid_body": false, "201 invalid_body": false, "404 invalid_body": false, "404 not_found": false, "404 deployment_not_found": false,
		"400 service_not_found": false, "422 unheard_of": false, "400 ": false, "412 precondition_failed": false, "503 unauthenticated": false,
	}
	for answer, refused := range documented {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			var status int
			var code string
			_, _ = fmt.Sscanf(answer, "%d %s", &status, &code)
			c, plan := behind(t, rollback.Config{}, refuse(status, code))
			_, err := c.Execute(t.Context(), plan, call)
			want := connector.ClassUnknown
			if refused {
				want = connector.ClassRefused
			}
			if got := connector.Classify(err); got != want {
				t.Fatalf("got %s (%v), want %s", got, err, want)
			}
			var words *connector.RejectedError
			if errors.As(err, &words) && words.Reason != code+": no⟨U+202E⟩such thing" {
				t.Errorf("got the words %q", words.Reason)
			}
		})
	}
}

func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":"no\u202esuch thing"}}`, code)
	}
}

// behind puts a handler of the test's own in front of a simulator's changes.
func behind(t *testing.T, cfg rollback.Config, change http.HandlerFunc) (*rollback.Connector, connector.Plan) {
	t.Helper()
	d, _ := startDeploys(t, true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			change(w, r)
			return
		}
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	cfg.BaseURL = server.URL
	c := connect(t, cfg)
	plan, _ := prepare(t, c, with(nil))
	return c, plan
}

// TestAlreadyCurrentNeedsAHistory: it may be so by our own doing, and only a history can tell.
func TestAlreadyCurrentNeedsAHistory(t *testing.T) {
	t.Parallel()
	c, plan := behind(t, rollback.Config{NoLookup: true}, refuse(422, "already_current"))
	_, err := c.Execute(t.Context(), plan, call)
	if got := connector.Classify(err); got != connector.ClassUnknown {
		t.Errorf("got %s (%v), want unknown", got, err)
	}
}

// TestReceiptsAreRead: a 201 counts only if it is whole and about this very rollback.
func TestReceiptsAreRead(t *testing.T) {
	t.Parallel()
	good := `{"id":"dep-010001","service":"checkout-api","environment":"production","version":"v2026.11.2","commit":"c","author":"a",` +
		`"time":"2026-12-01T00:00:00Z","contains_migration":false,"status":"active","source":"rollback","activates":"dep-000105","change_id":"chg-1"}`
	for name, tt := range map[string]struct {
		body string
		want connector.Class
	}{
		"as documented":       {good, connector.ClassApplied},
		"another service":     {strings.Replace(good, "checkout-api", "checkout-web", 1), connector.ClassUnknown},
		"another environment": {strings.Replace(good, "production", "staging", 1), connector.ClassUnknown},
		"another build":       {strings.Replace(good, "dep-000105", "dep-000103", 1), connector.ClassUnknown},
		"no build":            {strings.Replace(good, "activates", "active", 1), connector.ClassUnknown},
		"no change ID":        {strings.Replace(good, "change_id", "changed", 1), connector.ClassUnknown},
		"a number as ID":      {strings.Replace(good, `"dep-010001"`, `10001`, 1), connector.ClassUnknown},
		"two builds":          {strings.Replace(good, `"change_id"`, `"activates":"dep-000103","change_id"`, 1), connector.ClassUnknown},
		"another spelling":    {strings.Replace(good, `"id"`, `"ID"`, 1), connector.ClassUnknown},
		"two documents":       {good + good, connector.ClassUnknown},
		"half a document":     {good[:len(good)/2], connector.ClassUnknown},
		"a list":              {"[" + good + "]", connector.ClassUnknown},
		"nothing":             {"", connector.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for status, want := range map[int]connector.Class{201: tt.want, 200: connector.ClassUnknown, 202: connector.ClassUnknown} {
				c, plan := behind(t, rollback.Config{}, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(status)
					_, _ = fmt.Fprint(w, tt.body)
				})
				_, err := c.Execute(t.Context(), plan, call)
				if got := connector.Classify(err); got != want {
					t.Errorf("%d: got %s (%v), want %s", status, got, err, want)
				}
			}
		})
	}
}

// TestScriptedFaults: the simulator's own faults, each with its one right class, its effects, and what a look-up then says.
func TestScriptedFaults(t *testing.T) {
	t.Parallel()
	unknown, applied := connector.ClassUnknown, connector.ClassApplied
	for name, tt := range map[string]struct {
		step    target.Step
		keys    bool
		class   connector.Class
		effects int
	}{
		"dropped before":                 {target.Step{Action: target.DropBefore}, true, unknown, 0},
		"dropped after":                  {target.Step{Action: target.DropAfter}, true, unknown, 1},
		"truncated":                      {target.Step{Action: target.TruncateBody}, true, unknown, 1},
		"201 before":                     {target.Step{Action: target.StatusBefore, Status: 201}, true, unknown, 0},
		"202 after":                      {target.Step{Action: target.StatusAfter, Status: 202}, true, unknown, 1},
		"409 before":                     {target.Step{Action: target.StatusBefore, Status: 409}, true, unknown, 0},
		"429 before":                     {target.Step{Action: target.StatusBefore, Status: 429}, true, unknown, 0},
		"403 after":                      {target.Step{Action: target.StatusAfter, Status: 403}, true, unknown, 1},
		"404 after":                      {target.Step{Action: target.StatusAfter, Status: 404}, true, unknown, 1},
		"412 after":                      {target.Step{Action: target.StatusAfter, Status: 412}, true, unknown, 1},
		"500 after":                      {target.Step{Action: target.StatusAfter, Status: 500}, true, unknown, 1},
		"503 before":                     {target.Step{Action: target.StatusBefore, Status: 503}, true, unknown, 0},
		"twice, keys honoured":           {target.Step{Action: target.DuplicateDelivery, ReplyLast: true}, true, applied, 1},
		"twice, keys not honoured":       {target.Step{Action: target.DuplicateDelivery}, false, applied, 1},
		"twice, and the second answered": {target.Step{Action: target.DuplicateDelivery, ReplyLast: true}, false, applied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, server := startDeploys(t, tt.keys)
			c := connect(t, rollback.Config{BaseURL: server.URL, HonoursKeys: tt.keys})
			plan, _ := prepare(t, c, with(nil))
			if err := d.AddFault(target.Once(target.OpChange, "", tt.step)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Execute(t.Context(), plan, call)
			if got := connector.Classify(err); got != tt.class {
				t.Errorf("got %s (%v), want %s", got, err, tt.class)
			}
			if got := d.CountersFor(call.Key).Effects; got != tt.effects {
				t.Errorf("got %d effects, want %d", got, tt.effects)
			}
			want := connector.EffectAbsent
			if tt.effects > 0 {
				want = connector.EffectFound
			}
			if got := lookup(t, c, plan); got.Found != want {
				t.Errorf("the look-up says %s, want %s", got.Found, want)
			}
		})
	}
}

func lookup(t *testing.T, c *rollback.Connector, plan connector.Plan) connector.Finding {
	t.Helper()
	finding, err := c.Lookup(t.Context(), plan, call)
	if err != nil {
		t.Fatalf("Lookup: %v", err)
	}
	return finding
}

// TestSecondDeliveryRefused: without a history the platform's "another is active" is believed only if what is active is not
// the very build that was sent.
func TestSecondDeliveryRefused(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, false)
	c := connect(t, rollback.Config{BaseURL: server.URL, NoLookup: true})
	plan, _ := prepare(t, c, with(nil))
	twice := target.Step{Action: target.DuplicateDelivery, ReplyLast: true}
	if err := d.AddFault(target.Once(target.OpChange, "", twice)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Execute(t.Context(), plan, call)
	if got := connector.Classify(err); got != connector.ClassUnknown || d.CountersFor(call.Key).Effects != 1 {
		t.Errorf("got %s (%v), want unknown", got, err)
	}
	elsewhere, _ := prepare(t, c, with(connector.Input{
		"to_deployment_id": target.CheckoutAPIStable, "expect_current_deployment_id": target.CheckoutAPIPrevious,
	}))
	deploy(t, d, target.NewDeployment{})
	if _, err := c.Execute(t.Context(), elsewhere, connector.Call{Key: "key-2"}); connector.Classify(err) != connector.ClassDrifted {
		t.Errorf("someone else deployed: got %v, want drifted", err)
	}
}

func TestLookupShowsTheOperatorWhatIsThere(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	if _, err := c.Execute(t.Context(), plan, call); err != nil {
		t.Fatal(err)
	}
	found := lookup(t, c, plan)
	if found.Found != connector.EffectFound || found.Evidence["deployment_id"] != "dep-010001" || found.Evidence["from"] != "dep-000106" ||
		found.Evidence["on_behalf_of"] != target.UserMori {
		t.Errorf("got %+v, want found with its evidence", found)
	}
	for name, step := range map[string]target.Step{
		"hidden with 501": {Action: target.HideLookup}, "hidden with 404": {Action: target.HideLookup, Status: 404},
		"unavailable": {Action: target.LookupUnavailable}, "late": {Action: target.StaleRead}, "cut": {Action: target.TruncateBody},
	} {
		if err := d.AddFault(target.Once(target.OpLookup, "", step)); err != nil {
			t.Fatal(err)
		}
		got := lookup(t, c, plan)
		if got.Found != connector.EffectUnsure || !got.Now[rollback.FieldDeployment].Equal(connector.Text("dep-000105")) {
			t.Errorf("%s: got %s with %v now, want unsure with dep-000105", name, got.Found, got.Now)
		}
	}
}

// TestTwoEffectsAreSaid: a platform that ignores keys and preconditions may do it twice. That is never hidden.
func TestTwoEffectsAreSaid(t *testing.T) {
	t.Parallel()
	d, server := startDeploys(t, false)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+plan.Request.Path, strings.NewReader(string(plan.Request.Body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Idempotency-Key": {call.Key}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		deploy(t, d, target.NewDeployment{})
	}
	if got := lookup(t, c, plan); got.Found != connector.EffectFound || got.Evidence["effects"] != int64(2) {
		t.Errorf("got %s with %v, want found with two effects", got.Found, got.Evidence)
	}
}

// TestSomethingElseUnderOurKey settles nothing.
func TestSomethingElseUnderOurKey(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, false)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	other, _ := prepare(t, c, with(connector.Input{"to_deployment_id": target.CheckoutAPIStable}))
	if _, err := c.Execute(t.Context(), other, call); err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, c, plan); got.Found != connector.EffectUnsure {
		t.Errorf("got %s, want unsure", got.Found)
	}
}

// TestOurKeyElsewhere settles nothing either: a history that has our key in another environment is not to be trusted.
func TestOurKeyElsewhere(t *testing.T) {
	t.Parallel()
	d, _ := startDeploys(t, true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/rollbacks" {
			d.ServeHTTP(w, r)
			return
		}
		recorder := httptest.NewRecorder()
		d.ServeHTTP(recorder, r)
		_, _ = fmt.Fprint(w, strings.Replace(recorder.Body.String(), `"production"`, `"staging"`, 1))
	}))
	t.Cleanup(server.Close)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	if _, err := c.Execute(t.Context(), plan, call); err != nil {
		t.Fatal(err)
	}
	if got := lookup(t, c, plan); got.Found != connector.EffectUnsure {
		t.Errorf("got %s, want unsure", got.Found)
	}
}

// TestAbsentIsDoubted: an empty history beside an environment that has moved to our build may be late.
func TestAbsentIsDoubted(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]connector.Found{target.CheckoutAPIPrevious: connector.EffectUnsure, target.CheckoutAPIStable: connector.EffectAbsent} {
		_, server := startDeploys(t, true)
		c := connect(t, rollback.Config{BaseURL: server.URL})
		plan, _ := prepare(t, c, with(nil))
		others, _ := prepare(t, c, with(connector.Input{"to_deployment_id": to}))
		if _, err := c.Execute(t.Context(), others, connector.Call{Key: "someone-elses"}); err != nil {
			t.Fatal(err)
		}
		if got := lookup(t, c, plan).Found; got != want {
			t.Errorf("someone else went to %s: got %s, want %s", to, got, want)
		}
	}
}

func TestOnlyOurPlansAreReversed(t *testing.T) {
	t.Parallel()
	_, server := startDeploys(t, true)
	c := connect(t, rollback.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	for name, spoil := range map[string]func(*connector.Plan){
		"another system": func(p *connector.Plan) { p.Target.System = "x" },
		"no changes":     func(p *connector.Plan) { p.Changes = nil },
		"another field":  func(p *connector.Plan) { p.Changes = p.Changes[1:] },
		"not known":      func(p *connector.Plan) { p.Changes = []connector.Change{{Field: rollback.FieldDeployment}} },
	} {
		spoilt := plan
		spoil(&spoilt)
		if got, err := c.Reverse(rollback.ActionName, spoilt); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got, err := c.Reverse("budget_change", plan); err == nil {
		t.Errorf("another action: got %v", got)
	}
}
