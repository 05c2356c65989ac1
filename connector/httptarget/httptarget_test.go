package httptarget_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
	"github.com/cutonce/cutonce/internal/fault"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := httptarget.Config{BaseURL: "https://target.example/api", Token: "t"}
	if _, err := httptarget.New(good); err != nil {
		t.Fatalf("a good configuration: %v", err)
	}
	for name, spoil := range map[string]func(*httptarget.Config){
		"no URL":                 func(c *httptarget.Config) { c.BaseURL = "" },
		"a URL without a host":   func(c *httptarget.Config) { c.BaseURL = "https:///api" },
		"another scheme":         func(c *httptarget.Config) { c.BaseURL = "ftp://target.example" },
		"a credential in it":     func(c *httptarget.Config) { c.BaseURL = "https://me:secret@target.example" },
		"a query in it":          func(c *httptarget.Config) { c.BaseURL = "https://target.example?x=1" },
		"a fragment in it":       func(c *httptarget.Config) { c.BaseURL = "https://target.example#x" },
		"plain http outside":     func(c *httptarget.Config) { c.BaseURL = "http://target.example" },
		"no token":               func(c *httptarget.Config) { c.Token = "" },
		"a token with a newline": func(c *httptarget.Config) { c.Token = "t\n" },
		"a token with a letter":  func(c *httptarget.Config) { c.Token = "é" },
		"negative read timeout":  func(c *httptarget.Config) { c.ReadTimeout = -time.Second },
		"negative send timeout":  func(c *httptarget.Config) { c.HTTP.Timeout = -time.Second },
		"a proxy without a host": func(c *httptarget.Config) { c.HTTP.Proxy = &url.URL{Scheme: "http"} },
	} {
		cfg := good
		spoil(&cfg)
		_, err := httptarget.New(cfg)
		if err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error %q holds the credential", name, err)
		}
	}
	for _, address := range []string{"http://127.0.0.1:8790", "http://[::1]:8790", "http://localhost:8790"} {
		if _, err := httptarget.New(httptarget.Config{BaseURL: address, Token: "t"}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := httptarget.New(httptarget.Config{BaseURL: "http://target:8790", Token: "t", AllowPlainHTTP: true}); err != nil {
		t.Errorf("plain http that was allowed: %v", err)
	}
}

// connect gives a client of a target that answers as the handler says.
func connect(t *testing.T, answer http.HandlerFunc) *httptarget.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := httptarget.New(httptarget.Config{
		BaseURL: server.URL + "/api/", Token: "the-token", ReadTimeout: 5 * time.Second,
		HTTP: connector.HTTPConfig{MaxBytes: 1}, // not asked
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestGetReadsOneDocument(t *testing.T) {
	t.Parallel()
	var got []string
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		got = []string{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Accept")}
		_, _ = fmt.Fprint(w, `{"id":"1"}`)
	})
	d, refused, err := c.Get(t.Context(), "/v1/things", url.Values{"q": {"a&b"}})
	if err != nil || refused != nil || d["id"] != "1" {
		t.Fatalf("got %v, %v, %v", d, refused, err)
	}
	if diff := cmp.Diff([]string{"GET", "/api/v1/things?q=a%26b", "Bearer the-token", "application/json"}, got); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if _, _, err := c.Get(t.Context(), "/v1/things", nil); err != nil || got[1] != "/api/v1/things" {
		t.Errorf("without a query: got %s, %v", got[1], err)
	}
}

// TestRefusals: a code is only what stands in a whole error document, and a wait is bounded.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status     int
		body, wait string
		want       httptarget.Refusal
	}{
		"documented":     {404, `{"error":{"code":"gone","message":"no such thing"}}`, "", httptarget.Refusal{Status: 404, Code: "gone", Message: "no such thing"}},
		"to wait":        {429, `{"error":{"code":"slow"}}`, "7", httptarget.Refusal{Status: 429, Code: "slow", RetryAfter: 7 * time.Second}},
		"to wait a year": {429, ``, "31536000", httptarget.Refusal{Status: 429, RetryAfter: time.Hour}},
		"a date to wait": {503, ``, "Thu, 01 Jan 2026 00:00:00 GMT", httptarget.Refusal{Status: 503}},
		"a minus":        {503, ``, "-5", httptarget.Refusal{Status: 503}},
		"a gateway's":    {404, `<html>gone</html>`, "", httptarget.Refusal{Status: 404}},
		"cut off":        {404, `{"error":{"code":"gone"`, "", httptarget.Refusal{Status: 404}},
		"two codes":      {404, `{"error":{"code":"x","code":"gone"}}`, "", httptarget.Refusal{Status: 404}},
		"another form":   {404, `{"error":"gone","code":"gone"}`, "", httptarget.Refusal{Status: 404}},
		"a numeric code": {404, `{"error":{"code":404}}`, "", httptarget.Refusal{Status: 404}},
		"another 2xx":    {202, `{"id":"1"}`, "", httptarget.Refusal{Status: 202}},
		"a redirect":     {302, ``, "", httptarget.Refusal{Status: 302}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.wait != "" {
					w.Header().Set("Retry-After", tt.wait)
				}
				w.WriteHeader(tt.status)
				_, _ = fmt.Fprint(w, tt.body)
			})
			d, refused, err := c.Get(t.Context(), "/v1/things", nil)
			if err != nil || refused == nil || d != nil {
				t.Fatalf("got %v, %v, %v, want a refusal alone", d, refused, err)
			}
			if diff := cmp.Diff(tt.want, *refused); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestARefusalsWordsAreData: they are for people, and never in an error's text.
func TestARefusalsWordsAreData(t *testing.T) {
	t.Parallel()
	r := httptarget.Refusal{Status: 429, Code: "slow", Message: "customer 4711", RetryAfter: time.Second}
	if got, want := r.Words(), "slow: customer 4711"; got != want {
		t.Errorf("got the words %q, want %q", got, want)
	}
	if strings.Contains(r.Error(), "4711") {
		t.Errorf("the error is %q", r.Error())
	}
	if got := (httptarget.Refusal{Code: "slow"}).Words(); got != "slow" {
		t.Errorf("without a message: got the words %q", got)
	}
	if !r.Says(429, "slow") || r.Says(429, "") || r.Says(503, "slow") {
		t.Error("status and code must both match")
	}
	f := fault.From(r.Unavailable())
	if f.Code != fault.TargetUnavailable || !f.Retryable || f.RetryAfter != time.Second {
		t.Errorf("got %+v, want a target_unavailable that may be repeated in a second", f)
	}
}

// TestNoUsableAnswerIsUnavailable, and may be asked for again. The credential is not in what is said about it.
func TestNoUsableAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a cut connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a cut document":   func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"id":`) },
		"a cut body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, `{"id":"1"}`)
		},
		"no document": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `[]`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, refused, err := connect(t, answer).Get(t.Context(), "/v1/things", nil)
			var f *fault.Fault
			if d != nil || refused != nil || !errors.As(err, &f) || f.Code != fault.TargetUnavailable || !f.Retryable {
				t.Fatalf("got %v, %v, %v, want a retryable target_unavailable", d, refused, err)
			}
			if strings.Contains(err.Error(), "the-token") {
				t.Errorf("the error %q holds the credential", err)
			}
		})
	}
}

var (
	request = connector.Request{Method: "PATCH", Path: "/v1/things/1", Body: []byte(`{"n":1}`), Precondition: `"7"`}
	call    = connector.Call{
		Key: "key-1", OnBehalfOf: "sato@agency.example", Agent: "agent", ApprovedBy: []string{"kim@agency.example", "tanaka@agency.example"},
		PreviewID: "pv_1",
	}
)

// seen are the headers of a change that are ours.
func seen(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "X-On-Behalf-Of", "X-Approved-By", "X-Agent", "X-Preview-Id",
	} {
		if values := h.Values(name); len(values) > 0 {
			out[name] = strings.Join(values, " | ")
		}
	}
	return out
}

func TestSendMarksTheChangeAndNamesThePeople(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*connector.Request, *connector.Call)
		want   map[string]string
	}{
		"all of them": {func(*connector.Request, *connector.Call) {}, map[string]string{
			"If-Match": `"7"`, "X-On-Behalf-Of": "sato@agency.example", "X-Approved-By": "kim@agency.example, tanaka@agency.example",
			"X-Agent": "agent", "X-Preview-Id": "pv_1",
		}},
		"none of them": {func(r *connector.Request, c *connector.Call) {
			r.Precondition, *c = "", connector.Call{Key: c.Key}
		}, map[string]string{}},
		"a forged one": {func(r *connector.Request, c *connector.Call) {
			r.Precondition, *c = "", connector.Call{Key: c.Key, Agent: "agent\r\nX-Approved-By: root"}
		}, map[string]string{"X-Agent": "agent⟨U+000D⟩⟨U+000A⟩X-Approved-By: root"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got map[string]string
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				got = seen(r.Header)
				w.WriteHeader(http.StatusTeapot)
			})
			r, asked := request, call
			tt.change(&r, &asked)
			reply, err := c.Send(t.Context(), r, asked)
			if err != nil || reply.Status != http.StatusTeapot {
				t.Fatalf("got %v, %v, want the target's answer, whatever it is", reply, err)
			}
			tt.want["Authorization"], tt.want["Content-Type"], tt.want["Idempotency-Key"] = "Bearer the-token", "application/json", "key-1"
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingIsSentWithoutOurMark: such a send could never be looked up.
func TestNothingIsSentWithoutOurMark(t *testing.T) {
	t.Parallel()
	c := connect(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	if _, err := c.Send(t.Context(), request, connector.Call{}); connector.Classify(err) != connector.ClassNotSent {
		t.Errorf("got %v, want the proof that nothing was sent", err)
	}
	if found, err := c.Marked(t.Context(), "/v1/changes", "changes", ""); err == nil {
		t.Errorf("a look-up without a mark: got %v", found)
	}
}

// TestMarked: a history proves something only if it is there, whole, and about our key.
func TestMarked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   int // -1 is an error
	}{
		"one":              {200, `{"changes":[{"key":"key-1"}]}`, 1},
		"two":              {200, `{"changes":[{"key":"key-1"},{"key":"key-1"}]}`, 2},
		"none":             {200, `{"changes":[]}`, 0},
		"another key":      {200, `{"changes":[{"key":"key-1"},{"key":"key-2"}]}`, -1},
		"no key":           {200, `{"changes":[{"id":"1"}]}`, -1},
		"no list":          {200, `{}`, -1},
		"a list of others": {200, `{"changes":["key-1"]}`, -1},
		"half of it":       {200, `{"changes":[]`, -1},
		"not found":        {404, `{"changes":[]}`, -1},
		"not implemented":  {501, ``, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.RequestURI(); got != "/api/v1/changes?key=key-1" {
					t.Errorf("got the request %s", got)
				}
				w.WriteHeader(tt.status)
				_, _ = fmt.Fprint(w, tt.body)
			})
			found, err := c.Marked(t.Context(), "/v1/changes", "changes", "key-1")
			if (err != nil) != (tt.want < 0) || err == nil && len(found) != tt.want {
				t.Errorf("got %v, %v, want %d", found, err, tt.want)
			}
		})
	}
}
