// Package auth turns an access token into an actor.Actor, and refuses everything else.
//
// The promise: an Actor comes out only if the token was signed, with an allowed asymmetric algorithm, by a key that a
// configured issuer publishes now, for this service (audience), and is within its times. Every refusal is an
// "unauthenticated" fault whose key names the cause; none repeats any part of the token. A token is never stored and never
// passed on. A key that its issuer removes stops working within Config.KeysRefresh (or Config.KeysMaxAge while the issuer
// does not answer).
//
// What it does not promise: that the actor may do what it asks (scopes and permissions are checked at every call by those
// who serve it), or that a token revoked at its issuer stops working before it expires.
//
// Start at New and Verifier.Verify; FromRequest finds the token, Challenge and Metadata tell a client how to get one.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Config says whose tokens are accepted and for what. Zero values take the stated defaults.
type Config struct {
	// Issuers are the authorization servers. A token's iss must equal one URL exactly.
	Issuers []Issuer
	// Audiences are this service's names (its resource identifiers). A token must name at least one of them.
	Audiences []string
	// Algorithms that are accepted; default DefaultAlgorithms. Only asymmetric ones may be named.
	Algorithms []string
	// Leeway is how far the issuer's clock may be from ours (default 30 s, at most 5 min).
	Leeway time.Duration
	// MaxTokenBytes bounds what is even looked at (default 16 KiB).
	MaxTokenBytes int
	// KeysRefresh is how old an issuer's keys may become before they are asked for again (default 5 min).
	KeysRefresh time.Duration
	// KeysMaxAge is how long keys are used while the issuer cannot be reached (default 1 h); after that its tokens are
	// refused until it answers.
	KeysMaxAge time.Duration
	// KeysMinInterval is the least time between two requests to one issuer, whatever tokens arrive (default 10 s).
	KeysMinInterval time.Duration
	// CacheFor is how long a verified token is remembered (default 60 s, never beyond its expiry or its key; negative: not).
	CacheFor time.Duration

	Now  func() time.Time
	HTTP *http.Client
	Log  *slog.Logger
}

// Issuer is one trusted authorization server.
type Issuer struct {
	// URL is the exact iss claim. https, or http on loopback.
	URL string
	// JWKSURL is where its keys are. If empty, the issuer's metadata document is asked for it.
	JWKSURL string
	// AgentClients are the OAuth clients whose tokens are always an agent's.
	AgentClients []string
	// HumanClients, if set, are the only clients whose tokens may be a person's: any other client's token for a person is an
	// agent acting for that person. Set it where clients may register themselves.
	HumanClients []string
	// Tenant is the tenant of tokens that carry no tenant claim. If empty, the claim is required.
	Tenant string
	// Tenants, if set, are the only tenants that this issuer may speak for.
	Tenants []string
	// AccessTokenTypeOnly refuses tokens whose typ header is not at+jwt (RFC 9068).
	AccessTokenTypeOnly bool
	// Claims names the claims that issuers spell differently.
	Claims ClaimNames
}

// ClaimNames maps what we need to the issuer's names. A name is looked up as it is, then as a dotted path
// ("realm_access.roles").
type ClaimNames struct {
	Tenant string // default "tenant"
	Groups string // default "groups"
	Roles  string // default "roles"
	Owner  string // default "owner"
	Client string // default "client_id", else "azp"
}

// DefaultAlgorithms are accepted unless Config.Algorithms says otherwise.
var DefaultAlgorithms = []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"}

// allowed is every algorithm that may be configured: none is symmetric, so a public key can never serve as a secret.
var allowed = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// ErrIssuerUnreachable is the cause of the fault when a token cannot be judged because its issuer's keys are not known.
var ErrIssuerUnreachable = errors.New("the issuer's keys are not available")

// Verifier judges tokens. It is safe for concurrent use.
type Verifier struct {
	cfg     Config
	issuers map[string]*issuer
	parser  *jwt.Parser
	cache   *cache
}

// issuer is a configured Issuer with its keys.
type issuer struct {
	Issuer
	keys *keySet
}

// New checks the configuration and returns a Verifier. It asks no issuer for anything yet: an issuer that is down must not
// keep the service from starting. ctx is the parent of every request for keys.
func New(ctx context.Context, cfg Config) (*Verifier, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("configuring token verification: %w", err)
	}
	v := &Verifier{cfg: cfg, issuers: map[string]*issuer{}, cache: newCache(cfg.CacheFor)}
	for _, i := range cfg.Issuers {
		if _, twice := v.issuers[i.URL]; twice {
			return nil, fmt.Errorf("configuring token verification: issuer %s is named twice", i.URL)
		}
		keys, err := newKeySet(ctx, i, cfg)
		if err != nil {
			return nil, fmt.Errorf("configuring issuer %s: %w", i.URL, err)
		}
		v.issuers[i.URL] = &issuer{Issuer: i, keys: keys}
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods(cfg.Algorithms),
		jwt.WithStrictDecoding(),
		jwt.WithJSONNumber(),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithTimeFunc(cfg.Now),
		jwt.WithAudience(cfg.Audiences...),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
	)
	return v, nil
}

// Verify returns the actor that a token speaks for. Faults: unauthenticated, with a key for the cause; internal (retryable,
// caused by ErrIssuerUnreachable) if the issuer's keys cannot be had. The actor's slices belong to the caller.
func (v *Verifier) Verify(ctx context.Context, raw string) (actor.Actor, error) {
	if len(raw) > v.cfg.MaxTokenBytes {
		return actor.Actor{}, refuse("too_large", fault.Args{"limit": v.cfg.MaxTokenBytes})
	}
	digest := sum(raw)
	if hit, ok := v.cache.get(digest); ok {
		return v.fromCache(ctx, raw, digest, hit)
	}
	return v.verify(ctx, raw, digest)
}

// fromCache uses a remembered verdict only while the token is within its times and its issuer's keys are the same ones.
func (v *Verifier) fromCache(ctx context.Context, raw string, digest [32]byte, hit entry) (actor.Actor, error) {
	generation, err := hit.issuer.keys.current(ctx)
	if err == nil && generation == hit.generation && v.cfg.Now().Before(hit.until) {
		return own(hit.actor), nil
	}
	v.cache.drop(digest)
	return v.verify(ctx, raw, digest)
}

func (v *Verifier) verify(ctx context.Context, raw string, digest [32]byte) (actor.Actor, error) {
	var from *issuer
	var generation uint64
	token, err := v.parser.Parse(raw, func(t *jwt.Token) (key any, err error) {
		if from, err = v.issuerOf(t); err != nil {
			return nil, err
		}
		// Read before the key: if the set changes in between, the entry is already out of date when it is stored.
		if generation, err = from.keys.current(ctx); err != nil {
			return nil, err
		}
		return from.keys.key(ctx, t)
	})
	if err != nil {
		return actor.Actor{}, v.classify(token, err)
	}
	c := claims(token.Claims.(jwt.MapClaims))
	a, err := from.actorOf(c)
	if err != nil {
		return actor.Actor{}, err
	}
	now := v.cfg.Now()
	expires, _ := token.Claims.GetExpirationTime()
	until := expires.Add(v.cfg.Leeway)
	v.cache.put(digest, entry{actor: own(a), issuer: from, generation: generation, until: earlier(until, now.Add(v.cfg.CacheFor))}, now)
	return a, nil
}

// issuerOf runs before any key is looked at: it settles who must have signed, and refuses tokens that are not access
// tokens or that demand what we do not implement.
func (v *Verifier) issuerOf(t *jwt.Token) (*issuer, error) {
	c := claims(t.Claims.(jwt.MapClaims))
	for _, name := range []string{"iss", "sub", "exp", "aud"} {
		if c[name] == nil {
			return nil, refuse("claim", fault.Args{"claim": name})
		}
	}
	iss, ok := v.issuers[c.text("iss")]
	if !ok {
		return nil, refuse("issuer", nil)
	}
	if _, critical := t.Header["crit"]; critical {
		return nil, refuse("malformed", nil) // RFC 7515 §4.1.11: extensions that are not understood must be refused
	}
	if !typeAllowed(t.Header, iss.AccessTokenTypeOnly) || c.isIDToken() {
		return nil, refuse("type", nil)
	}
	if c["cnf"] != nil {
		return nil, refuse("bound", nil) // RFC 9449 §7.2: a bound token must not pass as a bearer token
	}
	return iss, nil
}

// classify names the cause of the parser's refusal. Causes that a fresh token cannot cure come first.
func (v *Verifier) classify(token *jwt.Token, err error) error {
	var ours *fault.Fault
	switch {
	case errors.As(err, &ours):
		return ours
	case token != nil && token.Method != nil && !slices.Contains(v.cfg.Algorithms, token.Method.Alg()):
		return refuse("algorithm", nil).Because(err)
	case errors.Is(err, jwt.ErrTokenMalformed):
		return refuse("malformed", nil).Because(err)
	case errors.Is(err, jwt.ErrTokenUnverifiable):
		return refuse("algorithm", nil).Because(err)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return refuse("signature", nil).Because(err)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return refuse("audience", nil)
	case errors.Is(err, jwt.ErrTokenExpired):
		return refuse("expired", nil)
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return refuse("not_yet_valid", nil)
	}
	return refuse("malformed", nil).Because(err)
}

// refuse makes the fault of one cause.
func refuse(cause string, args fault.Args) *fault.Fault {
	return fault.New(fault.Unauthenticated, args).WithKey("fault.unauthenticated." + cause)
}

// own copies an actor so that neither a caller nor the cache can change the other's.
func own(a actor.Actor) actor.Actor {
	a.Groups, a.Roles, a.Scopes = slices.Clone(a.Groups), slices.Clone(a.Roles), slices.Clone(a.Scopes)
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
