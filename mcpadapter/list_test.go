package mcpadapter_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/mcpadapter"
)

// bearer sends a token and a language with every request of the SDK's client.
type bearer struct{ token, lang string }

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	req.Header.Set("Accept-Language", b.lang)
	return http.DefaultTransport.RoundTrip(req)
}

// connect is the SDK's own client, over real HTTP.
func (r *rig) connect(token, lang string) *mcp.ClientSession {
	r.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(r.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: r.url, HTTPClient: &http.Client{Transport: bearer{token, lang}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = session.Close() })
	return session
}

func (r *rig) listed(token, lang string) []*mcp.Tool {
	r.t.Helper()
	list, err := r.connect(token, lang).ListTools(r.t.Context(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Tools
}

func names(tools []*mcp.Tool) []string {
	out := make([]string, 0, len(tools))
	for _, tool := range tools {
		out = append(out, tool.Name)
	}
	return out
}

var everyTool = []string{
	"approval_request", "budget_change_apply", "budget_change_preview", "campaigns_find", "change_cancel", "change_status", "changes_find",
}

func TestToolsAreComplete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := regexp.MustCompile(`\b(tool|action|find|fault|field)\.[a-z_]+\.?[a-z_]*\b`)
	name := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	for _, lang := range []string{"en", "ja"} {
		tools := r.listed(r.issuer.token(), lang)
		if diff := cmp.Diff(everyTool, names(tools)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", lang, diff)
		}
		for _, tool := range tools {
			in, _ := tool.InputSchema.(map[string]any)
			out, _ := tool.OutputSchema.(map[string]any)
			switch {
			case !name.MatchString(tool.Name):
				t.Errorf("%s: the name is not allowed", tool.Name)
			case tool.Title == "" || tool.Description == "" || tool.Annotations.Title != tool.Title:
				t.Errorf("%s: title or description is missing", tool.Name)
			case key.MatchString(tool.Title + tool.Description):
				t.Errorf("%s: a text is missing in %s: %s, %s", tool.Name, lang, tool.Title, tool.Description)
			case in["additionalProperties"] != false || in["type"] != "object":
				t.Errorf("%s: the input schema is not closed", tool.Name)
			case out["additionalProperties"] != false || out["type"] != "object":
				t.Errorf("%s: the output schema is not closed", tool.Name)
			case !slices.Contains(out["required"].([]any), any("next")) || !slices.Contains(out["required"].([]any), any("message")):
				t.Errorf("%s: message and next are not always there", tool.Name)
			}
			if ja := strings.ContainsAny(tool.Description, "のをにはが"); ja != (lang == "ja") {
				t.Errorf("%s: the description is not in %s: %s", tool.Name, lang, tool.Description)
			}
		}
	}
}

func TestAnnotationsAreTrue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	type hints struct{ ReadOnly, Destructive, Idempotent, OpenWorld bool }
	want := map[string]hints{
		"approval_request":      {Idempotent: true},
		"budget_change_apply":   {Destructive: true, Idempotent: true},
		"budget_change_preview": {},
		"campaigns_find":        {ReadOnly: true, Idempotent: true},
		"change_cancel":         {Destructive: true, Idempotent: true},
		"change_status":         {ReadOnly: true, Idempotent: true},
		"changes_find":          {ReadOnly: true, Idempotent: true},
	}
	got := map[string]hints{}
	for _, tool := range r.listed(r.issuer.token(), "en") {
		a := tool.Annotations
		if a.DestructiveHint == nil || a.OpenWorldHint == nil {
			t.Fatalf("%s: an annotation is left to the client to guess", tool.Name)
		}
		got[tool.Name] = hints{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	reads := []string{"approval_request", "campaigns_find", "change_cancel", "change_status", "changes_find"}
	for name, c := range map[string]struct {
		listing  mcpadapter.Listing
		canGrant func(actor.Actor, []string) bool
		want     []string
	}{
		"the default shows what a step-up could reach": {"", nil, everyTool},
		"what can never be granted is hidden": {
			mcpadapter.Grantable, func(_ actor.Actor, scopes []string) bool { return !slices.Contains(scopes, "ads:budget") }, reads,
		},
		"granted shows what the token allows": {mcpadapter.Granted, nil, reads},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) { r.deps.Listing, r.deps.CanGrant = c.listing, c.canGrant })
			reader := r.issuer.token(with("scope", "ads:read"))
			if diff := cmp.Diff(c.want, names(r.listed(reader, "en"))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The texts name the clocks that count here.
func TestTextsNameTheClocks(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.Clocks.PreviewTTL = 90e9 })
	for _, tool := range r.listed(r.issuer.token(), "en") {
		if tool.Name != "budget_change_preview" {
			continue
		}
		for _, want := range []string{"90 s", "24 h", "30 min"} {
			if !strings.Contains(tool.Description, want) {
				t.Errorf("got %q, want it to name %s", tool.Description, want)
			}
		}
	}
}

// A whole life through the SDK's own client, which checks headers and versions as clients do.
func TestSDKClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	session := r.connect(r.issuer.token(), "ja")
	prepared, err := session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: "budget_change_preview", Arguments: map[string]any{
		"campaign_id": "2002007", "new_daily_budget_jpy": 12500, "reason": "公式クライアントから",
	}})
	if err != nil || prepared.IsError {
		t.Fatalf("preview: %v %+v", err, prepared)
	}
	content := prepared.StructuredContent.(map[string]any)
	applied, err := session.CallTool(context.WithoutCancel(r.t.Context()), &mcp.CallToolParams{
		Name: content["next_tool"].(string), Arguments: content["next_arguments"],
	})
	if err != nil || applied.IsError {
		t.Fatalf("apply: %v %+v", err, applied)
	}
	if got, want := applied.StructuredContent.(map[string]any)["status"], "applied"; got != want {
		t.Errorf("got status %v, want %s", got, want)
	}
}
