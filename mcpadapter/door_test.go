package mcpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/mcpadapter"
)

func TestAllowedOrigin(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.AllowedOrigins = []string{"https://inspector.example"} })
	list := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%s}}`, meta)
	for origin, want := range map[string]int{
		"https://inspector.example": 200, "http://inspector.example": 403, "https://inspector.example:8443": 403, "https://inspector.example.evil": 403,
	} {
		set := modernHeaders("tools/list", "", "en")
		set["Origin"], set["Sec-Fetch-Site"] = origin, "cross-site"
		if got := r.post(r.issuer.token(), list, set).status; got != want {
			t.Errorf("%s: got %d, want %d", origin, got, want)
		}
	}
}

// The header comes first, then the token's own language, then English.
func TestLanguage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	japanese := r.issuer.token(with("locale", "ja-JP"))
	for name, c := range map[string]struct{ token, header, want string }{
		"the header":             {r.issuer.token(), "fr, ja;q=0.8, en;q=0.5", "見つかりません"},
		"the token":              {japanese, "", "見つかりません"},
		"the header over it":     {japanese, "en", "No such thing"},
		"neither":                {r.issuer.token(), "", "No such thing"},
		"a language we have not": {japanese, "fr", "見つかりません"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := r.tryCall(c.token, "change_status", id("x"), c.header)
			if err != nil || !strings.Contains(got.Message, c.want) {
				t.Errorf("got %v %q, want %q", err, got.Message, c.want)
			}
		})
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, x := range []exchange{r.post("", `{}`, nil), r.call(r.issuer.token(), "changes_find", `{}`).http} {
		for name, want := range map[string]string{"X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"} {
			if got := x.header.Get(name); got != want {
				t.Errorf("got %s %q, want %q", name, got, want)
			}
		}
		if x.header.Get("X-Request-Id") == "" {
			t.Error("the answer names no request ID")
		}
	}
}

// A reverse proxy on the same machine keeps the public name in Host, so Host alone is no reason to refuse. A page that
// reaches us by DNS rebinding has its own name in Host and in Origin: same-origin to a browser, unknown to us.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	r := newRig(t, behind(&scripted{}))
	for origin, want := range map[string]int{"": http.StatusOK, "http://cutonce.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%s}}`, meta)))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "cutonce.example"
		set := modernHeaders("tools/list", "", "en")
		set["Content-Type"], set["Accept"] = "application/json", "application/json, text/event-stream"
		set["Authorization"] = "Bearer " + r.issuer.token()
		if origin != "" {
			set["Origin"] = origin
		}
		for name, value := range set {
			req.Header.Set(name, value)
		}
		if x := r.do(req); x.status != want {
			t.Errorf("origin %q: got %d, want %d: %s", origin, x.status, want, x.text)
		}
	}
}

// What is not announced is not answered, though the SDK would, with empty lists.
func TestToolsOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, behind(&scripted{}))
	for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":%s}}`, method, meta)
		if x := r.post(r.issuer.token(), raw, modernHeaders(method, "", "en")); !strings.Contains(x.text, "-32601") {
			t.Errorf("%s: got %d %s, want method not found", method, x.status, x.text)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, behind(&scripted{}))
	for name, change := range map[string]func(*mcpadapter.Deps){
		"a missing port":        func(d *mcpadapter.Deps) { d.Commits = nil },
		"a missing log":         func(d *mcpadapter.Deps) { d.Log = nil },
		"an unknown listing":    func(d *mcpadapter.Deps) { d.Listing = "all" },
		"an origin with a path": func(d *mcpadapter.Deps) { d.AllowedOrigins = []string{"https://a.example/"} },
		"an endless wait":       func(d *mcpadapter.Deps) { d.ApplyWait = 51e9 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := r.deps
			change(&d)
			if _, err := mcpadapter.New(d); err == nil {
				t.Error("got no error")
			}
		})
	}
}

// The tools never change while the service runs, so no client can hold a stream open to hear that they did.
func TestNobodyListensOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, behind(&scripted{}))
	for _, wanted := range []string{`{"toolsListChanged":true}`, `{"resourceSubscriptions":["x"]}`, `{"promptsListChanged":true}`} {
		raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":%s,"_meta":%s}}`, wanted, meta)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+r.issuer.token())
		for name, value := range modernHeaders("subscriptions/listen", "", "en") {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		// Reading to the end is the test: it returns only if the stream ends.
		if text := body(t, resp); !strings.Contains(text, `"resultType":"complete"`) && !strings.Contains(text, `"error"`) {
			t.Errorf("%s: got %s, want the end of the subscription", wanted, text)
		}
	}
}

type broken struct{ err error }

func (b broken) Verify(context.Context, string) (actor.Actor, error) { return actor.Actor{}, b.err }

// When tokens cannot be judged, that is our trouble: no challenge, and nothing of what went wrong.
func TestVerifierInTrouble(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Internal, nil).WithKey("fault.internal.issuer").After(7e9)
	away.Retryable = true
	for name, c := range map[string]struct {
		err    error
		status int
		retry  string
	}{
		"the issuer is away": {away, 503, "7"},
		"a defect":           {errors.New(secret), 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, behind(&scripted{}), func(r *rig) { r.deps.Verifier = broken{c.err} })
			x := r.post("token", `{}`, nil)
			if x.status != c.status || x.header.Get("Retry-After") != c.retry || x.header.Get("Www-Authenticate") != "" {
				t.Errorf("got %d %v, want %d with Retry-After %q and no challenge", x.status, x.header, c.status, c.retry)
			}
			if strings.Contains(x.text, "previews") || leaked.MatchString(x.text) {
				t.Errorf("the text of an internal error left: %s", x.text)
			}
		})
	}
}
