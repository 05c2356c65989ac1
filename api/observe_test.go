package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	for _, a := range []ask{
		{method: "GET", path: of(id, ""), as: "agent"}, {method: "GET", path: of(id, "")}, {method: "GET", path: "/v1/nothing", as: "agent"},
		{method: "PUT", path: of(id, ""), as: "agent"}, {method: "GET", path: "/healthz"}, {method: "POST", path: of(id, "/apply"), as: "agent", body: "[]"},
	} {
		a.header = http.Header{"Origin": {"https://evil.example"}}
		got := r.do(a)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if h := got.header.Get(name); h != want {
				t.Errorf("%s %s: got %s %q, want %q", a.method, a.path, name, h, want)
			}
		}
		if !strings.HasPrefix(got.header.Get("X-Request-Id"), "req-") {
			t.Errorf("%s %s: got no request ID", a.method, a.path)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for sent, kept := range map[string]bool{
		"abc-1_2.3": true, long(64): true, long(65): false, "a b": false, `"}`: false, "名前": false, "": false,
	} {
		got := r.do(ask{method: "GET", path: "/healthz", header: http.Header{"X-Request-Id": {sent}}}).header.Get("X-Request-Id")
		if (got == sent) != kept || got == "" {
			t.Errorf("sent %q: got %q back, kept should be %t", sent, got, kept)
		}
	}
}

func TestTheRoutersRefusalsAreProblems(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/previews/", "/v1/previews/x/y", "/v2/actions", "/v1/previews//why"} {
		got := r.get("agent", path)
		got.want(t, http.StatusNotFound, "not_found")
	}
	got := r.do(ask{method: "DELETE", path: "/v1/previews", as: "agent", header: english})
	if got.status != http.StatusMethodNotAllowed || !strings.Contains(got.header.Get("Allow"), "GET") || !strings.Contains(got.text("detail"), "GET") {
		t.Errorf("got %d, Allow %q, %s, want 405 that names GET", got.status, got.header.Get("Allow"), got.raw)
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct{ as, accept, want string }{
		"the token's locale":  {"agent", "", "ja"},
		"the request's wish":  {"agent", "en-GB, ja;q=0.5", "en"},
		"nobody's":            {"", "", "en"},
		"what is not spoken":  {"kim", "fr", "en"},
		"nobody's, with wish": {"", "ja", "ja"},
	} {
		header := http.Header{}
		if c.accept != "" {
			header.Set("Accept-Language", c.accept)
		}
		got := r.do(ask{method: "GET", path: "/v1/previews/none", as: c.as, header: header})
		english := strings.Contains(got.text("detail"), "the ") || strings.Contains(got.text("detail"), " is ")
		if lang := got.header.Get("Content-Language"); lang != c.want || english != (c.want == "en") {
			t.Errorf("%s: got %s and %q, want %s", name, lang, got.text("detail"), c.want)
		}
	}
}

// logged reads the request lines.
func (r *rig) logged() []map[string]any {
	r.t.Helper()
	var all []map[string]any
	for lines := bufio.NewScanner(strings.NewReader(r.log.String())); lines.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			r.t.Fatalf("a log line is not JSON: %v", err)
		}
		if line["msg"] == "request" {
			all = append(all, line)
		}
	}
	return all
}

func TestOneLogLineForEachRequestWithoutItsContent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secret := object{"campaign_id": target.PlainJPY(0), "new_daily_budget_jpy": 12000, "reason": "a-secret-reason"}
	id := r.prepared(secret)
	r.do(ask{method: "POST", path: of(id, "/apply"), as: "agent", body: `{"x":"a-secret-member"}`})
	r.do(ask{method: "GET", path: "/v1/previews?cursor=a-secret-cursor", as: "agent"})
	r.do(ask{method: "GET", path: "/a-secret-path", as: "agent"})
	want := []struct{ route, id, code string }{
		{"/v1/actions/{action}/previews", id, ""}, {"/v1/previews/{id}/apply", id, "invalid_input"}, {"/v1/previews", "", "invalid_input"}, {"", "", "not_found"},
	}
	lines := r.logged()
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d: %s", len(lines), len(want), r.log)
	}
	for n, line := range lines {
		if line["route"] != want[n].route || line["preview_id"] != want[n].id || line["code"] != want[n].code || line["request_id"] == "" {
			t.Errorf("got %v, want %v", line, want[n])
		}
		if by, _ := line["actor"].(string); want[n].route != "" && !strings.Contains(by, "for:sato@agency.example") {
			t.Errorf("got actor %q, want the agent and its human", by)
		}
	}
	for _, secret := range []string{"a-secret", "Bearer", "eyJ"} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// broken is a service that fails in a way nobody foresaw.
type broken struct {
	api.Changes
	err   error
	panic any
}

func (b broken) Status(context.Context, actor.Actor, preview.ID, time.Duration, bool) (commit.Change, error) {
	if b.panic != nil {
		panic(b.panic)
	}
	return commit.Change{}, b.err
}

func TestNothingOfAnInternalErrorLeaves(t *testing.T) {
	t.Parallel()
	leak := "pq: relation executions, password=hunter2"
	for name, b := range map[string]broken{"error": {err: errors.New(leak)}, "panic": {panic: leak}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, withDeps(func(d *api.Deps) { b.Changes = d.Changes; d.Changes = b }))
			got := r.do(ask{method: "GET", path: of(preview.NewID().String(), ""), as: "agent", header: english})
			got.want(t, http.StatusInternalServerError, "internal")
			if strings.Contains(string(got.raw), "hunter2") || got.text("request_id") == "" || got.text("request_id") != got.header.Get("X-Request-Id") {
				t.Errorf("got %s, want the request ID and nothing of the cause", got.raw)
			}
			if !strings.Contains(r.log.String(), leak) {
				t.Errorf("the log does not hold the cause: %s", r.log)
			}
			r.get("", "/healthz").want(t, http.StatusOK, "")
		})
	}
}

func TestDeadDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	r.get("", "/readyz").want(t, http.StatusOK, "")
	r.store.Close()
	notReady := r.get("", "/readyz")
	notReady.want(t, http.StatusServiceUnavailable, "internal")
	if notReady.at("retryable") != true || notReady.header.Get("Retry-After") == "" {
		t.Errorf("got %s, want to be told to come again", notReady.raw)
	}
	r.get("", "/healthz").want(t, http.StatusOK, "")
	for _, a := range []ask{
		{method: "GET", path: of(id, "")}, {method: "GET", path: of(id, "/why")}, {method: "GET", path: "/v1/previews"},
		{method: "POST", path: of(id, "/apply")}, {method: "POST", path: of(id, "/cancel")}, {method: "POST", path: of(id, "/approval-request")},
		{method: "POST", path: previewsPath, body: raise(1, 12000)},
	} {
		a.as = "agent"
		got := r.do(a)
		got.want(t, http.StatusServiceUnavailable, "internal")
		if got.at("retryable") != true || got.at("next") != "retry_later" {
			t.Errorf("%s %s: got %s, want to be told to come again", a.method, a.path, got.raw)
		}
	}
	if got := r.ads.Counters().Total.Effects; got != 0 {
		t.Errorf("got %d effects, want none", got)
	}
}

// unreachable is a verifier whose issuer is away.
type unreachable struct{}

func (unreachable) Verify(context.Context, string) (actor.Actor, error) {
	f := fault.New(fault.Internal, nil).WithKey("fault.internal.issuer").WithNext(fault.NextRetryLater).Because(auth.ErrIssuerUnreachable)
	f.Retryable = true
	return actor.Actor{}, f
}

func TestUnreachableIssuerMayBeRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDeps(func(d *api.Deps) { d.Verifier = unreachable{} }))
	got := r.get("agent", "/v1/previews")
	got.want(t, http.StatusServiceUnavailable, "internal")
	if got.at("retryable") != true || got.text("next") != "retry_later" {
		t.Errorf("got %s, want retry_later", got.raw)
	}
}

func TestActionsCarryTheirSchemas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.do(ask{method: "GET", path: "/v1/actions", as: "kim", header: english})
	got.want(t, http.StatusOK, "")
	action := got.at("actions").([]any)[0].(map[string]any)
	if action["name"] != "budget_change" || under(action, "input_schema", "additionalProperties") != false || under(action, "clocks", "preview_ttl_s") != 600.0 {
		t.Errorf("got %s, want budget_change with its schema and clocks", got.raw)
	}
	for _, text := range []any{action["title"], action["description"], under(got.at("finds").([]any)[0], "title")} {
		if s := text.(string); strings.HasPrefix(s, "action.") || strings.HasPrefix(s, "find.") {
			t.Errorf("got the key %s, want its text", s)
		}
	}
}

func TestOpenAPIIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.get("", "/openapi.yaml")
	if got.status != http.StatusOK || string(got.raw) != string(api.OpenAPI) || got.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("got %d %s, want the description", got.status, got.header.Get("Content-Type"))
	}
}

func TestDepsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := api.New(api.Deps{}); err == nil {
		t.Error("got nil, want an error that names what is missing")
	}
}

// refusing answers every apply with one fault.
type refusing struct {
	api.Changes
	fault *fault.Fault
}

func (s refusing) Apply(context.Context, actor.Actor, string, preview.ID, time.Duration) (commit.Change, error) {
	return commit.Change{}, s.fault
}

func TestEveryCodeGoesOutAsItsProblem(t *testing.T) {
	t.Parallel()
	var now refusing
	r := newRig(t, withDeps(func(d *api.Deps) { d.Changes = &now }))
	id := preview.NewID().String()
	for code, rule := range fault.Codes() {
		if code == fault.IdempotencyConflict {
			continue // no answer of an apply; shown by the keys' own test
		}
		now.fault = fault.New(code, fault.Args{"seconds": 7, "limit": 1, "scopes": "ads:budget"}).After(7 * time.Second)
		now.fault.Scopes = []string{"ads:budget"}
		got := r.post("agent", of(id, "/apply"), nil)
		want := api.Status(code)
		got.want(t, want, string(code))
		if got.text("type") != "urn:cutonce:error:"+string(code) || got.at("status") != float64(want) || got.text("kind") != string(rule.Kind) ||
			got.text("next") != string(rule.Next) || got.at("retryable") != rule.Retryable || got.text("title") == "" || got.text("detail") != got.text("message") {
			t.Errorf("%s: got %s", code, got.raw)
		}
		if got.header.Get("Retry-After") != "7" || got.at("retry_after_s") != 7.0 {
			t.Errorf("%s: got Retry-After %q, want 7", code, got.header.Get("Retry-After"))
		}
		challenged := code == fault.Unauthenticated || code == fault.InsufficientScope
		if (got.header.Get("WWW-Authenticate") != "") != challenged {
			t.Errorf("%s: got challenge %q", code, got.header.Get("WWW-Authenticate"))
		}
	}
}

// slow answers when the caller has gone.
type slow struct {
	api.Changes
	arrived chan struct{}
}

func (s slow) Status(ctx context.Context, _ actor.Actor, _ preview.ID, _ time.Duration, _ bool) (commit.Change, error) {
	close(s.arrived)
	<-ctx.Done()
	return commit.Change{}, ctx.Err()
}

func TestACallerWhoHangsUpIsNoInternalError(t *testing.T) {
	t.Parallel()
	s := slow{arrived: make(chan struct{})}
	r := newRig(t, withDeps(func(d *api.Deps) { d.Changes = s }))
	ctx, hangUp := context.WithCancel(t.Context())
	go func() { <-s.arrived; hangUp() }()
	req := r.request(ask{method: "GET", path: of(preview.NewID().String(), ""), as: "agent"}).WithContext(ctx)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("got an answer, want none")
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(r.logged()) == 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond) // polling with a deadline
	}
	if lines := r.logged(); len(lines) != 1 || lines[0]["status"] != 499.0 || lines[0]["level"] != "INFO" {
		t.Errorf("got %v, want one line with 499", lines)
	}
}
