package verify

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// standIn signs as a configured issuer would, with keys that this run has put into the place of the issuer's own.
type standIn struct {
	key    ed25519.PrivateKey
	issuer TokenIssuer
	now    time.Time
	judge  func(ctx context.Context, raw string) (actor.Actor, error)
}

const standInKey = "verify"

var identity = Check{
	ID: "identity", Promise: "With your issuers' names, audiences, clients and claims, who calls is told exactly: nobody by a token for another, and no agent as a person",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		t := b.cfg.Tokens
		if len(t.Issuers) == 0 || t.StandIn == nil {
			return Proof{}, notApplicable("no identity provider is configured")
		}
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return Proof{}, err
		}
		judge, err := t.StandIn(keySetOf(public))
		if err != nil {
			return Proof{}, err
		}
		for _, i := range t.Issuers {
			s := standIn{key: key, issuer: i, now: b.cfg.Now(), judge: judge}
			for _, look := range []func(context.Context) error{s.people, s.agents, s.refused} {
				if err := look(ctx); err != nil {
					return Proof{}, err
				}
			}
		}
		return Proof{
			Control: "tokens as your issuers write them, signed by keys that stood in for theirs, were a person's and an agent's as their clients and act claims say",
			Refusal: "another issuer, audience, algorithm, key or time was refused, and so was a tenant that is not the issuer's; no agent passed for a person, and none acts for somebody it does not know in capitals",
		}, nil
	},
}

// keySetOf is what an issuer would publish.
func keySetOf(public ed25519.PublicKey) []byte {
	return []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","use":"sig","alg":"EdDSA","kid":"` + standInKey + `","x":"` +
		base64.RawURLEncoding.EncodeToString(public) + `"}]}`)
}

// claims are those of a person of the issuer.
func (s standIn) claims(subject string) map[string]any {
	c := map[string]any{
		"iss": s.issuer.URL, "aud": s.issuer.Audience, "sub": subject, "exp": s.now.Add(time.Hour).Unix(), "iat": s.now.Unix(),
	}
	s.client(c, s.issuer.Client)
	put(c, s.issuer.TenantClaim, s.tenant())
	return c
}

func (s standIn) tenant() string {
	if s.issuer.Tenant != "" {
		return s.issuer.Tenant
	}
	return tenant
}

func (s standIn) client(c map[string]any, name string) {
	c["client_id"], c["azp"] = name, name
	if s.issuer.ClientClaim != "" {
		put(c, s.issuer.ClientClaim, name)
	}
}

// put sets a claim by its name, or by a dotted path.
func put(c map[string]any, path string, value any) {
	head, rest, nested := strings.Cut(path, ".")
	if !nested {
		c[path] = value
		return
	}
	inner, ok := c[head].(map[string]any)
	if !ok {
		inner = map[string]any{}
		c[head] = inner
	}
	put(inner, rest, value)
}

// sign writes a token. alter changes the header.
func (s standIn) sign(claims map[string]any, alter func(header map[string]any)) (string, error) {
	header := map[string]any{"alg": "EdDSA", "typ": "at+jwt", "kid": standInKey}
	if alter != nil {
		alter(header)
	}
	message, err := encoded(header, claims)
	if err != nil {
		return "", err
	}
	signature := ed25519.Sign(s.key, []byte(message))
	if header["alg"] == "HS256" { // with the public key, which everybody knows, as its secret
		mac := hmac.New(sha256.New, s.key.Public().(ed25519.PublicKey))
		mac.Write([]byte(message))
		signature = mac.Sum(nil)
	}
	return message + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func (s standIn) known(ctx context.Context, claims map[string]any) (actor.Actor, error) {
	token, err := s.sign(claims, nil)
	if err != nil {
		return actor.Actor{}, err
	}
	return s.judge(ctx, token)
}

func (s standIn) people(ctx context.Context) error {
	who, err := s.known(ctx, s.claims("kim@verify.invalid"))
	if err != nil {
		return fail("a token as %s writes them for %s was told %v", s.issuer.URL, s.issuer.Client, err)
	}
	if who.Kind != actor.Human || who.Issuer != s.issuer.URL || who.Subject != "kim@verify.invalid" || who.Tenant != s.tenant() {
		return fail("a token as %s writes them for a person of %s is %s of %s in %q", s.issuer.URL, s.tenant(), who.Kind, who.Subject, who.Tenant)
	}
	return nil
}

// agents looks at everything that is no person's token, though its subject is one.
func (s standIn) agents(ctx context.Context) error {
	acting := s.claims("kim@verify.invalid")
	acting["act"] = map[string]any{"sub": "bot"}
	stranger, itself := s.claims("kim@verify.invalid"), s.claims(s.issuer.Client)
	s.client(stranger, "verify-some-other-client")
	all := map[string]map[string]any{"with an act claim": acting, "of a client that is not named as people's": stranger, "that a client got for itself": itself}
	if s.issuer.AgentClient != "" {
		named := s.claims("kim@verify.invalid")
		s.client(named, s.issuer.AgentClient)
		all["of an agents' client"] = named
	}
	for what, claims := range all {
		who, err := s.known(ctx, claims)
		switch {
		case err == nil && who.Kind == actor.Human:
			return fail("a token of %s %s passes for a person's", s.issuer.URL, what)
		case err == nil && what == "with an act claim" && (who.Kind != actor.Agent || !who.Involves(actor.PersonID("https://another.invalid", "KIM@verify.invalid"))):
			return fail("an agent that acts for somebody is not known to act for them in capitals and by another issuer")
		case err != nil && !errors.Is(err, fault.Unauthenticated):
			return err
		}
	}
	return nil
}

// refused looks at tokens that are right but for one thing.
func (s standIn) refused(ctx context.Context) error {
	type wrong struct {
		claims func(c map[string]any)
		header func(h map[string]any)
	}
	past, future := s.now.Add(-time.Hour).Unix(), s.now.Add(time.Hour).Unix()
	all := map[string]wrong{
		"of an issuer that resembles it":     {claims: func(c map[string]any) { c["iss"] = s.issuer.URL + "/" }},
		"of an issuer that is not known":     {claims: func(c map[string]any) { c["iss"] = "https://another.invalid" }},
		"for another audience":               {claims: func(c map[string]any) { c["aud"] = "https://another.invalid" }},
		"for a longer audience":              {claims: func(c map[string]any) { c["aud"] = s.issuer.Audience + ".invalid" }},
		"for no audience":                    {claims: func(c map[string]any) { delete(c, "aud") }},
		"that has expired":                   {claims: func(c map[string]any) { c["exp"] = past }},
		"that never expires":                 {claims: func(c map[string]any) { delete(c, "exp") }},
		"that is not valid yet":              {claims: func(c map[string]any) { c["nbf"] = future }},
		"of nobody":                          {claims: func(c map[string]any) { delete(c, "sub") }},
		"without a signature":                {header: func(h map[string]any) { h["alg"] = "none" }},
		"signed with the public key":         {header: func(h map[string]any) { h["alg"] = "HS256" }},
		"by an algorithm the key is not for": {header: func(h map[string]any) { h["alg"] = "ES256" }},
		"by a key that is not published":     {header: func(h map[string]any) { h["kid"] = "another" }},
		"that is an ID token":                {header: func(h map[string]any) { h["typ"] = "id_token" }},
	}
	if s.issuer.OneTenant {
		all["for a tenant that is not the issuer's"] = wrong{claims: func(c map[string]any) { put(c, s.issuer.TenantClaim, "verify-another-tenant") }}
	}
	for what, w := range all {
		claims := maps.Clone(s.claims("kim@verify.invalid"))
		if w.claims != nil {
			w.claims(claims)
		}
		token, err := s.sign(claims, w.header)
		if err != nil {
			return err
		}
		who, err := s.judge(ctx, token)
		if err == nil {
			return fail("a token of %s %s was accepted as %s", s.issuer.URL, what, who.ID())
		}
		if !errors.Is(err, fault.Unauthenticated) && !errors.Is(err, fault.Forbidden) {
			return fail("a token of %s %s was told %v, want unauthenticated", s.issuer.URL, what, err)
		}
	}
	return nil
}
