package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/mcpadapter"
)

const rolesFile = "../../docs/roles.md"

// TestRolesAreDocumented keeps docs/roles.md as the table of powers, the routes and the tools say. -update rewrites it.
func TestRolesAreDocumented(t *testing.T) {
	t.Parallel()
	want := rolesDocument(t)
	if *update {
		if err := os.WriteFile(rolesFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(rolesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("go test ./cmd/cutonce -run Documented -update (-want +got):\n%s", diff)
	}
}

const rolesIntroduction = `# Who may do what

This page is generated from the table that the code checks (` + "`actor.Grants`" + `), the routes and the tools: ` + "`go test ./cmd/cutonce -run Documented -update`" + `.
` + "`go test ./api ./mcpadapter -run Roles`" + ` calls every route and every tool as every role and compares.

A role comes from the token (the claim of ` + "`CUTONCE_ISSUER_CLAIM_ROLES`" + `) and from nothing else: requester, approver, operator, auditor, admin.
A role alone lets nobody decide: an approver is whoever is in a group that the policy's ruling on that change names, and it is that
seat, not the role, that is asked for. The requester's role is for rules to look at: what lets somebody ask is the scope, and
the target's own permission system is asked beside it, at prepare and at apply.

Everything is within one tenant: a change of another tenant is as unknown to everybody as one that does not exist. Only people decide,
reveal, probe, resolve and freeze; a token with ` + "`act`" + `, or of a client that is not configured as people's, is no person's. The console shows and
does the same through the same services: so the human that an agent asked for can press Apply there, if their sign-in holds the scope
(` + "`CUTONCE_SIGNIN_SCOPES`" + `). ` + "`cutonce audit export`" + `, ` + "`restore`" + `, ` + "`migrate`" + ` and ` + "`doctor`" + ` are for whoever holds the
database's URL, and no role or token reaches them.

## Powers

*own*: of the caller, or of the person for whom it was asked. *foreign*: the caller neither asked for it, nor was it asked for them, nor
do they own the agent. *seat*: in a group that the ruling names. *scope*: the token holds what the action or the find tool asks for.

| power | who | role, one of | of the change | or whoever may | checked by |
| --- | --- | --- | --- | --- | --- |
`

func rolesDocument(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(rolesIntroduction)
	for _, g := range actor.Grants() {
		who := "anybody with a token"
		if g.Human {
			who = "people"
		}
		or := make([]string, 0, len(g.Or))
		for _, p := range g.Or {
			or = append(or, string(p))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | `%s` |\n", g.Power, who, dashed(g.Roles), dashed(asked(g)), dashed(or), g.Where)
	}
	b.WriteString("\n## Routes\n\n| route | power |\n| --- | --- |\n")
	for _, r := range api.Operations() {
		power := string(r.Power)
		if power == "" {
			power = "none: anybody, without a token"
		}
		fmt.Fprintf(&b, "| `%s %s` | %s |\n", r.Method, r.Path, power)
	}
	b.WriteString("\nFreezing everything asks for freeze_everything. Nobody restores themselves as an approver. What undoes a change is prepared as any other: with the scope, through the policy.\n")
	b.WriteString("\n## Tools\n\n| tool | power |\n| --- | --- |\n")
	for _, h := range mcpadapter.Powers(everyAction(t)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", h.Tool, h.Power)
	}
	return b.String()
}

func asked(g actor.Grant) []string {
	var all []string
	for _, one := range []struct {
		is   bool
		word string
	}{{g.Own, "own"}, {g.Foreign, "foreign"}, {g.Seat, "seat"}, {g.Scope, "scope"}} {
		if one.is {
			all = append(all, one.word)
		}
	}
	return all
}

func dashed(words []string) string {
	if len(words) == 0 {
		return "–"
	}
	return strings.Join(words, ", ")
}

// everyAction is what this build can serve.
func everyAction(t *testing.T) *connector.Registry {
	t.Helper()
	ads, err := adbudget.New(adbudget.Config{BaseURL: "http://127.0.0.1:1", Token: "x", System: "ads.example/x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ads.Close)
	deploys, err := rollback.New(rollback.Config{BaseURL: "http://127.0.0.1:1", Token: "x", System: "deploys.example/x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deploys.Close)
	all, err := connector.NewRegistry(ads, deploys)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryRouteHasAPower: one that the table does not know would be missing in the document.
func TestEveryRouteHasAPower(t *testing.T) {
	t.Parallel()
	open := map[string]bool{"/healthz": true, "/readyz": true, "/openapi.yaml": true}
	for _, r := range api.Operations() {
		if _, known := actor.Of(r.Power); known == open[r.Path] {
			t.Errorf("%s %s: got the power %q", r.Method, r.Path, r.Power)
		}
	}
	for _, h := range mcpadapter.Powers(everyAction(t)) {
		if _, known := actor.Of(h.Power); !known {
			t.Errorf("%s: got the power %q", h.Tool, h.Power)
		}
	}
}
