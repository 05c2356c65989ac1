package auth

import (
	"fmt"
	"slices"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Person says who has signed in at a configured issuer through the client of a console, from claims that the caller has
// verified (an ID token's, with what the userinfo endpoint adds). They are mapped as a token's are. Fault: unauthenticated,
// for claims that name nobody, or somebody who acts for another.
func (v *Verifier) Person(issuerURL, client string, verified map[string]any, granted []string) (actor.Actor, error) {
	i, ok := v.issuers[issuerURL]
	if !ok {
		return actor.Actor{}, fmt.Errorf("signing in at %s: it is not a configured issuer", issuerURL)
	}
	c := claims(verified)
	switch {
	case c["sub"] == nil:
		return actor.Actor{}, refuse("claim", fault.Args{"claim": "sub"})
	case c["act"] != nil:
		return actor.Actor{}, refuse("act", nil)
	}
	a := actor.Actor{Issuer: i.URL, Kind: actor.Human, Client: client}
	for _, read := range []func(claims, *actor.Actor) error{i.readTenant, i.readPerson, i.readPowers} {
		if err := read(c, &a); err != nil {
			return actor.Actor{}, err
		}
	}
	a.Owner = "" // people answer for themselves
	a.Scopes = slices.DeleteFunc(slices.Clone(granted), func(s string) bool { return !isScope(s) })
	return a, nil
}

// WantedClaims are the claims beside the subject that say what somebody may do at an issuer.
func (v *Verifier) WantedClaims(issuerURL string) []string {
	i, ok := v.issuers[issuerURL]
	if !ok {
		return nil
	}
	return []string{i.Claims.Tenant, i.Claims.Groups, i.Claims.Roles, "name", "locale"}
}
