// Package bridge serves MCP on standard input and output, and forwards what it is asked to a running service.
//
// It promises that it holds two things, a service's URL and one token, and can reach nothing else: no database, no signing
// key, no target. What the service answers arrives byte for byte (numbers never pass through a float). What it does not
// answer is told honestly: a call that may have had an effect, and whose answer was lost, is unknown, with the tool that
// knows; only what provably never left, or can have no effect, may be repeated. A client that cancels a call stops waiting;
// what the call set in motion goes on.
//
// It does not promise progress messages, prompts or resources, it never repeats a call by itself, and it judges no token:
// the service does.
//
// Start at New and Run; ask.go is one request to the service, refuse.go is what is said where the service said nothing.
package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/fault"
)

// Config is all that a bridge has.
type Config struct {
	// URL is the service's origin, or its MCP endpoint. Plain http is for this machine only: the token travels with it.
	URL string
	// Token is asked for the token before every request, so that a renewed one is used without a restart.
	Token func() (string, error)
	// Language is the Accept-Language of every request; if empty, the token's locale decides.
	Language string
	// Version is this program's.
	Version string
	// Say writes the body of a refusal of the bridge's own.
	Say func(refusal error, step Step) (json.RawMessage, error)
	// Log is for people. Standard output belongs to the protocol.
	Log *slog.Logger
}

// Step is the next call to make, where there is one.
type Step struct {
	Tool      string
	Arguments map[string]any
}

// Bridge forwards. It is safe for concurrent use.
type Bridge struct {
	cfg      Config
	endpoint string
	http     *http.Client
}

const (
	// patience is more than the longest that the service holds a call (50 s), and bounds what nobody waits for any more.
	patience = 75 * time.Second
	// greetFor bounds the first question: a client waits for it.
	greetFor = 5 * time.Second
)

// New checks the configuration. It asks nobody for anything.
func New(cfg Config) (*Bridge, error) {
	if cfg.Token == nil || cfg.Say == nil || cfg.Log == nil {
		return nil, errors.New("the bridge: a dependency is missing")
	}
	endpoint, err := Endpoint(cfg.URL)
	if err != nil {
		return nil, err
	}
	return &Bridge{cfg: cfg, endpoint: endpoint, http: &http.Client{
		Timeout: patience,
		// The token is for one service: a redirect is an answer, not an order.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Endpoint is the MCP endpoint of a service, given by its origin or by the endpoint itself.
func Endpoint(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the service's URL is not readable: write https://host, without a user, a query or a fragment")
	case u.Path != "" && u.Path != "/" && u.Path != "/mcp":
		return "", fmt.Errorf("the service's URL ends in %q: write https://host or https://host/mcp", u.Path)
	case u.Scheme == "http" && !config.IsLoopback(u.Hostname()):
		return "", fmt.Errorf("plain http to %s would show the token to everybody on the way: use https (http is for this machine only)", u.Hostname())
	case u.Scheme != "https" && u.Scheme != "http":
		return "", fmt.Errorf("the service's URL begins with %q: write https://host", u.Scheme)
	}
	return u.Scheme + "://" + u.Host + "/mcp", nil
}

// Run greets the service, then serves one client until it hangs up or ctx ends. It returns an error at once if the service
// refuses the token or is no cutonce. If it cannot be reached now, that is logged, and calls are answered accordingly.
func (b *Bridge) Run(ctx context.Context, t mcp.Transport) error {
	about, err := b.greet(ctx)
	if err != nil {
		return err
	}
	server := mcp.NewServer(&about.server, &mcp.ServerOptions{
		Instructions: about.instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	server.AddReceivingMiddleware(b.forward)
	return server.Run(ctx, t)
}

// about is how the service presents itself.
type about struct {
	server       mcp.Implementation
	instructions string
}

func (b *Bridge) greet(ctx context.Context) (about, error) {
	ctx, cancel := context.WithTimeout(ctx, greetFor)
	defer cancel()
	a := about{server: mcp.Implementation{Name: "cutonce", Title: "cutonce", Version: b.cfg.Version}}
	r := b.ask(ctx, methodDiscover, "", nil)
	switch {
	case r.status == 0 || r.status >= http.StatusInternalServerError:
		b.cfg.Log.Warn("the service cannot be reached; calls are refused until it can", "url", b.endpoint, "error", r.trouble())
		return a, nil
	case r.status == http.StatusUnauthorized:
		return a, fmt.Errorf("%s refuses the token (HTTP 401). %s", b.endpoint, r.said())
	case r.result == nil:
		return a, fmt.Errorf("%s answers as no cutonce does (HTTP %d): is it the service's address?", b.endpoint, r.status)
	}
	var discovered struct {
		Instructions string `json:"instructions"`
		Meta         struct {
			Server mcp.Implementation `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(r.result, &discovered); err != nil {
		return a, fmt.Errorf("%s answers as no cutonce does: is it the service's address?", b.endpoint)
	}
	a.instructions = discovered.Instructions
	if discovered.Meta.Server.Name != "" {
		a.server = discovered.Meta.Server
	}
	return a, nil
}

// forwarded is the service's result as it came.
type forwarded struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON writes what came.
func (f *forwarded) MarshalJSON() ([]byte, error) { return f.raw, nil }

// forward takes the two methods that are the service's. What this server does not announce it does not answer, though the SDK
// would, with empty lists. The rest is between the client and this server.
func (b *Bridge) forward(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.ListToolsRequest:
			return b.list(ctx, r.Params)
		case *mcp.CallToolRequest:
			return b.call(ctx, r.Params.Name, r.Params.Arguments)
		}
		for _, family := range []string{"prompts/", "resources/", "completion/", "logging/"} {
			if strings.HasPrefix(method, family) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has tools only"}
			}
		}
		return next(ctx, method, req)
	}
}

func (b *Bridge) list(ctx context.Context, p *mcp.ListToolsParams) (mcp.Result, error) {
	params := map[string]any{}
	if p != nil && p.Cursor != "" {
		params["cursor"] = p.Cursor
	}
	r := b.ask(ctx, methodList, "", params)
	if r.result != nil {
		return &forwarded{raw: r.result}, nil
	}
	return nil, b.listRefused(r)
}

// wellNamed is what the protocol allows as a tool's name; it also travels in a header.
var wellNamed = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

var errPanic = errors.New("the bridge failed within a call")

// call forwards one call. A call that may have an effect is asked to the end, whatever becomes of the client.
func (b *Bridge) call(ctx context.Context, tool string, arguments json.RawMessage) (mcp.Result, error) {
	if !wellNamed.MatchString(tool) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no tool has such a name"}
	}
	c := call{tool: tool, arguments: arguments}
	asking := ctx
	if !c.harmless() {
		asking = context.WithoutCancel(ctx)
	}
	params := map[string]any{"name": tool}
	if len(arguments) > 0 {
		params["arguments"] = arguments
	}
	came := make(chan reply, 1)
	go func() {
		r := reply{err: errPanic, left: true}
		defer func() { _ = recover(); came <- r }() // what a panic leaves behind is an unknown
		r = b.ask(asking, methodCall, tool, params)
	}()
	select {
	case r := <-came:
		return b.answer(c, r)
	case <-ctx.Done():
		return b.answer(c, reply{err: ctx.Err(), left: true})
	}
}

// answer is the service's own, or says what is known without one.
func (b *Bridge) answer(c call, r reply) (mcp.Result, error) {
	if r.result != nil {
		return &forwarded{raw: r.result}, nil
	}
	if r.body != nil {
		b.cfg.Log.Warn("the service refuses a call", "tool", c.tool, "http", r.status, "message", r.said())
		return result(r.withScopes())
	}
	if r.protocol != nil && (c.harmless() || refusedUnread[r.protocol.Code]) {
		return nil, r.protocol
	}
	refusal, step := c.unanswered(r)
	b.cfg.Log.Warn("a call has no answer", "tool", c.tool, "code", string(fault.CodeOf(refusal)), "error", r.trouble())
	body, err := b.cfg.Say(refusal, step)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	return result(body)
}

// result wraps a refusal as the service does: structured, with a copy as text. It is written here because the SDK adds what
// clients require, that the result is complete, only to what its own handlers return.
func result(body json.RawMessage) (mcp.Result, error) {
	raw, err := json.Marshal(map[string]any{
		"resultType": "complete", "isError": true, "structuredContent": body,
		"content": []mcp.Content{&mcp.TextContent{Text: string(body)}},
	})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	return &forwarded{raw: raw}, nil
}
