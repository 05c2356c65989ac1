package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// service is the human-approved cycle of the real service: the agent prepares and asks for approval, a person reads the status in
// detail and approves the digest that was shown, the agent applies and is told that it is applied. Over the JSON API alone, or with
// the agent's three calls over MCP.
type service struct {
	*stage
	overMCP bool
	applies *samples
}

func (s *service) name() string {
	if s.overMCP {
		return "mcp"
	}
	return "api"
}

// agent is one client's agent, whichever door it uses.
type agent interface {
	// prepare returns the preview's ID.
	prepare(ctx context.Context, campaign string, budget int) (id string, err error)
	request(ctx context.Context, id string) error
	// apply returns the status that the change ended with.
	apply(ctx context.Context, id string) (string, error)
}

func (s *service) client(ctx context.Context, n int) (func(context.Context) error, error) {
	person, err := dial(s.url)
	if err != nil {
		return nil, err
	}
	var a agent
	budget := 20_000
	if s.overMCP {
		budget = 200_000
		if a, err = newMCPAgent(ctx, s.url, s.tokens["agent"]); err != nil {
			return nil, err
		}
	} else {
		own, err := dial(s.url)
		if err != nil {
			return nil, err
		}
		a = apiAgent{wire: own, token: s.tokens["agent"]}
	}
	return func(ctx context.Context) error {
		budget++
		id, err := a.prepare(ctx, campaignID(n), budget)
		if err != nil {
			return err
		}
		if err := a.request(ctx, id); err != nil {
			return err
		}
		seen, err := person.call("GET", "/v1/previews/"+id+"?response_format=detailed", s.tokens["kim"], nil, http.StatusOK)
		if err != nil {
			return err
		}
		decision := []byte(`{"decision":"approve","digest":"` + member(seen, "digest") + `"}`)
		if _, err := person.call("POST", "/v1/previews/"+id+"/decisions", s.tokens["kim"], decision, http.StatusOK); err != nil {
			return err
		}
		began := time.Now()
		status, err := a.apply(ctx, id)
		s.applies.add(time.Since(began))
		if err != nil || status != "applied" {
			return errors.Join(fmt.Errorf("the cycle ended %q", status), err)
		}
		return nil
	}, nil
}

func (s *service) effects(ctx context.Context) (int, error) {
	t, err := s.target.tally(ctx)
	if t.Twice > 0 || t.Refused > 0 {
		err = errors.Join(err, fmt.Errorf("the target saw %d keys twice and refused %d changes", t.Twice, t.Refused))
	}
	return t.Effects, err
}

func (s *service) close(context.Context) {}

// apiAgent uses the JSON API.
type apiAgent struct {
	*wire
	token string
}

func (a apiAgent) prepare(_ context.Context, campaign string, budget int) (string, error) {
	body := `{"campaign_id":"` + campaign + `","new_daily_budget_jpy":` + strconv.Itoa(budget) + `,"reason":"the weekend"}`
	shown, err := a.call("POST", "/v1/actions/budget_change/previews", a.token, []byte(body), http.StatusCreated)
	return member(shown, "preview_id"), err
}

func (a apiAgent) request(_ context.Context, id string) error {
	_, err := a.call("POST", "/v1/previews/"+id+"/approval-request", a.token, []byte(`{"justification":"it sells well"}`), http.StatusOK)
	return err
}

func (a apiAgent) apply(_ context.Context, id string) (string, error) {
	said, err := a.call("POST", "/v1/previews/"+id+"/apply", a.token, []byte{}, http.StatusOK)
	return member(said, "status"), err
}

// mcpAgent uses MCP, through the official client.
type mcpAgent struct{ session *mcp.ClientSession }

// bearer adds the token to every request. Each agent has connections of its own.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip adds the token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func newMCPAgent(ctx context.Context, url, token string) (mcpAgent, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "cutonce-bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token, &http.Transport{}}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return mcpAgent{}, fmt.Errorf("connecting an agent: %w", err)
	}
	return mcpAgent{session}, nil
}

func (a mcpAgent) call(ctx context.Context, tool string, arguments map[string]any) (map[string]any, error) {
	result, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	said, ok := result.StructuredContent.(map[string]any)
	if !ok || result.IsError {
		return nil, fmt.Errorf("%s answered %v", tool, result.StructuredContent)
	}
	return said, nil
}

func (a mcpAgent) prepare(ctx context.Context, campaign string, budget int) (string, error) {
	said, err := a.call(ctx, "budget_change_preview", map[string]any{
		"campaign_id": campaign, "new_daily_budget_jpy": budget, "reason": "the weekend",
	})
	id, _ := said["preview_id"].(string)
	return id, err
}

func (a mcpAgent) request(ctx context.Context, id string) error {
	_, err := a.call(ctx, "approval_request", map[string]any{"preview_id": id, "justification": "it sells well"})
	return err
}

func (a mcpAgent) apply(ctx context.Context, id string) (string, error) {
	said, err := a.call(ctx, "budget_change_apply", map[string]any{"preview_id": id})
	status, _ := said["status"].(string)
	return status, err
}
