package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/target"
)

var english = http.Header{"Accept-Language": {"en"}}

// Every bad input is refused with its code, the place, and what would be right; nothing of it reaches the platform.
func TestBadInputToPrepare(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plain := target.PlainJPY(0)
	budget := func(raw string) string {
		return fmt.Sprintf(`{"campaign_id":%q,"new_daily_budget_jpy":%s,"reason":"a test"}`, plain, raw)
	}
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, c := range map[string]struct {
		body, code, field, says string
	}{
		"relative words":      {budget(`"+20%"`), "invalid_number", "/new_daily_budget_jpy", "absolute"},
		"relative in words":   {budget(`"2倍"`), "invalid_number", "/new_daily_budget_jpy", "absolute"},
		"number in quotes":    {budget(`"12000"`), "invalid_number", "/new_daily_budget_jpy", "without quotes"},
		"zero":                {budget(`0`), "invalid_number", "/new_daily_budget_jpy", "at least 1"},
		"negative":            {budget(`-5`), "invalid_number", "/new_daily_budget_jpy", "at least 1"},
		"out of range":        {budget(`100000001`), "invalid_number", "/new_daily_budget_jpy", "at most 100000000"},
		"half a yen":          {budget(`12000.5`), "", "/new_daily_budget_jpy", ""},
		"beyond 2^53":         {budget(`9007199254740993`), "invalid_number", "/new_daily_budget_jpy", "at most"},
		"beyond any number":   {budget(`1e400`), "invalid_number", "/new_daily_budget_jpy", "exact number"},
		"not a number":        {budget(`NaN`), "invalid_number", "/new_daily_budget_jpy", "exact number"},
		"infinity":            {budget(`-Infinity`), "invalid_number", "/new_daily_budget_jpy", "exact number"},
		"leading zero":        {budget(`012000`), "invalid_number", "/new_daily_budget_jpy", "exact number"},
		"key twice":           {`{"campaign_id":"1","campaign_id":"2","reason":"x"}`, "invalid_input", "/campaign_id", "once"},
		"unknown key":         {`{"campaign_id":"` + plain + `","new_daily_budget_jpy":12000,"reason":"x","approved_by":"kim"}`, "invalid_input", "/approved_by", "remove"},
		"a policy of its own": {`{"campaign_id":"` + plain + `","new_daily_budget_jpy":12000,"reason":"x","policy":"allow"}`, "invalid_input", "/policy", "remove"},
		"other case":          {`{"Campaign_ID":"` + plain + `","new_daily_budget_jpy":12000,"reason":"x"}`, "invalid_input", "/campaign_id", "required"},
		"control character":   {`{"campaign_id":"` + plain + `","new_daily_budget_jpy":12000,"reason":"a\u0000b"}`, "invalid_input", "/reason", "Remove"},
		"bidi override":       {`{"campaign_id":"` + plain + `","new_daily_budget_jpy":12000,"reason":"a\u202eb"}`, "invalid_input", "/reason", "Remove"},
		"ID as a number":      {`{"campaign_id":2002001,"new_daily_budget_jpy":12000,"reason":"x"}`, "invalid_input", "/campaign_id", "string"},
		"no body":             {``, "invalid_input", "/campaign_id", "required"},
		"a list":              {`[]`, "invalid_input", "", "object"},
		"null":                {`null`, "invalid_input", "", "object"},
		"half a document":     {`{"campaign_id":`, "invalid_input", "/campaign_id", "JSON"},
		"two documents":       {budget(`12000`) + `{}`, "invalid_input", "", "one JSON value"},
		"deep":                {budget(deep), "invalid_input", "", "deeply"},
		"broken UTF-8":        {"{\"reason\":\"\xff\"}", "invalid_input", "/reason", "UTF-8"},
		"half a surrogate":    {`{"reason":"\ud800"}`, "invalid_input", "/reason", "UTF-8"},
		"two budgets":         {`{"campaign_id":"` + plain + `","new_daily_budget_jpy":1,"new_daily_budget_krw":1,"reason":"x"}`, "invalid_input", "/new_daily_budget_jpy", "one"},
		"another currency":    {`{"campaign_id":"` + plain + `","new_daily_budget_krw":12000,"reason":"x"}`, "currency_mismatch", "/new_daily_budget_krw", "new_daily_budget_jpy"},
		"another name":        {`{"campaign_id":"` + plain + `","new_daily_budget_jpy":12000,"expect_campaign_name":"秋","reason":"x"}`, "expect_mismatch", "/expect_campaign_name", "秋"},
		"unknown campaign":    {`{"campaign_id":"999999","new_daily_budget_jpy":12000,"reason":"x"}`, "not_found", "/campaign_id", "999999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.do(ask{method: "POST", path: previewsPath, as: "agent", body: c.body, header: english})
			if got.status < 400 || got.status >= 500 || c.code != "" && got.text("code") != c.code {
				t.Fatalf("got %d %s, want %s", got.status, got.raw, c.code)
			}
			said := got.field(c.field)
			if c.field == "" {
				said = string(got.raw)
			}
			if said == "" || !strings.Contains(said, c.says) {
				t.Errorf("got %q of %s, want words with %q; %s", said, c.field, c.says, got.raw)
			}
			if next := got.text("next"); next != "fix_input" || got.at("retryable") != false {
				t.Errorf("got next %q, retryable %v, want fix_input and false", next, got.at("retryable"))
			}
		})
	}
	t.Cleanup(func() {
		if got := r.ads.Counters().Total.Effects; got != 0 {
			t.Errorf("got %d effects, want none", got)
		}
	})
}

func TestBadInputToTheOtherCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	digest := r.digestOf("kim", id)
	for name, c := range map[string]struct {
		as, path, body, field, says string
	}{
		"apply with an action":      {"agent", "/apply", `{"action":"budget_change"}`, "/action", "remove"},
		"apply with a budget":       {"agent", "/apply", `{"new_daily_budget_jpy":1}`, "/new_daily_budget_jpy", "remove"},
		"apply with its own ID":     {"agent", "/apply", `{"preview_id":"` + id + `"}`, "/preview_id", "remove"},
		"apply with a list":         {"agent", "/apply", `[]`, "", "object"},
		"probe with a body":         {"oper", "/probe", `{"x":1}`, "/x", "remove"},
		"decide for somebody":       {"kim", "/decisions", `{"decision":"approve","digest":"` + digest + `","decided_by":"tanaka"}`, "/decided_by", "remove"},
		"decide with own rules":     {"kim", "/decisions", `{"decision":"approve","digest":"` + digest + `","policy":{}}`, "/policy", "remove"},
		"decide without digest":     {"kim", "/decisions", `{"decision":"approve"}`, "/digest", "required"},
		"decide nothing":            {"kim", "/decisions", ``, "/decision", "required"},
		"decide maybe":              {"kim", "/decisions", `{"decision":"maybe","digest":"` + digest + `"}`, "/decision", "approve, reject"},
		"digest in capitals":        {"kim", "/decisions", `{"decision":"approve","digest":"` + strings.ToUpper(digest) + `"}`, "/digest", "64"},
		"request with a policy":     {"agent", "/approval-request", `{"justification":"x","quorum":0}`, "/quorum", "remove"},
		"justification too long":    {"agent", "/approval-request", `{"justification":"` + strings.Repeat("長", 2001) + `"}`, "/justification", "2000"},
		"cancel with a number":      {"agent", "/cancel", `{"reason":1}`, "/reason", "string"},
		"resolve without evidence":  {"oper", "/resolve", `{"outcome":"applied","reason":"seen there"}`, "/evidence", "required"},
		"resolve as unknown":        {"oper", "/resolve", `{"outcome":"unknown","reason":"seen there","evidence":"ticket"}`, "/outcome", "applied, not_applied"},
		"resolve for somebody":      {"oper", "/resolve", `{"outcome":"applied","reason":"seen there","evidence":"ticket","resolved_by":"x"}`, "/resolved_by", "remove"},
		"resolve an item of half":   {"oper", "/resolve", `{"outcome":"applied","reason":"seen there","evidence":"ticket","item":0.5}`, "/item", ""},
		"resolve an item below all": {"oper", "/resolve", `{"outcome":"applied","reason":"seen there","evidence":"ticket","item":-1}`, "/item", "at least 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.do(ask{method: "POST", path: of(id, c.path), as: c.as, body: c.body, header: english})
			if got.status != http.StatusBadRequest {
				t.Fatalf("got %d %s, want 400", got.status, got.raw)
			}
			said := got.field(c.field)
			if c.field == "" {
				said = string(got.raw)
			}
			if said == "" || !strings.Contains(said, c.says) {
				t.Errorf("got %q of %s, want words with %q; %s", said, c.field, c.says, got.raw)
			}
		})
	}
}

func TestUnknownQueryIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	for path, c := range map[string]struct{ field, says string }{
		"/v1/previews?stauts=approved":              {"?stauts", "status, needs_operator, target_id"},
		"/v1/previews?status=done":                  {"?status", "needs_approval, pending"},
		"/v1/previews?status=":                      {"?status", "needs_approval, pending"},
		"/v1/previews?limit=0":                      {"?limit", "1 to 100"},
		"/v1/previews?limit=101":                    {"?limit", "1 to 100"},
		"/v1/previews?limit=%2B5":                   {"?limit", "1 to 100"},
		"/v1/previews?limit=5&limit=6":              {"?limit", "once"},
		"/v1/previews?cursor=nonsense":              {"/cursor", "leave it out"},
		"/v1/previews?target_id=%00":                {"?target_id", "visible"},
		"/v1/previews?target_id=%ff":                {"?target_id", "visible"},
		"/v1/previews?action=" + long(1001):         {"?action", "1000"},
		"/v1/previews?a=%zz":                        {"?", "valid"},
		of(id, "?wait_s=51"):                        {"?wait_s", "0 to 50"},
		of(id, "?wait_s=soon"):                      {"?wait_s", "0 to 50"},
		of(id, "?response_format=full"):             {"?response_format", "concise, detailed"},
		of(id, "/why?wait_s=1"):                     {"?wait_s", "–"},
		"/v1/actions?x=1":                           {"?x", "–"},
		"/v1/outcomes?needs_operator=yes":           {"?needs_operator", "true, false"},
		"/healthz?x=1":                              {"?x", "–"},
		"/v1/approvals?cursor=bm90IGEgY3Vyc29yLi4u": {"/cursor", "leave it out"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := r.do(ask{method: "GET", path: path, as: "kim", header: english})
			got.want(t, http.StatusBadRequest, "invalid_input")
			if said := got.field(c.field); !strings.Contains(said, c.says) || said == "" {
				t.Errorf("got %q, want words with %q; %s", said, c.says, got.raw)
			}
		})
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func TestLargeBodyIsNotRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, body := range map[string]any{"declared": strings.Repeat(" ", 10<<20), "just above": strings.Repeat(" ", 64<<10+1)} {
		got := r.do(ask{method: "POST", path: previewsPath, as: "agent", body: body, header: english})
		got.want(t, http.StatusRequestEntityTooLarge, "too_large")
		if !strings.Contains(got.text("detail"), "65536") {
			t.Errorf("%s: got %q, want the limit", name, got.text("detail"))
		}
	}
	req := r.request(ask{method: "POST", path: previewsPath, as: "agent"})
	endless := &counted{}
	req.Body, req.ContentLength = endless, -1
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("an endless body: got %d, want 413", resp.StatusCode)
	}
}

// counted is a body without end.
type counted struct{}

func (*counted) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func (*counted) Close() error { return nil }

func TestBodyMustBeLabelledAsJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, header := range map[string]http.Header{
		"form":      {"Content-Type": {"application/x-www-form-urlencoded"}},
		"text":      {"Content-Type": {"text/plain"}},
		"none":      {"Content-Type": {}},
		"utf-16":    {"Content-Type": {"application/json; charset=utf-16"}},
		"gzip":      {"Content-Encoding": {"gzip"}},
		"malformed": {"Content-Type": {"application/json; ="}},
	} {
		got := r.do(ask{method: "POST", path: previewsPath, as: "agent", body: raise(0, 12000), header: header})
		if got.status != http.StatusUnsupportedMediaType || got.text("code") != "invalid_input" {
			t.Errorf("%s: got %d %s, want 415 invalid_input", name, got.status, got.raw)
		}
	}
	r.do(ask{
		method: "POST", path: previewsPath, as: "agent", body: raise(0, 12000), header: http.Header{"Content-Type": {"Application/JSON; charset=UTF-8"}},
	}).want(t, http.StatusCreated, "")
}

// An unknown ID, no ID at all and another tenant's get the same bytes, whatever is asked of them.
func TestAnotherTenantsIDLooksLikeNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 16000))
	r.post("agent", of(id, "/approval-request"), nil).want(t, http.StatusOK, "")
	digest := r.digestOf("kim", id)
	calls := []ask{
		{method: "GET", path: ""}, {method: "GET", path: "?response_format=detailed&wait_s=0"}, {method: "GET", path: "/why"},
		{method: "POST", path: "/approval-request"}, {method: "POST", path: "/apply"}, {method: "POST", path: "/cancel"},
		{method: "POST", path: "/decisions", body: decision("approve", digest, "")},
	}
	operators := []ask{
		{method: "POST", path: "/probe"},
		{method: "POST", path: "/resolve", body: object{"outcome": "applied", "reason": "seen there", "evidence": "ticket"}},
	}
	for _, who := range []string{"agent", "kim", "oper"} {
		stranger := r.token(who, devissuer.WithTenant("other"))
		for _, c := range append(calls, operators...) {
			if who == "agent" && c.path == "/decisions" {
				continue // refused before any ID is looked at; see below
			}
			var first reply
			for n, name := range []string{id, "pv_00000000000000000000000000", "pv_", "nonsense", "%00"} {
				got := r.do(ask{method: c.method, path: of(name, c.path), token: stranger, body: c.body})
				got.want(t, http.StatusNotFound, "not_found")
				if n == 0 {
					first = got
				}
				if string(got.raw) != string(first.raw) {
					t.Errorf("%s: %s %s: got %s, want %s as for another tenant's", who, c.method, of(name, c.path), got.raw, first.raw)
				}
				if diff := sameHeaders(first.header, got.header); diff != "" {
					t.Errorf("%s %s: the headers tell them apart: %s", c.method, of(name, c.path), diff)
				}
			}
		}
	}
	refused := decision("approve", digest, "")
	mine, none := r.post("agent", of(id, "/decisions"), refused), r.post("agent", of("pv_00000000000000000000000000", "/decisions"), refused)
	mine.want(t, http.StatusForbidden, "forbidden")
	none.want(t, http.StatusForbidden, "forbidden")
	if got := r.get("agent", of(id, "")).text("status"); got != "pending" {
		t.Errorf("got %s, want the change untouched", got)
	}
}

func sameHeaders(a, b http.Header) string {
	for name := range a {
		if name != "X-Request-Id" && name != "Date" && a.Get(name) != b.Get(name) {
			return name
		}
	}
	return ""
}

func TestUselessTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{
		"iss": r.issuer.URL(), "aud": audience, "sub": target.UserSato, "tenant": "dev", "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ token, says, challenge string }{
		"none":           {"", "needs an access token", `Bearer scope="ads:read", resource_metadata="https://cutonce.example/.well-known/oauth-protected-resource"`},
		"expired":        {r.token("agent", devissuer.WithLife(time.Now().Add(-2*time.Hour), time.Hour)), "expired", `Bearer error="invalid_token"`},
		"wrong audience": {r.token("agent", devissuer.WithAudience("https://other.example")), "another service", `Bearer error="invalid_token"`},
		"alg none":       {unsigned, "not signed", `Bearer error="invalid_token"`},
		"nonsense":       {"nonsense", "could not be read", `Bearer error="invalid_token"`},
		"basic":          {"a b", "Authorization header", `Bearer error="invalid_request"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.do(ask{method: "GET", path: "/v1/previews", token: c.token, header: english})
			got.want(t, http.StatusUnauthorized, "unauthenticated")
			if !strings.Contains(got.text("detail"), c.says) || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), c.challenge) {
				t.Errorf("got %q and %q, want %q and %q", got.text("detail"), got.header.Get("WWW-Authenticate"), c.says, c.challenge)
			}
		})
	}
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"x"}`))
	if got := r.log.String(); strings.Contains(got, payload) || strings.Contains(got, "eyJ") {
		t.Error("a token is in the log")
	}
}

func TestMissingScopeNamesAllThatTheCallNeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	reader := r.token("agent", devissuer.WithScopes("ads:read"))
	got := r.do(ask{method: "POST", path: previewsPath, token: reader, body: raise(0, 12000)})
	got.want(t, http.StatusForbidden, "insufficient_scope")
	want := `Bearer error="insufficient_scope", scope="ads:budget", resource_metadata="https://cutonce.example/.well-known/oauth-protected-resource"`
	if challenge := got.header.Get("WWW-Authenticate"); challenge != want {
		t.Errorf("got %q, want %q", challenge, want)
	}
	id := r.prepared(raise(0, 12000))
	r.do(ask{method: "POST", path: of(id, "/apply"), token: reader}).want(t, http.StatusForbidden, "insufficient_scope")
	none := r.token("agent", devissuer.WithScopes())
	r.do(ask{method: "POST", path: "/v1/finds/campaigns_find", token: none}).want(t, http.StatusForbidden, "insufficient_scope")
}
