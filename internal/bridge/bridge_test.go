package bridge_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/internal/bridge"
)

var preview = map[string]any{"preview_id": "pv_1"}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://cutonce.example": "https://cutonce.example/mcp", "https://cutonce.example/": "https://cutonce.example/mcp",
		"https://cutonce.example:8443/mcp": "https://cutonce.example:8443/mcp", "http://127.0.0.1:8780": "http://127.0.0.1:8780/mcp",
		"http://localhost:1/mcp": "http://localhost:1/mcp", "http://[::1]:1": "http://[::1]:1/mcp",
		"http://cutonce.example": "", "http://127.0.0.1.example": "", "https://u:p@cutonce.example": "", "https://cutonce.example/v1": "",
		"https://cutonce.example?x=1": "", "cutonce.example": "", "ftp://cutonce.example": "", "postgres://127.0.0.1/x": "", "": "",
	} {
		got, err := bridge.Endpoint(url)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", url, got, err, want)
		}
	}
}

// What the service says arrives as it was said, to clients of either era.
func TestForwardsAsItIs(t *testing.T) {
	t.Parallel()
	const structured = `{"big":12345678901234567890,"exact":0.10,"text":"<秋>"}`
	for _, version := range []string{modern, legacy} {
		s := newService(t, says(`{"content":[{"type":"text","text":"x"}],"structuredContent":`+structured+`,"resultType":"complete"}`))
		w := speak(t, s.URL, version)
		m := w.ask(`"name":"a_preview","arguments":{"n":98765432109876543210,"m":0.10,"n":1}`)
		if string(m.Structured) != structured {
			t.Errorf("%s: got %s, want %s", version, m.Structured, structured)
		}
		got := s.calls()[0]
		if !strings.Contains(got.params, `"arguments":{"n":98765432109876543210,"m":0.10,"n":1}`) {
			t.Errorf("%s: the service got %s, want the arguments as they were", version, got.params)
		}
		for name, want := range map[string]string{
			"Authorization": "Bearer " + token, "Mcp-Method": "tools/call", "Mcp-Name": "a_preview", "Mcp-Protocol-Version": modern, "Accept-Language": "ja",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", version, name, got.header.Get(name), want)
			}
		}
	}
}

// A refusal of the bridge's own has all that the clients of either era require of a result.
func TestRefusalsAreWholeResults(t *testing.T) {
	t.Parallel()
	for _, version := range []string{modern, legacy} {
		m := speak(t, newService(t, hangsUp).URL, version).ask(`"name":"x_apply","arguments":{"preview_id":"pv_1"}`)
		if m.ResultType != "complete" || !m.IsError || len(m.Content) != 1 || m.Content[0].Type != "text" || m.Content[0].Text != string(m.Structured) ||
			!strings.Contains(m.Content[0].Text, `"code":"outcome_unknown"`) {
			t.Errorf("%s: got %+v, want a complete result with a copy as text", version, m)
		}
	}
}

func TestListsAndPresentsTheService(t *testing.T) {
	t.Parallel()
	s := newService(t, says(`{"tools":[{"name":"x_apply","inputSchema":{"type":"object"}}],"ttlMs":5,"cacheScope":"private","resultType":"complete"}`))
	c := connect(t, s.URL, modern)
	tools, err := c.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "further"})
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "x_apply" || tools.TTLMs != 5 || tools.CacheScope != "private" {
		t.Errorf("got %+v, %v, want the service's list", tools, err)
	}
	if got := s.calls()[0].params; !strings.Contains(got, `"cursor":"further"`) {
		t.Errorf("the service got %s, want the cursor", got)
	}
	if got := c.InitializeResult(); got.Instructions != "Measure twice." || got.ServerInfo.Version != "9.9" {
		t.Errorf("got %+v, want the service's words", got)
	}
}

// What is not announced is not answered.
func TestToolsOnly(t *testing.T) {
	t.Parallel()
	s := newService(t, hangsUp)
	for _, version := range []string{modern, legacy} {
		c := connect(t, s.URL, version)
		_, prompts := c.ListPrompts(t.Context(), nil)
		_, resources := c.ListResources(t.Context(), nil)
		for _, err := range []error{prompts, resources} {
			var refusal *jsonrpc.Error
			if !errors.As(err, &refusal) || refusal.Code != jsonrpc.CodeMethodNotFound {
				t.Errorf("%s: got %v, want the method not found", version, err)
			}
		}
	}
}

// An answer may come as a stream, after notifications.
func TestReadsStreams(t *testing.T) {
	t.Parallel()
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"+
			"event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\r\ndata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":\"here\"}]}}\r\n\r\n")
	})
	r := connect(t, s.URL, modern).call(t, "x_find", nil)
	if got := r.Content[0].(*mcp.TextContent).Text; got != "here" {
		t.Errorf("got %q, want here", got)
	}
}

// What is known when the service's answer does not come, for tools that may have had an effect and for those that cannot.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	type said struct {
		code, next string
		retryable  bool
	}
	unknown := said{"outcome_unknown", "check_status", false}
	again := said{"target_unavailable", "retry_later", true}
	elsewhere := said{"internal", "contact_operator", false}
	noToken := said{"unauthenticated", "get_permission", false}
	for name, c := range map[string]struct {
		answer           http.HandlerFunc
		effect, harmless said
	}{
		"hangs up":          {hangsUp, unknown, again},
		"502 of a gateway":  {replies(502, "<html>"), unknown, again},
		"429 of a gateway":  {replies(429, "slow down"), unknown, again},
		"404":               {replies(404, "not found"), unknown, elsewhere},
		"a redirect":        {replies(307, "", "Location", "http://127.0.0.1:1/steal"), unknown, elsewhere},
		"200, no JSON":      {replies(200, "<html>"), unknown, again},
		"200, no answer":    {replies(200, `{"jsonrpc":"2.0","id":1}`), unknown, again},
		"another's answer":  {replies(200, `{"jsonrpc":"2.0","id":2,"result":{}}`), unknown, again},
		"a cut stream":      {replies(200, "data: {\"jsonrpc\":\"2.0\",", "Content-Type", "text/event-stream"), unknown, again},
		"401 of a gateway":  {replies(401, "no"), noToken, noToken},
		"403 of a gateway":  {replies(403, "no"), said{"forbidden", "get_permission", false}, said{"forbidden", "get_permission", false}},
		"a bare challenge":  {replies(403, "", "WWW-Authenticate", `Bearer error="insufficient_scope", scope="ads:read ads:budget"`), said{"insufficient_scope", "get_permission", false}, said{"insufficient_scope", "get_permission", false}},
		"the service's 401": {replies(401, `{"jsonrpc":"2.0","id":1,"error":{"code":401,"message":"m","data":{"code":"unauthenticated","message":"m","next":"get_permission","retryable":false}}}`), noToken, noToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, c.answer)
			client := connect(t, s.URL, modern)
			calls := 0
			for tool, want := range map[string]said{
				"x_apply": c.effect, "change_cancel": c.effect, "approval_request": c.effect, "something_new": c.effect,
				"x_preview": c.harmless, "change_status": c.harmless, "xs_find": c.harmless,
			} {
				b := client.refused(t, tool, preview)
				if got := (said{b.Code, b.Next, *b.Retryable}); got != want {
					t.Errorf("%s: got %+v, want %+v", tool, got, want)
				}
				if b.Code == "outcome_unknown" && (b.NextTool != "change_status" || cmp.Diff(preview, b.NextArguments) != "") {
					t.Errorf("%s: got %s %v, want change_status of the preview", tool, b.NextTool, b.NextArguments)
				}
				if b.Retryable != nil && *b.Retryable && (b.NextTool != tool || cmp.Diff(preview, b.NextArguments) != "") {
					t.Errorf("%s: got %s %v, want the same call", tool, b.NextTool, b.NextArguments)
				}
				calls++
			}
			if got := len(s.calls()); got != calls {
				t.Errorf("the service was asked %d times, want %d: nothing is repeated", got, calls)
			}
			if lines := strings.Split(strings.TrimSpace(client.log.String()), "\n"); len(lines) != calls {
				t.Errorf("got %d lines, want one for each call:\n%s", len(lines), client.log)
			}
		})
	}
}

// Nobody is at home: provably nothing left, so that even an apply may be repeated.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	s := newService(t, hangsUp)
	c := connect(t, s.URL, modern)
	s.Close()
	for _, tool := range []string{"x_apply", "x_preview", "approval_request"} {
		if b := c.refused(t, tool, preview); b.Code != "target_unavailable" || !*b.Retryable || b.NextTool != tool {
			t.Errorf("%s: got %+v, want target_unavailable, to be repeated", tool, b)
		}
	}
	_, err := c.ListTools(t.Context(), nil)
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code != http.StatusServiceUnavailable || !strings.Contains(string(refusal.Data), "target_unavailable") {
		t.Errorf("got %v, want an error of the protocol with the reason", err)
	}
}

// Standard output has no headers: the scopes that a challenge names are put into the result.
func TestScopesAreNamed(t *testing.T) {
	t.Parallel()
	s := newService(t, replies(403,
		`{"jsonrpc":"2.0","id":1,"error":{"code":403,"message":"m","data":{"code":"insufficient_scope","message":"needs ads:budget","next":"get_permission","retryable":false}}}`,
		"WWW-Authenticate", `Bearer error="insufficient_scope", scope="ads:read ads:budget", resource_metadata="https://x"`))
	b := connect(t, s.URL, modern).refused(t, "x_preview", nil)
	if diff := cmp.Diff(map[string]any{"scopes": []any{"ads:read", "ads:budget"}}, b.Data); diff != "" || b.Message != "needs ads:budget" {
		t.Errorf("got %+v, want the service's words and the scopes: %s", b, diff)
	}
}

// The protocol's own refusals stay what they are, unless an effect could hide behind them.
func TestErrorsOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := newService(t, replies(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool"}}`))
	_, err := connect(t, s.URL, modern).CallTool(t.Context(), &mcp.CallToolParams{Name: "x_apply"})
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v, want invalid params", err)
	}
	s = newService(t, replies(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`))
	if b := connect(t, s.URL, modern).refused(t, "x_apply", preview); b.Code != "outcome_unknown" {
		t.Errorf("got %+v, want outcome_unknown", b)
	}
	_, err = connect(t, s.URL, modern).CallTool(t.Context(), &mcp.CallToolParams{Name: "evil\r\nname"})
	if !errors.As(err, &refusal) || refusal.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("got %v, want a name that is no header refused", err)
	}
}

// A client that gives up cancels a question, and never an apply.
func TestCancelledCalls(t *testing.T) {
	t.Parallel()
	arrived, release, finished := make(chan string, 2), make(chan struct{}), make(chan error, 2)
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("Mcp-Name")
		select {
		case <-release:
		case <-r.Context().Done():
		}
		finished <- r.Context().Err()
		says(`{"content":[]}`)(w, r)
	})
	c := connect(t, s.URL, modern)
	giveUp := func(tool string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: preview})
			ended <- err
		}()
		if got := <-arrived; got != tool {
			t.Fatalf("got %s, want %s", got, tool)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want canceled", tool, err)
		}
	}
	giveUp("change_status")
	if err := within(t, finished); !errors.Is(err, context.Canceled) {
		t.Errorf("change_status: the service saw %v, want its caller gone", err)
	}
	giveUp("x_apply")
	// The client's next call is answered, so the cancellation has been read; the apply is still being asked.
	select {
	case err := <-finished:
		t.Fatalf("x_apply: the service saw %v, want its caller still there", err)
	case <-time.After(200 * time.Millisecond): // nothing signals that something does not happen
	}
	close(release)
	if err := within(t, finished); err != nil {
		t.Errorf("x_apply: the service saw %v, want its caller still there", err)
	}
}

func within(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("nothing happened in time")
		return nil
	}
}

// At the start: a wrong token and a wrong address end it with one line; a service that is down does not.
func TestStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"wrong token": {replies(401, `{"jsonrpc":"2.0","id":1,"error":{"code":401,"message":"m","data":{"code":"unauthenticated","message":"The access token has expired.","next":"get_permission"}}}`),
			"refuses the token (HTTP 401). The access token has expired."},
		"another service": {replies(404, "<html>"), "answers as no cutonce does (HTTP 404): is it the service's address?"},
		"a web page":      {replies(200, "{}"), "answers as no cutonce does (HTTP 200): is it the service's address?"},
		"down":            {replies(503, ""), ""},
	} {
		s := httptest.NewServer(c.answer)
		l := &log{}
		b, err := bridge.New(config(s.URL, l))
		if err != nil {
			t.Fatal(err)
		}
		err = b.Run(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(strings.NewReader("")), Writer: nothing{}})
		s.Close()
		if c.want == "" {
			if lines := strings.Count(l.String(), "\n"); err != nil || lines != 1 {
				t.Errorf("%s: got %v and %d lines, want it to go on and say so once", name, err, lines)
			}
			continue
		}
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line that ends in %q", name, err, c.want)
		}
	}
}

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Close() error                { return nil }
