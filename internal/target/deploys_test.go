package target_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/target"
)

// deploySim is a deployment platform behind a real server.
type deploySim struct {
	*target.Deploys
	caller
}

func startDeploys(t *testing.T, change ...func(*target.DeploysConfig)) deploySim {
	t.Helper()
	cfg := target.DeploysConfig{PlatformConfig: target.PlatformConfig{Token: token}, Seed: 7}
	for _, f := range change {
		f(&cfg)
	}
	d := target.NewDeploys(cfg)
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = d.Close() }) // first, so that the server does not wait for held requests
	return deploySim{d, callerOf(server.URL)}
}

const (
	apiProduction = "/v1/services/checkout-api/environments/production"
	apiResource   = "checkout-api/production"
)

// rollBack sends a rollback of checkout-api in production with a request key.
func (s deploySim) rollBack(to, key string, headers ...string) got {
	if key != "" {
		headers = append(headers, "Idempotency-Key", key)
	}
	return s.send("POST", apiProduction+"/rollback", `{"to_deployment_id":"`+to+`"}`, headers...)
}

func (s deploySim) wantActive(t *testing.T, id, version string) {
	t.Helper()
	got, _ := s.Active(target.ServiceCheckoutAPI, target.EnvProduction)
	if got.ID != id || got.Version != version {
		t.Errorf("active: got %s (%s), want %s (%s)", got.ID, got.Version, id, version)
	}
}

func (s deploySim) wantTally(t *testing.T, key string, received, effects int) {
	t.Helper()
	want := target.Tally{Received: received, Effects: effects}
	if tally := s.CountersFor(key); tally != want {
		t.Errorf("tally of %q: got %+v, want %+v", key, tally, want)
	}
}

func (s deploySim) script(t *testing.T, faults ...target.Fault) {
	t.Helper()
	if err := s.AddFault(faults...); err != nil {
		t.Fatal(err)
	}
}

type deploymentPage struct {
	Deployments []target.Deployment `json:"deployments"`
	Total       int                 `json:"total"`
	NextCursor  string              `json:"next_cursor"`
}

func TestOneSeedOneDeploymentPlatform(t *testing.T) {
	t.Parallel()
	play := func(seed int64) []string {
		s := startDeploys(t, func(cfg *target.DeploysConfig) { cfg.Seed, cfg.HonourKeys = seed, true })
		return []string{
			s.get("/v1/deployments?limit=100").body,
			s.rollBack(target.CheckoutAPIPrevious, "k", "X-On-Behalf-Of", target.UserMori).body,
			s.get("/v1/deployments?limit=100").body,
			s.get("/v1/log").body,
		}
	}
	if diff := cmp.Diff(play(1), play(1)); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
	if play(1)[0] == play(2)[0] {
		t.Error("two seeds gave the same platform")
	}
}

// TestFixedDeployments: what the constants promise holds under every seed.
func TestFixedDeployments(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		target.CheckoutAPIOldest:                    "checkout-api production v2026.10.1 superseded false",
		target.CheckoutAPIMigration:                 "checkout-api production v2026.10.2 superseded true",
		target.CheckoutAPIStable:                    "checkout-api production v2026.10.3 superseded false",
		target.CheckoutAPIFailed:                    "checkout-api production v2026.11.1 failed false",
		target.CheckoutAPIPrevious:                  "checkout-api production v2026.11.2 superseded false",
		target.CheckoutAPICurrent:                   "checkout-api production v2026.11.3 active false",
		target.CheckoutAPIStagingOldest:             "checkout-api staging v2026.10.1 superseded false",
		target.CheckoutAPIStagingStable:             "checkout-api staging v2026.10.3 superseded false",
		target.CheckoutAPIStagingFailed:             "checkout-api staging v2026.11.1 failed false",
		target.CheckoutAPIStagingPrevious:           "checkout-api staging v2026.11.2 superseded false",
		target.CheckoutAPIStagingCurrent:            "checkout-api staging v2026.11.3 active false",
		target.CheckoutWebPrevious:                  "checkout-web production v2026.11.2 superseded false",
		target.CheckoutWebCurrent:                   "checkout-web production v2026.11.3 active false",
		target.LedgerProduction(50):                 "ledger production v2026.10.10 superseded true",
		target.LedgerProduction(35):                 "ledger production v2026.9.5 failed false",
		target.LedgerProduction(target.LedgerCount): "ledger production v2026.11.9 active false",
		target.PlainDeployment(0, 3):                "billing production v2026.11.3 superseded false",
		target.PlainDeployment(0, 4):                "billing production v2026.11.4 active false",
		target.PlainStagingDeployment(5, 4):         "shipping staging v2026.11.4 active false",
	}
	for seed := range int64(5) {
		s := startDeploys(t, func(cfg *target.DeploysConfig) { cfg.Seed = seed })
		got := map[string]string{}
		for id := range want {
			d, _ := s.Deployment(id)
			got[id] = fmt.Sprint(d.Service, " ", d.Environment, " ", d.Version, " ", d.Status, " ", d.ContainsMigration)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestHistoriesAreWellFormed: one active deployment in each environment, the newest; times ascend; IDs are unique.
func TestHistoriesAreWellFormed(t *testing.T) {
	t.Parallel()
	for seed := range int64(5) {
		s := startDeploys(t, func(cfg *target.DeploysConfig) { cfg.Seed = seed })
		newest, count, seen := map[string]target.Deployment{}, map[string]int{}, map[string]bool{}
		services := map[string]bool{}
		for _, d := range s.Deployments() {
			at := d.Service + "/" + d.Environment
			later, known := newest[at]
			if known && !d.Time.Before(later.Time) {
				t.Errorf("seed %d: %s is not before %s", seed, d.ID, later.ID)
			}
			if (d.Status == target.StatusActive) == known {
				t.Errorf("seed %d: %s is %s, and the newest of %s is %s", seed, d.ID, d.Status, at, later.ID)
			}
			if seen[d.ID] || len(d.Commit) != 40 || !strings.HasSuffix(d.Author, "@platform.example") || d.Source != target.FromPipeline {
				t.Errorf("seed %d: strange deployment %+v", seed, d)
			}
			newest[at], seen[d.ID], services[d.Service] = d, true, true
			count[at]++
		}
		if len(services) != 12 || len(count) != 24 || count["ledger/production"] != target.LedgerCount {
			t.Errorf("seed %d: got %d services in %d environments", seed, len(services), len(count))
		}
	}
}

func TestDeploymentSearch(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	ids := func(q string) []string {
		t.Helper()
		p := decode[deploymentPage](t, s.get("/v1/deployments"+q))
		out := []string{}
		for _, d := range p.Deployments {
			out = append(out, d.ID)
		}
		if p.NextCursor == "" && p.Total != len(out) {
			t.Errorf("%s: got total %d of %d", q, p.Total, len(out))
		}
		return out
	}
	production := []string{"service", "checkout-api", "environment", "production"}
	for name, tc := range map[string]struct {
		query []string
		want  []string
	}{
		"the newest first": {production, []string{"dep-000106", "dep-000105", "dep-000104", "dep-000103", "dep-000102", "dep-000101"}},
		"one status":       {append(slices.Clone(production), "status", "failed"), []string{target.CheckoutAPIFailed}},
		"both environments": {[]string{"service", "checkout-api", "status", "active"},
			[]string{target.CheckoutAPICurrent, target.CheckoutAPIStagingCurrent}},
		"no such service":     {[]string{"service", "checkout"}, []string{}},
		"for a reader":        {append(slices.Clone(production), "status", "active", "user", target.UserPlatformGuest), []string{target.CheckoutAPICurrent}},
		"for an unknown user": {append(slices.Clone(production), "user", "nobody@platform.example"), []string{}},
	} {
		if diff := cmp.Diff(tc.want, ids(query(tc.query...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, bad := range []string{
		query("status", "live"), query("limit", "0"), query("limit", "101"), query("cursor", "AAAA"), query("name", "x"), "?service=a&service=b",
		query("service", "ledger", "cursor", decode[deploymentPage](t, s.get("/v1/deployments?limit=1")).NextCursor),
	} {
		s.get("/v1/deployments"+bad).want(t, 400, "invalid_parameter")
	}
}

// TestDeploymentPages: all pages together are the whole list once, even if somebody deploys in between.
func TestDeploymentPages(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	want := s.Deployments()
	var all []target.Deployment
	for cursor := ""; ; {
		pairs := []string{"limit", "50"}
		if cursor != "" {
			pairs = append(pairs, "cursor", cursor)
		}
		p := decode[deploymentPage](t, s.get("/v1/deployments"+query(pairs...)))
		all = append(all, p.Deployments...)
		if len(all) == 50 {
			if _, err := s.Deploy(target.NewDeployment{Service: "new", Environment: target.EnvStaging, Version: "v1", Author: "abe@platform.example"}); err != nil {
				t.Fatal(err)
			}
		}
		if cursor = p.NextCursor; cursor == "" || len(all) > len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	s.get("/v1/services").want(t, 200, `{"services":[{"name":"billing","environments":["production","staging"]},{"name":"catalog"`)
	s.get("/v1/services"+query("user", "nobody@platform.example")).want(t, 200, `{"services":[]}`)
	s.SetPermission(target.Permission{User: target.UserOno, Verb: "read", Resource: "billing/production"})
	s.get("/v1/services"+query("user", target.UserOno)).want(t, 200, `{"name":"billing","environments":["staging"]}`)
	s.get("/v1/services?limit=1").want(t, 400, "invalid_parameter")
}

func TestRollback(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	read := s.get(apiProduction)
	read.want(t, 200, `"etag":"\"dep-000106\""`)
	tag := read.header.Get("ETag")
	if tag != `"dep-000106"` {
		t.Errorf("ETag: got %s", tag)
	}
	done := s.rollBack(target.CheckoutAPIPrevious, "k", "If-Match", tag,
		"X-On-Behalf-Of", target.UserMori, "X-Approved-By", target.UserHayashi, "X-Agent", "claude")
	done.want(t, 201, `"change_id":"chg-000001"`)
	if got := done.header.Get("ETag"); got != `"dep-010001"` {
		t.Errorf("ETag of the new deployment: got %s", got)
	}
	was, _ := s.Deployment(target.CheckoutAPIPrevious)
	now, _ := s.Active(target.ServiceCheckoutAPI, target.EnvProduction)
	want := target.Deployment{
		ID: "dep-010001", Service: "checkout-api", Environment: "production", Version: was.Version, Commit: was.Commit,
		Author: target.UserMori, Time: now.Time, Status: target.StatusActive, Source: target.FromRollback, Activates: was.ID,
	}
	if diff := cmp.Diff(want, now); diff != "" || now.Time.Before(was.Time) {
		t.Errorf("the new deployment, at %v (-want +got):\n%s", now.Time, diff)
	}
	if got, _ := s.Deployment(target.CheckoutAPICurrent); got.Status != target.StatusRolledBack {
		t.Errorf("what was active: got %s", got.Status)
	}
	entry := target.Rollback{
		ChangeID: "chg-000001", Service: "checkout-api", Environment: "production", FromDeploymentID: "dep-000106",
		ToDeploymentID: "dep-000105", DeploymentID: "dep-010001", Key: "k", OnBehalfOf: target.UserMori,
		ApprovedBy: target.UserHayashi, Agent: "claude", Source: target.SourceAPI,
	}
	looked := decode[struct{ Rollbacks []target.Rollback }](t, s.get("/v1/rollbacks?key=k")).Rollbacks
	logged := decode[struct{ Entries []target.Rollback }](t, s.get("/v1/log?service=checkout-api&environment=production")).Entries
	if len(looked) != 1 || len(logged) != 1 {
		t.Fatalf("got %d found and %d logged, want 1 each", len(looked), len(logged))
	}
	for _, got := range []target.Rollback{looked[0], logged[0]} {
		entry.Time = got.Time
		if diff := cmp.Diff(entry, got); diff != "" || got.Time.IsZero() {
			t.Errorf("at %v (-want +got):\n%s", got.Time, diff)
		}
	}
	s.get("/v1/rollbacks"+query("key", "k", "service", "checkout-api", "environment", "staging")).want(t, 200, `{"rollbacks":[]}`)
	s.get("/v1/log"+query("key", "other")).want(t, 200, `{"entries":[]}`)
	s.rollBack(target.CheckoutAPIStable, "late", "If-Match", tag).want(t, 412, "etag_mismatch")
	s.wantTally(t, "k", 1, 1)
	s.wantTally(t, "late", 1, 0)
}

// TestRollForward: a rollback is undone by another that activates the later build again, and the ID of a rollback stands
// for what it activated.
func TestRollForward(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	s.rollBack(target.CheckoutAPIStable, "back").want(t, 201, `"activates":"dep-000103"`)
	s.rollBack("dep-010001", "same").want(t, 422, "already_current")
	s.rollBack(target.CheckoutAPIStable, "same").want(t, 422, "already_current")
	s.rollBack(target.CheckoutAPICurrent, "forward").want(t, 201, `"activates":"dep-000106"`)
	s.wantActive(t, "dep-010002", "v2026.11.3")
	s.rollBack("dep-010001", "back again").want(t, 400, "invalid_key")
	s.rollBack("dep-010001", "back-again").want(t, 201, `"activates":"dep-000103"`)
	s.wantActive(t, "dep-010003", "v2026.10.3")
}

func TestRefusedRollbacksHaveNoEffect(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	good := `{"to_deployment_id":"dep-000105"}`
	for name, tc := range map[string]struct {
		path, body, code string
		status           int
	}{
		"unknown service":       {"/v1/services/checkout/environments/production/rollback", good, "service_not_found", 404},
		"unknown environment":   {"/v1/services/checkout-api/environments/live/rollback", good, "environment_not_found", 404},
		"unknown deployment":    {apiProduction + "/rollback", `{"to_deployment_id":"dep-999999"}`, "unknown_deployment", 422},
		"another service's":     {apiProduction + "/rollback", `{"to_deployment_id":"` + target.CheckoutWebPrevious + `"}`, "unknown_deployment", 422},
		"another environment's": {apiProduction + "/rollback", `{"to_deployment_id":"` + target.CheckoutAPIStagingPrevious + `"}`, "unknown_deployment", 422},
		"a failed deployment":   {apiProduction + "/rollback", `{"to_deployment_id":"` + target.CheckoutAPIFailed + `"}`, "deployment_failed", 422},
		"the active deployment": {apiProduction + "/rollback", `{"to_deployment_id":"` + target.CheckoutAPICurrent + `"}`, "already_current", 422},
		"a number":              {apiProduction + "/rollback", `{"to_deployment_id":105}`, "invalid_body", 400},
		"nothing":               {apiProduction + "/rollback", `{}`, "invalid_body", 400},
		"another member":        {apiProduction + "/rollback", `{"to_deployment_id":"dep-000105","force":"1"}`, "invalid_body", 400},
		"twice":                 {apiProduction + "/rollback", `{"to_deployment_id":"dep-000105","to_deployment_id":"dep-000103"}`, "invalid_body", 400},
		"huge":                  {apiProduction + "/rollback", `{"to_deployment_id":"` + strings.Repeat("1", 1<<17) + `"}`, "too_large", 413},
	} {
		reply := s.send("POST", tc.path, tc.body)
		if reply.err != nil || reply.status != tc.status || !strings.Contains(reply.body, `{"error":{"code":"`+tc.code+`","message":"`) {
			t.Errorf("%s: got %d %s (error %v), want %d %s", name, reply.status, reply.body, reply.err, tc.status, tc.code)
		}
	}
	s.send("POST", apiProduction+"/rollback", "").want(t, 415, "unsupported_media_type")
	if n := s.Counters().Total; n.Effects != 0 || n.Received != 13 {
		t.Errorf("got %+v, want 13 received and no effect", n)
	}
	s.wantActive(t, target.CheckoutAPICurrent, "v2026.11.3")
	s.get("/v1/services/checkout/environments/production").want(t, 404, "service_not_found")
	s.get("/v1/services/checkout-api/environments/live").want(t, 404, "environment_not_found")
	s.get("/v1/deployments/dep-999999").want(t, 404, "deployment_not_found")
	s.get("/v1/deployments/"+target.CheckoutAPIFailed).want(t, 200, `"status":"failed"`)
	s.send("GET", "/v1/services", "", "Authorization", "Bearer wrong").want(t, 401, "unauthenticated")
}

func TestDeployPermissions(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	ask := func(user, environment, verb string) string {
		t.Helper()
		r := s.get("/v1/permissions" + query("user", user, "service", "checkout-api", "environment", environment, "verb", verb))
		a := decode[struct {
			Allowed bool
			Reason  string
		}](t, r)
		return fmt.Sprint(a.Allowed, " ", a.Reason)
	}
	for question, want := range map[[3]string]string{
		{target.UserMori, "production", "rollback"}:              "true granted",
		{target.UserHayashi, "production", "rollback"}:           "true granted",
		{target.UserOno, "staging", "rollback"}:                  "true granted",
		{target.UserOno, "production", "rollback"}:               "false not_granted",
		{target.UserOno, "production", "read"}:                   "true granted",
		{target.UserPlatformGuest, "staging", "rollback"}:        "false not_granted",
		{target.UserPlatformGuest, "production", "read"}:         "true granted",
		{target.UserSato, "staging", "read"}:                     "false unknown_user",
		{target.UserMori, "live", "rollback"}:                    "false unknown_environment",
		{"MORI@platform.example", target.EnvStaging, "rollback"}: "false unknown_user",
	} {
		if got := ask(question[0], question[1], question[2]); got != want {
			t.Errorf("%v: got %q, want %q", question, got, want)
		}
	}
	s.SetPermission(target.Permission{User: target.UserMori, Verb: "rollback", Resource: apiResource})
	if got, want := ask(target.UserMori, "production", "rollback"), "false withdrawn"; got != want {
		t.Errorf("after it was withdrawn: got %q, want %q", got, want)
	}
	if got, want := ask(target.UserMori, "staging", "rollback"), "true granted"; got != want {
		t.Errorf("elsewhere: got %q, want %q", got, want)
	}
	for _, bad := range []string{
		"", query("user", "u", "service", "checkout-api", "verb", "read"), query("service", "checkout-api", "environment", "staging", "verb", "read"),
		query("user", "u", "service", "checkout-api", "environment", "staging", "verb", "write"),
	} {
		s.get("/v1/permissions"+bad).want(t, 400, "invalid_parameter")
	}
}

// TestDeployFaults: the shared machinery, by this platform's resources and operations.
func TestDeployFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		step    target.Step
		keys    bool
		status  int // 0: no reply
		body    string
		effects int
	}{
		"drop before":             {target.Step{Action: target.DropBefore}, false, 0, "", 0},
		"drop after":              {target.Step{Action: target.DropAfter}, false, 0, "", 1},
		"503 after":               {target.Step{Action: target.StatusAfter, Status: 503}, false, 503, "service_unavailable", 1},
		"twice, no keys":          {target.Step{Action: target.DuplicateDelivery, ReplyLast: true}, false, 412, "etag_mismatch", 1},
		"twice, with keys":        {target.Step{Action: target.DuplicateDelivery, ReplyLast: true}, true, 201, "dep-010001", 1},
		"a gateway's 412":         {target.Step{Action: target.StatusBefore, Status: 412}, false, 412, "precondition_failed", 0},
		"slow, then as it should": {target.Step{Action: target.DelayBefore, DelayMS: 1}, false, 201, "dep-010001", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startDeploys(t, func(cfg *target.DeploysConfig) { cfg.HonourKeys = tc.keys })
			s.script(t, target.Once(target.OpChange, apiResource, tc.step))
			reply := s.rollBack(target.CheckoutAPIPrevious, "k", "If-Match", `"dep-000106"`)
			if (reply.err != nil) != (tc.status == 0) || reply.status != tc.status || !strings.Contains(reply.body, tc.body) {
				t.Errorf("got %d %q (error %v), want %d with %q", reply.status, reply.body, reply.err, tc.status, tc.body)
			}
			if got := s.CountersFor("k").Effects; got != tc.effects {
				t.Errorf("got %d effects, want %d", got, tc.effects)
			}
			if got := s.Counters().ByResource[apiResource].Effects; got != tc.effects {
				t.Errorf("got %d effects for the environment, want %d", got, tc.effects)
			}
		})
	}
}

func TestDeployKeys(t *testing.T) {
	t.Parallel()
	s := startDeploys(t, func(cfg *target.DeploysConfig) { cfg.HonourKeys = true })
	s.script(t, target.Once(target.OpChange, apiResource, target.Step{Action: target.HoldBefore}))
	reply := inBackground(func() got { return s.rollBack(target.CheckoutAPIPrevious, "k") })
	if err := s.Wait(t.Context(), target.Event{Stage: target.StageHeld, Match: target.Match{Key: "k"}}, 1); err != nil {
		t.Fatal(err)
	}
	s.rollBack(target.CheckoutAPIPrevious, "k").want(t, 409, "in_progress")
	s.rollBack(target.CheckoutAPIStable, "k").want(t, 422, "key_reused")
	s.Release("")
	first := <-reply
	first.want(t, 201, "dep-010001")
	again := s.rollBack(target.CheckoutAPIPrevious, "k")
	again.want(t, 201, first.body)
	if again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("the repeated answer does not say that it is one")
	}
	s.wantTally(t, "k", 4, 1)
}

func TestStaleDeployReads(t *testing.T) {
	t.Parallel()
	s := startDeploys(t)
	s.rollBack(target.CheckoutAPIStable, "earlier").want(t, 201, "dep-010001")
	s.rollBack(target.CheckoutAPIPrevious, "k", "If-Match", "*").want(t, 201, "dep-010002")
	search := "/v1/deployments" + query("service", "checkout-api", "environment", "production", "limit", "1")
	for _, tc := range []struct {
		op                 target.Op
		path, stale, fresh string
	}{
		{target.OpRead, apiProduction, `"etag":"\"dep-010001\""`, `"etag":"\"dep-010002\""`},
		{target.OpRead, "/v1/deployments/dep-010001", `"status":"active"`, `"status":"rolled_back"`},
		{target.OpFind, search, `"deployments":[{"id":"dep-010001"`, `"deployments":[{"id":"dep-010002"`},
		{target.OpLookup, "/v1/rollbacks?key=k", `{"rollbacks":[]}`, "dep-010002"},
	} {
		s.script(t, target.Once(tc.op, apiResource, target.Step{Action: target.StaleRead}))
		s.get(tc.path).want(t, 200, tc.stale)
		if fresh := s.get(tc.path); !strings.Contains(fresh.body, tc.fresh) {
			t.Errorf("%s: got %s, want %s in it", tc.path, fresh.body, tc.fresh)
		}
	}
	s.script(t, target.Once(target.OpLookup, apiResource, target.Step{Action: target.HideLookup}))
	s.get("/v1/rollbacks?key=k").want(t, 501, "lookup_unsupported")
	s.get("/v1/rollbacks").want(t, 400, "invalid_parameter")
}

func TestSomeoneElseDeploys(t *testing.T) {
	t.Parallel()
	s, ctx := startDeploys(t), t.Context()
	c := target.Control{BaseURL: s.url, Token: token, Client: s.client}
	ours := target.NewDeployment{Service: "checkout-api", Environment: "production", Version: "v2026.12.1", Author: "abe@platform.example", ContainsMigration: true}
	made, err := c.Deploy(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := c.ActiveDeployment(ctx, "checkout-api", "production"); err != nil || now.ID != made.ID || made.Source != target.FromConsole || !made.ContainsMigration {
		t.Errorf("active: got %+v (%v), want %+v", now, err, made)
	}
	if was, _ := s.Deployment(target.CheckoutAPICurrent); was.Status != target.StatusSuperseded {
		t.Errorf("what was active is %s", was.Status)
	}
	s.rollBack(target.CheckoutAPIPrevious, "k", "If-Match", `"dep-000106"`).want(t, 412, "etag_mismatch")
	ours.Failed = true
	if failed, err := c.Deploy(ctx, ours); err != nil || failed.Status != target.StatusFailed {
		t.Errorf("a failed deployment: got %+v, %v", failed, err)
	}
	s.wantActive(t, made.ID, "v2026.12.1")
	if log, err := c.Rollbacks(ctx, ""); err != nil || len(log) != 1 || log[0].Source != target.SourceConsole || log[0].DeploymentID != made.ID {
		t.Errorf("log: got %+v, %v", log, err)
	}
	if err := c.SetDeploymentStatus(ctx, target.CheckoutAPIPrevious, target.StatusFailed); err != nil {
		t.Fatal(err)
	}
	s.rollBack(target.CheckoutAPIPrevious, "k").want(t, 422, "deployment_failed")
	if n := s.Counters().Total.Effects; n != 0 {
		t.Errorf("got %d effects counted for the console, want 0", n)
	}
	for name, err := range map[string]error{
		"no version":                second(s.Deploy(target.NewDeployment{Service: "a", Environment: "b", Author: "c"})),
		"no service":                second(s.Deploy(target.NewDeployment{Environment: "b", Author: "c", Version: "v"})),
		"a bad commit":              second(s.Deploy(target.NewDeployment{Service: "a", Environment: "b", Author: "c", Version: "v", Commit: "x"})),
		"a failed first deployment": second(s.Deploy(target.NewDeployment{Service: "a", Environment: "b", Author: "c", Version: "v", Failed: true})),
		"the active one failed":     second(s.SetDeploymentStatus(made.ID, target.StatusFailed)),
		"an unknown one failed":     second(s.SetDeploymentStatus("dep-999999", target.StatusFailed)),
		"made active by hand":       second(s.SetDeploymentStatus(target.CheckoutAPIStable, target.StatusActive)),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if err := c.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	s.wantActive(t, target.CheckoutAPICurrent, "v2026.11.3")
	if again, err := s.Deploy(ours); err != nil || again.ID != "dep-010001" {
		t.Errorf("after a reset: got %s (%v), want dep-010001", again.ID, err)
	}
}

// TestTimesNeverGoBack: a clock that is behind the seeded history does not put a deployment before the one it follows.
func TestTimesNeverGoBack(t *testing.T) {
	t.Parallel()
	s := startDeploys(t, func(cfg *target.DeploysConfig) {
		cfg.Clock = func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }
	})
	for i, to := range []string{target.CheckoutAPIPrevious, target.CheckoutAPICurrent} {
		before, _ := s.Active(target.ServiceCheckoutAPI, target.EnvProduction)
		s.rollBack(to, fmt.Sprint("k", i)).want(t, 201, "")
		if now, _ := s.Active(target.ServiceCheckoutAPI, target.EnvProduction); !now.Time.After(before.Time) {
			t.Errorf("%s at %v follows %s at %v", now.ID, now.Time, before.ID, before.Time)
		}
	}
}
