package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/devissuer"
)

// somebody calls a route. owns and sits are about the changes of this test, which "agent" prepares for sato and which ask for
// somebody of ads-approvers.
type somebody struct {
	name, person string
	tenant       string
	kind         actor.Kind
	roles        []string
	owns, sits   bool
	scopes       []string
}

// cast ends with those who own the changes: what they do may end one.
var cast = []somebody{
	{name: "nobody"},
	{name: "a person of another tenant", person: "sato", tenant: "elsewhere", kind: actor.Human, roles: []string{"requester"}, scopes: []string{"ads:read", "ads:budget"}},
	{name: "an admin of another tenant", person: "admin", tenant: "elsewhere", kind: actor.Human, roles: []string{"admin"}, scopes: []string{"ads:read"}},
	{name: "another agent", person: "mori-agent", kind: actor.Agent, roles: []string{"requester"}},
	{name: "an approver without seat", person: "hayashi", kind: actor.Human, roles: []string{"approver"}, scopes: []string{"ads:read"}},
	{name: "an auditor", person: "auditor", kind: actor.Human, roles: []string{"auditor"}, scopes: []string{"ads:read"}},
	{name: "an operator", person: "oper", kind: actor.Human, roles: []string{"operator"}, scopes: []string{"ads:read"}},
	{name: "an admin", person: "admin", kind: actor.Human, roles: []string{"admin"}, scopes: []string{"ads:read"}},
	{name: "an approver with a seat", person: "kim", kind: actor.Human, roles: []string{"approver"}, sits: true, scopes: []string{"ads:read"}},
	{name: "the requester", person: "sato", kind: actor.Human, roles: []string{"requester"}, owns: true, scopes: []string{"ads:read", "ads:budget"}},
	{name: "the agent", person: "agent", kind: actor.Agent, roles: []string{"requester"}, owns: true, scopes: []string{"ads:read", "ads:budget"}},
}

// holds reads the table: it is what docs/roles.md says, and not how the services decide.
func (s somebody) holds(p actor.Power, scope string) bool {
	g, known := actor.Of(p)
	if !known || s.person == "" {
		return false
	}
	for _, other := range g.Or {
		if s.holds(other, scope) && (s.tenant == "" || !aboutOne(p)) {
			return true
		}
	}
	foreign := s.tenant != "" // whatever they are, the change is not there for them
	switch {
	case g.Human && s.kind != actor.Human,
		len(g.Roles) > 0 && !slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(s.roles, r) }),
		g.Own && !s.owns, g.Foreign && s.owns, g.Seat && !s.sits, foreign && aboutOne(p),
		g.Scope && !slices.Contains(s.scopes, scope):
		return false
	}
	return true
}

// aboutOne reports whether a power is over one change.
func aboutOne(p actor.Power) bool {
	return slices.Contains([]actor.Power{actor.Read, actor.Request, actor.Apply, actor.Cancel, actor.Decide, actor.Probe, actor.Resolve, actor.Reveal}, p)
}

// exercise is a call of a route that nothing but the caller's powers can refuse with 401, 403 or 404.
type exercise struct {
	scope string
	body  any
	query string
	// before is done before each call.
	before func(r *rig, who somebody)
}

func exercises() map[string]exercise {
	frozen := func(r *rig, who somebody) {
		admin := r.tokenOf(somebody{person: "admin", tenant: who.tenant})
		r.do(ask{method: "POST", path: "/v1/freezes", token: admin, body: object{"kind": "tenant", "reason": "a test of roles"}}).want(r.t, 200, "")
	}
	removed := func(r *rig, who somebody) {
		admin := r.tokenOf(somebody{person: "admin", tenant: who.tenant})
		r.do(ask{method: "POST", path: "/v1/removed-approvers", token: admin, body: object{"person": "somebody", "reason": "a test of roles"}}).want(r.t, 200, "")
	}
	return map[string]exercise{
		"GET /v1/actions":                         {},
		"POST /v1/finds/{tool}":                   {scope: "ads:read", body: object{}},
		"POST /v1/actions/{action}/previews":      {scope: "ads:budget", body: raise(1, 11000)},
		"GET /v1/previews":                        {},
		"GET /v1/previews/export":                 {},
		"GET /v1/previews/{id}":                   {},
		"GET /v1/previews/{id}/why":               {},
		"POST /v1/previews/{id}/approval-request": {scope: "ads:budget", body: object{"justification": "a test"}},
		"POST /v1/previews/{id}/decisions":        {body: object{"decision": "approve", "digest": strings.Repeat("0", 64)}},
		"POST /v1/previews/{id}/apply":            {scope: "ads:budget"},
		"POST /v1/previews/{id}/cancel":           {body: object{}},
		"POST /v1/previews/{id}/undo":             {body: object{"reason": "a test of roles"}},
		"POST /v1/previews/{id}/probe":            {},
		"POST /v1/previews/{id}/resolve":          {body: object{"outcome": "applied", "reason": "a test of roles", "evidence": "a ticket"}},
		"POST /v1/previews/{id}/reveal":           {},
		"GET /v1/freezes":                         {},
		"POST /v1/freezes":                        {body: object{"kind": "tenant", "reason": "a test of roles"}},
		"DELETE /v1/freezes":                      {query: "?kind=tenant", before: frozen},
		"GET /v1/removed-approvers":               {},
		"POST /v1/removed-approvers":              {body: object{"person": "somebody", "reason": "a test of roles"}},
		"DELETE /v1/removed-approvers":            {query: "?person=somebody", before: removed},
		"GET /v1/approvals":                       {},
		"GET /v1/outcomes":                        {},
		"GET /healthz":                            {},
		"GET /readyz":                             {},
		"GET /openapi.yaml":                       {},
		"POST /v1/freezes (everything)":           {body: object{"kind": "everything", "reason": "a test of roles"}},
	}
}

// TestRoles calls every route as everybody and compares what was allowed with the table. Beyond the caller's powers nothing is
// judged: a conflict or another digest was allowed to be heard.
func TestRoles(t *testing.T) {
	t.Parallel()
	routes := append(api.Operations(), api.Operation{Method: "POST", Path: "/v1/freezes (everything)", Power: actor.FreezeEverything})
	all := exercises()
	if len(all) != len(routes) {
		t.Errorf("got %d routes, want each of the %d exercised", len(routes), len(all))
	}
	for _, route := range routes {
		name := route.Method + " " + route.Path
		e, known := all[name]
		if !known {
			t.Errorf("%s: no role is tried on it", name)
			continue
		}
		t.Run(strings.NewReplacer("/", "_", " ", "").Replace(name), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			id := r.prepared(raise(0, 90000))
			path := strings.NewReplacer("{id}", id, "{action}", "budget_change", "{tool}", "campaigns_find", " (everything)", "").Replace(route.Path)
			for _, who := range cast {
				if e.before != nil {
					e.before(r, who)
				}
				got := r.do(ask{method: route.Method, path: path + e.query, token: r.tokenOf(who), body: e.body})
				allowed := got.status != http.StatusUnauthorized && got.status != http.StatusForbidden && got.status != http.StatusNotFound
				want := route.Power == "" || who.holds(route.Power, e.scope)
				if allowed != want || got.status == http.StatusBadRequest || got.status == http.StatusUnprocessableEntity || got.status >= 500 {
					t.Errorf("%s: got %d %s (allowed %t), want allowed %t", who.name, got.status, got.raw, allowed, want)
				}
			}
		})
	}
}

func (r *rig) tokenOf(who somebody) string {
	r.t.Helper()
	if who.person == "" {
		return ""
	}
	var options []devissuer.Option
	if who.tenant != "" {
		options = append(options, devissuer.WithTenant(who.tenant))
	}
	return r.token(who.person, options...)
}
