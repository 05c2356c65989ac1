package auth

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

const (
	maxActors = 5    // links of an act chain
	maxItems  = 1000 // groups, roles or scopes
)

// claims is a verified token's payload.
type claims map[string]any

// at finds a claim by its name, else by a dotted path.
func (c claims) at(name string) any {
	if value, ok := c[name]; ok {
		return value
	}
	head, rest, nested := strings.Cut(name, ".")
	inner, ok := c[head].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return claims(inner).at(rest)
}

func (c claims) text(name string) string {
	s, _ := c.at(name).(string)
	return s
}

// id reads an optional claim that names someone or something.
func (c claims) id(name string) (string, error) {
	value := c.at(name)
	if value == nil {
		return "", nil
	}
	s, ok := value.(string)
	if !ok || !isIdentity(s) {
		return "", refuse("claim", fault.Args{"claim": name})
	}
	return s, nil
}

// display reads an optional claim that is only shown.
func (c claims) display(name string) (string, error) {
	value := c.at(name)
	if value == nil {
		return "", nil
	}
	s, ok := value.(string)
	if !ok || !isDisplayName(s) {
		return "", refuse("claim", fault.Args{"claim": name})
	}
	return s, nil
}

// list reads an optional claim that holds one name or several.
func (c claims) list(name string, valid func(string) bool) ([]string, error) {
	bad := refuse("claim", fault.Args{"claim": name})
	var out []string
	switch value := c.at(name).(type) {
	case nil:
		return nil, nil
	case string:
		out = []string{value}
	case []any:
		if len(value) > maxItems {
			return nil, bad
		}
		for _, item := range value {
			s, ok := item.(string)
			if !ok {
				return nil, bad
			}
			out = append(out, s)
		}
	default:
		return nil, bad
	}
	if slices.ContainsFunc(out, func(s string) bool { return !valid(s) }) {
		return nil, bad
	}
	return out, nil
}

// scopes reads RFC 9068's scope (names separated by spaces) or the scp list that some issuers write instead.
func (c claims) scopes() ([]string, error) {
	name := "scope"
	if c["scope"] == nil {
		name = "scp"
	}
	if joined, ok := c[name].(string); ok {
		names := strings.Fields(joined)
		if len(names) > maxItems || slices.ContainsFunc(names, func(s string) bool { return !isScope(s) }) {
			return nil, refuse("claim", fault.Args{"claim": name})
		}
		return names, nil
	}
	return c.list(name, isScope)
}

// authTime reads when the person last signed in; zero if the token does not say.
func (c claims) authTime() (time.Time, error) {
	value := c["auth_time"]
	if value == nil {
		return time.Time{}, nil
	}
	number, _ := value.(json.Number)
	seconds, err := number.Int64()
	if err != nil || seconds < 0 {
		return time.Time{}, refuse("claim", fault.Args{"claim": "auth_time"})
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// isIDToken recognises OpenID Connect tokens that are meant for a client's eyes or for the token endpoint, by what only
// they carry.
func (c claims) isIDToken() bool {
	kind, typed := c["typ"].(string)
	return c["at_hash"] != nil || c["c_hash"] != nil || typed && !strings.EqualFold(kind, "Bearer")
}

// typeAllowed accepts RFC 9068 access tokens and, unless told otherwise, plain JWTs.
func typeAllowed(header map[string]any, accessTokenOnly bool) bool {
	value, present := header["typ"]
	if !present {
		return !accessTokenOnly
	}
	typ, _ := value.(string)
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "at+jwt":
		return true
	case "jwt":
		return !accessTokenOnly
	}
	return false
}

// actorOf maps verified claims to the caller. See identify for who counts as what.
func (i *issuer) actorOf(c claims) (actor.Actor, error) {
	a := actor.Actor{Issuer: i.URL}
	for _, read := range []func(claims, *actor.Actor) error{i.readTenant, i.readPerson, i.readPowers, i.identify} {
		if err := read(c, &a); err != nil {
			return actor.Actor{}, err
		}
	}
	return a, nil
}

func (i *issuer) readTenant(c claims, a *actor.Actor) (err error) {
	if a.Tenant, err = c.id(i.Claims.Tenant); err != nil {
		return err
	}
	if a.Tenant == "" {
		a.Tenant = i.Tenant
	}
	if a.Tenant == "" {
		return refuse("claim", fault.Args{"claim": i.Claims.Tenant})
	}
	if len(i.Tenants) > 0 && !slices.Contains(i.Tenants, a.Tenant) {
		return refuse("tenant", nil)
	}
	return nil
}

func (i *issuer) readPerson(c claims, a *actor.Actor) (err error) {
	if a.Subject, err = c.id("sub"); err != nil {
		return err
	}
	if a.Name, err = c.display("name"); err != nil {
		return err
	}
	if a.Locale, err = c.id("locale"); err != nil {
		return err
	}
	if a.Owner, err = c.id(i.Claims.Owner); err != nil {
		return err
	}
	a.AuthTime, err = c.authTime()
	return err
}

func (i *issuer) readPowers(c claims, a *actor.Actor) (err error) {
	if a.Groups, err = c.list(i.Claims.Groups, isIdentity); err != nil {
		return err
	}
	if a.Roles, err = c.list(i.Claims.Roles, isIdentity); err != nil {
		return err
	}
	a.Scopes, err = c.scopes()
	return err
}
