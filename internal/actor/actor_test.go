package actor_test

import (
	"slices"
	"testing"

	"github.com/cutonce/cutonce/internal/actor"
)

// One person may be known to two issuers: agents to one, people to another.
func TestInvolvesWhoeverKnowsThem(t *testing.T) {
	t.Parallel()
	a := actor.Actor{Kind: actor.Agent, Issuer: "https://agents.example", Subject: "bot", For: "Kim@agency.example", Owner: "ito"}
	for person, want := range map[string]bool{
		"https://agents.example#kim@agency.example": true,
		"https://people.example#KIM@agency.example": true,
		"https://people.example#ito":                true,
		"https://people.example#bot":                true,
		"https://people.example#tanaka":             false,
		"https://people.example#":                   false,
		"":                                          false,
	} {
		if got := a.Involves(person); got != want {
			t.Errorf("%q: got %t, want %t", person, got, want)
		}
	}
}

func TestPersonBehindACall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		who                      actor.Actor
		person, human, callerIDs string
	}{
		{actor.Actor{Kind: actor.Human, Issuer: "i", Subject: "kim"}, "i#kim", "kim", "human:i#kim"},
		{actor.Actor{Kind: actor.Agent, Issuer: "i", Subject: "bot", For: "kim"}, "i#kim", "kim", "agent:i#bot/for:kim"},
		{actor.Actor{Kind: actor.Agent, Issuer: "i", Subject: "bot", Owner: "ito"}, "", "ito", "agent:i#bot"},
		{actor.Actor{Kind: actor.Service, Issuer: "i", Subject: "cron"}, "", "", "service:i#cron"},
	} {
		if tc.who.Person() != tc.person || tc.who.HumanName() != tc.human || tc.who.ID() != tc.callerIDs {
			t.Errorf("%+v: got %q, %q, %q, want %q, %q, %q", tc.who, tc.who.Person(), tc.who.HumanName(), tc.who.ID(), tc.person, tc.human, tc.callerIDs)
		}
	}
}

func TestScopesOfAFamily(t *testing.T) {
	t.Parallel()
	a := actor.Actor{Scopes: []string{"ads", "deploy:read"}}
	if got := a.Missing("ads:budget", "deploy:read", "deploy:rollback"); len(got) != 1 || got[0] != "deploy:rollback" {
		t.Errorf("got %v, want only deploy:rollback", got)
	}
}

// TestWhoMay spells out what kind and roles alone give; what else a power asks for is checked where the change is known.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	everybody := []actor.Power{actor.Call, actor.Find, actor.Read, actor.Prepare, actor.Request, actor.Apply, actor.Cancel}
	people := append(everybody[:len(everybody):len(everybody)], actor.Queue, actor.Decide, actor.Veto, actor.Confirm, actor.SeeFreezes)
	with := func(more ...actor.Power) []actor.Power { return append(people[:len(people):len(people)], more...) }
	for name, c := range map[string]struct {
		who  actor.Actor
		want []actor.Power
	}{
		"an agent with every role":   {actor.Actor{Kind: actor.Agent, Roles: []string{"requester", "approver", "operator", "auditor", "admin"}}, everybody},
		"a service with every role":  {actor.Actor{Kind: actor.Service, Roles: []string{"approver", "operator", "auditor", "admin"}}, everybody},
		"somebody without a role":    {actor.Actor{Kind: actor.Human}, people},
		"somebody with an odd role":  {actor.Actor{Kind: actor.Human, Roles: []string{"Admin", "root"}}, people},
		"a requester":                {actor.Actor{Kind: actor.Human, Roles: []string{"requester"}}, people},
		"an approver":                {actor.Actor{Kind: actor.Human, Roles: []string{"approver"}}, with(actor.ReadAll)},
		"an auditor":                 {actor.Actor{Kind: actor.Human, Roles: []string{"auditor"}}, with(actor.ReadAll, actor.Export, actor.Reveal)},
		"an operator":                {actor.Actor{Kind: actor.Human, Roles: []string{"operator"}}, with(actor.ReadAll, actor.Export, actor.Probe, actor.Resolve, actor.Reveal, actor.Freeze)},
		"an admin":                   {actor.Actor{Kind: actor.Human, Roles: []string{"admin"}}, with(actor.ReadAll, actor.Export, actor.Probe, actor.Resolve, actor.Reveal, actor.Freeze, actor.FreezeEverything, actor.RemoveApprover)},
		"a requester who is auditor": {actor.Actor{Kind: actor.Human, Roles: []string{"requester", "auditor"}}, with(actor.ReadAll, actor.Export, actor.Reveal)},
	} {
		for _, g := range actor.Grants() {
			if got, want := c.who.May(g.Power), slices.Contains(c.want, g.Power); got != want {
				t.Errorf("%s, %s: got %t, want %t", name, g.Power, got, want)
			}
		}
	}
	if (actor.Actor{Kind: actor.Human, Roles: []string{"admin"}}).May("fly") {
		t.Error("a power that is not in the table is held")
	}
}
