package preview_test

import (
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func TestStatesAndMoves(t *testing.T) {
	t.Parallel()
	open := map[preview.State]bool{preview.NeedsApproval: true, preview.Pending: true, preview.Approved: true}
	final := map[preview.State]bool{preview.Denied: true, preview.Rejected: true, preview.Canceled: true, preview.Expired: true}
	for _, s := range preview.States() {
		if got, want := s.Open(), open[s]; got != want {
			t.Errorf("%s open: got %v, want %v", s, got, want)
		}
		if got, want := s.Final(), final[s]; got != want {
			t.Errorf("%s final: got %v, want %v", s, got, want)
		}
		if s.Open() != s.CanBecome(preview.Canceled) || s.Open() != s.CanBecome(preview.Expired) {
			t.Errorf("%s: what is open can be canceled and expire, and nothing else can", s)
		}
		// The backup that was restored may not know of an approval: see the schema's guard_claim.
		if s.CanBecome(preview.Claimed) != s.Open() {
			t.Errorf("%s: what is open can be claimed, and nothing else can", s)
		}
	}
}

func TestIDsReadBackAndOnlyTheirOwnSpelling(t *testing.T) {
	t.Parallel()
	id := preview.NewID()
	text := id.String()
	if got, ok := preview.ParseID(text); !ok || got != id {
		t.Errorf("got %v, %v, want %v", got, ok, id)
	}
	for _, wrong := range []string{
		"", "pv_", text[3:], text + "0", text[:len(text)-1], strings.ToUpper(text), "pv_" + strings.ToUpper(text[3:]),
		text[:len(text)-1] + "z", text[:5] + "u" + text[6:], text[:5] + "\n" + text[6:], " " + text, text + " ", id.UUID().String(),
	} {
		if got, ok := preview.ParseID(wrong); ok {
			t.Errorf("%q was read as %v", wrong, got)
		}
	}
}

func TestWhoOwnsAndWhoMayRead(t *testing.T) {
	t.Parallel()
	bot := actor.Actor{Tenant: "acme", Kind: actor.Agent, Issuer: "i", Subject: "bot", For: "sato", Owner: "mori"}
	p := preview.Preview{Tenant: "acme", Requester: bot, Ruling: policy.Ruling{Needs: policy.Requirement{{AnyOf: []string{"leads"}, Count: 1}}}}
	human := func(name string) actor.Actor {
		return actor.Actor{Tenant: "acme", Kind: actor.Human, Issuer: "i", Subject: name}
	}
	with := func(a actor.Actor, change func(*actor.Actor)) actor.Actor { change(&a); return a }
	for _, tc := range []struct {
		name       string
		who        actor.Actor
		owns, read bool
	}{
		{"the requester", bot, true, true},
		{"the human it acts for", human("sato"), true, true},
		{"the same agent for another", with(bot, func(a *actor.Actor) { a.For = "kim" }), false, false},
		{"another agent for the same human", with(bot, func(a *actor.Actor) { a.Subject = "bot2" }), false, false},
		{"the same name from another issuer", with(human("sato"), func(a *actor.Actor) { a.Issuer = "j" }), false, false},
		{"the same name in another tenant", with(human("sato"), func(a *actor.Actor) { a.Tenant = "other" }), false, false},
		{"a colleague without a role", human("kim"), false, false},
		{"an approver", with(human("kim"), func(a *actor.Actor) { a.Roles = []string{actor.RoleApprover} }), false, true},
		{"a person with a seat", with(human("kim"), func(a *actor.Actor) { a.Groups = []string{"leads"} }), false, true},
		{"an agent with a seat", with(bot, func(a *actor.Actor) { a.Subject, a.Groups = "bot2", []string{"leads"} }), false, false},
		{"an auditor of another tenant", with(human("kim"), func(a *actor.Actor) { a.Tenant, a.Roles = "other", []string{actor.RoleAuditor} }), false, false},
	} {
		if got := preview.Owns(tc.who, p); got != tc.owns {
			t.Errorf("%s owns: got %v, want %v", tc.name, got, tc.owns)
		}
		if got := preview.MayRead(tc.who, p); got != tc.read {
			t.Errorf("%s may read: got %v, want %v", tc.name, got, tc.read)
		}
	}
}

func TestFreeTextsThatCannotBeStoredAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		ok         bool
	}{
		{"plain", "because", true}, {"two characters suffice", "却下", true}, {"lines", "a\nb\tc", true}, {"at the limit", strings.Repeat("あ", 20), true},
		{"too short", " a ", false}, {"too long", strings.Repeat("あ", 21), false}, {"NUL", "be\x00cause", false}, {"not UTF-8", "be\xffcause", false},
	} {
		if err := preview.CheckText("/reason", tc.text, 2, 20); (err == nil) != tc.ok {
			t.Errorf("%s: got %v", tc.name, err)
		}
	}
}
