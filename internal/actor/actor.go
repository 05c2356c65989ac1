// Package actor says who is calling. An Actor is made from a verified token or session and from nothing else: never from a
// body, a header of the client's own, or what a client says of itself.
package actor

import (
	"slices"
	"strings"
	"time"
)

// Kind is what sort of caller this is. Only humans may decide, resolve or freeze.
type Kind string

// The kinds of caller.
const (
	Agent   Kind = "agent"
	Human   Kind = "human"
	Service Kind = "service"
)

// Roles that people hold, from the token's roles claim.
const (
	RoleRequester = "requester"
	RoleApprover  = "approver"
	RoleOperator  = "operator"
	RoleAuditor   = "auditor"
	RoleAdmin     = "admin"
)

// Actor is one authenticated caller. It is stored with every preview as the requester, so its JSON names are part of the
// schema.
type Actor struct {
	Tenant  string `json:"tenant"`
	Kind    Kind   `json:"kind"`
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	// Client is the OAuth client the token was issued to.
	Client string `json:"client,omitempty"`
	// For is the human on whose behalf an agent calls (the token's subject when it carries an act claim). Empty otherwise.
	For string `json:"for,omitempty"`
	// Owner is the human accountable for an agent that acts for nobody in particular.
	Owner  string   `json:"owner,omitempty"`
	Name   string   `json:"name,omitempty"`
	Locale string   `json:"locale,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Roles  []string `json:"roles,omitempty"`
	// Scopes and AuthTime belong to one token and are not stored.
	Scopes   []string  `json:"-"`
	AuthTime time.Time `json:"-"`
}

// ID names the caller inside its tenant: the same agent for another human is another caller. It scopes idempotency keys and
// ownership.
func (a Actor) ID() string {
	id := string(a.Kind) + ":" + PersonID(a.Issuer, a.Subject)
	if a.For != "" {
		id += "/for:" + a.For
	}
	return id
}

// PersonID names a human across the service. Comparing subjects alone would let two issuers' users pass for each other.
func PersonID(issuer, subject string) string { return issuer + "#" + subject }

// Person is the PersonID of the human behind the call: the caller, or the one an agent acts for. Empty if there is none.
func (a Actor) Person() string {
	switch {
	case a.For != "":
		return PersonID(a.Issuer, a.For)
	case a.Kind == Human:
		return PersonID(a.Issuer, a.Subject)
	}
	return ""
}

// HumanName is how the human behind the call is named towards targets and in logs: the subject of the person, or of the
// agent's owner. Empty if no human is known.
func (a Actor) HumanName() string {
	switch {
	case a.For != "":
		return a.For
	case a.Kind == Human:
		return a.Subject
	}
	return a.Owner
}

// Involves reports whether this person is the caller, the human the caller acts for, or the caller's owner. See SamePerson for
// how people are compared.
func (a Actor) Involves(person string) bool {
	for _, subject := range []string{a.Subject, a.For, a.Owner} {
		if subject != "" && SamePerson(PersonID(a.Issuer, subject), person) {
			return true
		}
	}
	return false
}

// SamePerson compares people where taking two for one is the safe mistake: who may not decide, and who has decided already.
// The issuer does not count, because one person may be known to two of them (agents to one, people to another), and neither
// does capitalisation, because identity providers treat addresses so.
func SamePerson(a, b string) bool { return strings.EqualFold(SubjectOf(a), SubjectOf(b)) }

// SubjectOf is a person's name without the issuer that knows it.
func SubjectOf(person string) string {
	if _, subject, ok := strings.Cut(person, "#"); ok {
		return subject
	}
	return person
}

// InGroup reports whether the caller is in one of the groups.
func (a Actor) InGroup(groups ...string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(a.Groups, g) })
}

// Missing returns those of the wanted scopes that the token does not hold. A scope "ads" covers every "ads:…".
func (a Actor) Missing(want ...string) []string {
	var missing []string
	for _, scope := range want {
		family, _, _ := strings.Cut(scope, ":")
		if !slices.Contains(a.Scopes, scope) && !slices.Contains(a.Scopes, family) {
			missing = append(missing, scope)
		}
	}
	return missing
}
