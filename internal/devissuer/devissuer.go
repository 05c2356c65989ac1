// Package devissuer is an authorization server for development: a key in a directory, a few invented people, and tokens for
// whoever asks on this machine.
//
// The promise: its tokens are real (signed, for one audience, with times and scopes), so that development runs through the
// same verification as production; the key survives a restart, so what was printed stays valid; it answers loopback only
// unless Config.AllowRemote says otherwise.
//
// What it does not promise is security: anyone who can read its directory is everyone. It must never be reachable from a
// service in production. Therefore only the development command imports this package; the command that serves production
// neither imports it nor has a setting that could turn it on, and a service trusts this issuer only if it is configured to.
//
// Start at New; Handler serves the keys, Token mints, SignInPath and CheckSignIn are the console's way in.
package devissuer

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// A printed token stays the same for renewEvery and is valid for lifetime from the start of that span, so at least
// lifetime-renewEvery is left whenever one is printed.
const (
	lifetime   = 30 * 24 * time.Hour
	renewEvery = 23 * 24 * time.Hour
)

// Config says where the issuer keeps its key and what it puts into tokens.
type Config struct {
	// Dir holds the key. It is created, for its owner alone, if need be.
	Dir string
	// URL is the iss claim, and where Handler is reachable.
	URL string
	// Audience is the service that the tokens are for.
	Audience string
	// Tenant of everybody (default "dev").
	Tenant string
	// People that exist; default DefaultPeople.
	People []Person
	// AllowRemote lets Handler answer other machines.
	AllowRemote bool

	Now  func() time.Time
	Rand io.Reader // makes the key on the first start
}

// Issuer mints tokens. It is safe for concurrent use.
type Issuer struct {
	cfg    Config
	base   *url.URL
	key    ed25519.PrivateKey
	keyID  string
	people map[string]Person
}

// ErrUnknownPerson is returned for a name that is nobody's.
var ErrUnknownPerson = errors.New("no such person at the development issuer")

// ErrSignIn is returned for a sign-in link that this issuer has not made, or that is not a human's.
var ErrSignIn = errors.New("not a sign-in link of this development issuer")

// New loads the key of cfg.Dir, or makes one.
func New(cfg Config) (*Issuer, error) {
	if cfg.Now == nil || cfg.Rand == nil || cfg.Audience == "" {
		return nil, errors.New("starting the development issuer: a clock, randomness and an audience are needed")
	}
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Fragment != "" {
		return nil, fmt.Errorf("starting the development issuer: %q is not a usable URL", cfg.URL)
	}
	key, err := loadOrCreateKey(cfg.Dir, cfg.Rand)
	if err != nil {
		return nil, fmt.Errorf("starting the development issuer: %w", err)
	}
	cfg.Tenant = cmp.Or(cfg.Tenant, "dev")
	if cfg.People == nil {
		cfg.People = DefaultPeople()
	}
	i := &Issuer{cfg: cfg, base: base, key: key, keyID: thumbprint(key), people: map[string]Person{}}
	for _, p := range cfg.People {
		i.people[p.ID] = p
	}
	return i, nil
}

// URL is the issuer's name, as a verifier must be configured with.
func (i *Issuer) URL() string { return i.cfg.URL }

// JWKSURL is where the public key is.
func (i *Issuer) JWKSURL() string { return strings.TrimSuffix(i.cfg.URL, "/") + "/jwks.json" }

// AgentClients are the clients that a verifier must hold for agents.
func (i *Issuer) AgentClients() []string { return []string{AgentClient} }

// People lists who exists, in a fixed order.
func (i *Issuer) People() []Person { return append([]Person(nil), i.cfg.People...) }

// Option changes one token.
type Option func(jwt.MapClaims)

// WithScopes replaces the person's usual scopes.
func WithScopes(scopes ...string) Option {
	return func(c jwt.MapClaims) { c["scope"] = strings.Join(scopes, " ") }
}

// WithAudience makes a token for another service.
func WithAudience(audience ...string) Option {
	return func(c jwt.MapClaims) { c["aud"] = audience }
}

// WithTenant puts the person into another tenant.
func WithTenant(tenant string) Option {
	return func(c jwt.MapClaims) { c["tenant"] = tenant }
}

// WithLife makes a token that begins then and lives so long, instead of the stable one. The sign-in counts as made then.
func WithLife(from time.Time, life time.Duration) Option {
	return func(c jwt.MapClaims) {
		c["iat"], c["exp"] = from.Unix(), from.Add(life).Unix()
		if _, person := c["auth_time"]; person {
			c["auth_time"] = from.Unix()
		}
	}
}

// Token mints an access token for a person, by ID. Without WithLife it is the same token for weeks, over restarts, and has
// at least a week left.
func (i *Issuer) Token(person string, options ...Option) (string, error) {
	p, ok := i.people[person]
	if !ok {
		return "", fmt.Errorf("%w: %q", ErrUnknownPerson, person)
	}
	from := i.cfg.Now().Truncate(renewEvery)
	c := jwt.MapClaims{
		"iss": i.cfg.URL, "aud": i.cfg.Audience, "tenant": i.cfg.Tenant,
		"iat": from.Unix(), "exp": from.Add(lifetime).Unix(),
	}
	p.claim(c, from)
	for _, option := range options {
		option(c)
	}
	c["jti"] = i.tokenID(p.ID, c)
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	token.Header["typ"], token.Header["kid"] = "at+jwt", i.keyID
	signed, err := token.SignedString(i.key)
	if err != nil {
		return "", fmt.Errorf("signing a development token: %w", err)
	}
	return signed, nil
}

// tokenID is derived, not random, so that the same token comes out again.
func (i *Issuer) tokenID(person string, c jwt.MapClaims) string {
	digest := sha256.Sum256(fmt.Append(nil, person, c["iat"], c["exp"], c["scope"]))
	return hex.EncodeToString(digest[:16])
}

// SignInPath is the link that signs a person in at the console, below the console's root. It holds as long as the key.
func (i *Issuer) SignInPath(person string) (string, error) {
	p, ok := i.people[person]
	if !ok || p.Agent {
		return "", fmt.Errorf("%w: %q", ErrUnknownPerson, person)
	}
	return "/dev/sign-in?" + url.Values{"person": {person}, "code": {i.code(person)}}.Encode(), nil
}

// CheckSignIn verifies the two values of a sign-in link and returns a fresh token of that person. The console verifies it
// like any other: there is one way from a token to an actor.
func (i *Issuer) CheckSignIn(person, code string) (string, error) {
	p, ok := i.people[person]
	if !hmac.Equal([]byte(code), []byte(i.code(person))) || !ok || p.Agent {
		return "", ErrSignIn
	}
	return i.Token(person, WithLife(i.cfg.Now(), time.Hour))
}

func (i *Issuer) code(person string) string {
	mac := hmac.New(sha256.New, i.key.Seed())
	mac.Write([]byte("cutonce development sign-in\x00" + strconv.Itoa(len(person)) + person))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
