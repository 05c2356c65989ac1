package mcpadapter_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/mcpadapter"
)

// everyRole is what an agent's token may claim without gaining anything by it.
var everyRole = []string{actor.RoleRequester, actor.RoleApprover, actor.RoleOperator, actor.RoleAuditor, actor.RoleAdmin}

// somebody calls a tool. The changes of this test are asked for by the agent bot for sato, and ask for somebody of ads-approvers.
type somebody struct {
	name       string
	claims     []func(jwt.MapClaims) // nil is nobody
	human      bool
	owns, sees bool
	away       bool // of another tenant
	scopes     string
}

func cast() []somebody {
	const read, write = "ads:read", "ads:read ads:budget"
	human := func(name, scope string, groups []string, roles ...string) []func(jwt.MapClaims) {
		return []func(jwt.MapClaims){person(name, groups, roles), with("scope", scope)}
	}
	agent := func(subject, client, scope string) []func(jwt.MapClaims) {
		return []func(jwt.MapClaims){with("sub", subject), with("act", map[string]any{"sub": client}), with("client_id", client), with("scope", scope), with("roles", everyRole)}
	}
	elsewhere := with("tenant", "elsewhere")
	return []somebody{
		{name: "nobody"},
		{name: "the same agent in another tenant", claims: append(agent("sato@agency.example", "bot", write), elsewhere), away: true, scopes: write},
		{name: "an admin of another tenant", claims: append(human("adam", read, nil, "admin"), elsewhere), human: true, away: true, scopes: read},
		{name: "another agent of the same person, with every role", claims: agent("sato@agency.example", "other-bot", write), scopes: write},
		{name: "an agent of somebody else, with every role", claims: agent(target.UserKim, "bot", write), scopes: write},
		{name: "an agent without scopes", claims: agent(target.UserKim, "bot", ""), scopes: ""},
		{name: "somebody without a role", claims: human("ito", read, nil), human: true, scopes: read},
		{name: "an approver without seat", claims: human("hayashi", read, []string{"release-managers"}, "approver"), human: true, sees: true, scopes: read},
		{name: "an auditor", claims: human("audrey", read, nil, "auditor"), human: true, sees: true, scopes: read},
		{name: "an operator", claims: human("olive", read, nil, "operator"), human: true, sees: true, scopes: read},
		{name: "an admin", claims: human("adam", read, nil, "admin"), human: true, sees: true, scopes: read},
		{name: "a seat without a role", claims: human("tanaka", read, []string{"ads-approvers"}), human: true, sees: true, scopes: read},
		{name: "the requester", claims: human("sato@agency.example", write, nil, "requester"), human: true, owns: true, scopes: write},
		{name: "the agent", claims: []func(jwt.MapClaims){}, owns: true, scopes: write},
	}
}

// holds reads the table. sees stands for what gives read beside owning, which the JSON API's test spells out.
func (s somebody) holds(t *testing.T, p actor.Power, scope string) bool {
	t.Helper()
	g, known := actor.Of(p)
	if !known || g.Human || g.Foreign || g.Seat || len(g.Roles) > 0 {
		t.Fatalf("a tool asks for the power %q, which is people's alone", p)
	}
	switch {
	case s.claims == nil, g.Scope && !slices.Contains(strings.Fields(s.scopes), scope):
		return false
	case p == actor.Read:
		return !s.away && (s.owns || s.sees)
	case g.Own:
		return !s.away && s.owns
	}
	return true
}

// TestRoles calls every tool as everybody and compares what was allowed with the table.
func TestRoles(t *testing.T) {
	t.Parallel()
	exercises := map[string]struct{ scope, arguments string }{
		"budget_change_preview": {"ads:budget", budget(target.PlainJPY(1), "12000")},
		"budget_change_apply":   {"ads:budget", "ID"},
		"campaigns_find":        {"ads:read", "{}"},
		"approval_request":      {"ads:budget", `{"preview_id":"PREVIEW","justification":"a test"}`},
		"change_status":         {"", "ID"},
		"change_cancel":         {"", "ID"},
		"changes_find":          {"", "{}"},
	}
	shared := newRig(t)
	held := mcpadapter.Powers(shared.deps.Actions)
	var names, listed []string
	for _, h := range held {
		names = append(names, h.Tool)
	}
	for _, tool := range shared.listed(shared.issuer.token(), "en") {
		listed = append(listed, tool.Name)
	}
	slices.Sort(names)
	slices.Sort(listed)
	if diff := cmp.Diff(listed, names); diff != "" || len(exercises) != len(listed) {
		t.Fatalf("%d are exercised; the tools that there are, and those of the table: -want +got:\n%s", len(exercises), diff)
	}
	for _, h := range held {
		e := exercises[h.Tool]
		t.Run(h.Tool, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			change := r.previewed(target.PlainJPY(0), "90000")
			arguments := strings.NewReplacer("PREVIEW", change).Replace(e.arguments)
			if arguments == "ID" {
				arguments = fmt.Sprintf(`{"preview_id":%q}`, change)
			}
			for _, who := range cast() {
				token := ""
				if who.claims != nil {
					token = r.issuer.token(who.claims...)
				}
				got, err := r.tryCall(token, h.Tool, arguments, "en")
				allowed := got.http.status == http.StatusOK && !slices.Contains([]string{"forbidden", "not_found", "insufficient_scope", "unauthenticated"}, string(got.Code))
				if want := who.holds(t, h.Power, e.scope); allowed != want || err != nil && allowed || got.Code == "invalid_input" || got.Code == "internal" {
					t.Errorf("%s: got %d %q %v %s (allowed %t), want allowed %t", who.name, got.http.status, got.Code, err, got.Raw, allowed, want)
				}
			}
		})
	}
}
