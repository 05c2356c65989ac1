package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/answer"
)

// demoAgent is an MCP client of one service process, as an agent's host would be: it holds a URL and a token.
type demoAgent struct{ session *mcp.ClientSession }

func newDemoAgent(ctx context.Context, url, token string) (*demoAgent, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "cutonce-demo", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting the agent: %w", err)
	}
	return &demoAgent{session: session}, nil
}

type bearer struct{ token string }

// RoundTrip adds the token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	r.Header.Set("Accept-Language", "en")
	return http.DefaultTransport.RoundTrip(r)
}

// call calls a tool and reads its structured answer.
func (a *demoAgent) call(ctx context.Context, tool string, arguments map[string]any) (answer.Body, error) {
	var body answer.Body
	return body, a.callInto(ctx, tool, arguments, &body)
}

func (a *demoAgent) callInto(ctx context.Context, tool string, arguments map[string]any, into any) error {
	result, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s answered %s: %w", tool, raw, err)
	}
	return nil
}

// demoPerson is a human at the JSON API.
type demoPerson struct{ url, token string }

// post sends a JSON body and reads the answer, whatever its HTTP status.
func (p demoPerson) post(ctx context.Context, path string, in any) (answer.Body, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return answer.Body{}, err
	}
	return p.do(ctx, http.MethodPost, path, raw)
}

func (p demoPerson) get(ctx context.Context, path string) (answer.Body, error) {
	return p.do(ctx, http.MethodGet, path, nil)
}

func (p demoPerson) do(ctx context.Context, method, path string, raw []byte) (body answer.Body, err error) {
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(raw))
	if err != nil {
		return body, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: bearer{p.token}, Timeout: time.Minute}).Do(request)
	if err != nil {
		return body, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	answered, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return body, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return readBody(answered, response.StatusCode)
}
