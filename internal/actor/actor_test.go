package actor_test

import (
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
