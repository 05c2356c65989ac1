// Package signin signs people in at the console with OpenID Connect: the authorization code flow with PKCE, state and nonce.
//
// It promises that a person comes out only if the configured provider has signed an ID token for this client, for the very
// attempt that this browser began, within ten minutes; and, where a fresh sign-in was asked for, only if the person has shown
// themselves to the provider since. It keeps nothing: an attempt travels in the state parameter, encrypted and bound to the
// browser's cookie.
//
// It does not keep people signed in (see session), and it does not say who somebody is: Config.Person maps the claims as it
// maps those of any token. Start at New, SignIn.Begin and SignIn.Finish.
package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Config names the provider and what this client is there.
type Config struct {
	// Issuer is the provider, whose metadata document tells the rest.
	Issuer string
	// ClientID and ClientSecret are this console's registration; the secret may be empty for a public client.
	ClientID, ClientSecret string
	// RedirectURL is where the provider sends browsers back to.
	RedirectURL string
	// Scopes are asked for beside openid.
	Scopes []string
	// Wanted are claims that are taken from the provider's userinfo endpoint if the ID token lacks them.
	Wanted []string
	// Key encrypts attempts: 32 bytes, the same on every replica.
	Key []byte
	// Person says who the claims speak of. granted are the scopes that the provider granted.
	Person func(claims map[string]any, granted []string) (actor.Actor, error)

	Now  func() time.Time
	Rand io.Reader
	// HTTP asks the provider; nil means a client that gives up after ten seconds.
	HTTP *http.Client
}

// SignIn is a console's way in. It is safe for concurrent use.
type SignIn struct {
	cfg  Config
	seal sealer

	mu       sync.Mutex
	provider *oidc.Provider
}

// leeway is how far the provider's clock may be from ours.
const leeway = 30 * time.Second

// New checks the configuration. It asks the provider for nothing yet: one that is down must not keep the service from starting.
func New(c Config) (*SignIn, error) {
	if c.Issuer == "" || c.ClientID == "" || c.RedirectURL == "" || c.Person == nil || c.Now == nil || c.Rand == nil {
		return nil, errors.New("signing people in: issuer, client, redirect URL, mapping, clock and randomness are needed")
	}
	seal, err := newSealer(c.Key)
	if err != nil {
		return nil, err
	}
	c.HTTP = cmp.Or(c.HTTP, &http.Client{Timeout: 10 * time.Second})
	c.Scopes = append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...)
	return &SignIn{cfg: c, seal: seal}, nil
}

// Wish is what an attempt is for.
type Wish struct {
	// Browser is the hash of the cookie that the browser holds: only it can finish the attempt.
	Browser [32]byte
	// Next is the console's page to show afterwards.
	Next string
	// Fresh asks that the person shows themselves to the provider now.
	Fresh bool
	// Locale is the language to ask in.
	Locale string
}

// Begin is the address at the provider to send the browser to. Fault: internal (retryable) if the provider cannot be reached.
func (s *SignIn) Begin(ctx context.Context, w Wish) (string, error) {
	config, _, err := s.client(ctx)
	if err != nil {
		return "", err
	}
	a := attempt{Browser: w.Browser, Next: w.Next, Fresh: w.Fresh, At: s.cfg.Now().Unix()}
	if a.Nonce, err = s.random(); err != nil {
		return "", err
	}
	if a.Verifier, err = s.random(); err != nil {
		return "", err
	}
	state, err := s.seal.seal(a)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if w.Locale != "" {
		options = append(options, oauth2.SetAuthURLParam("ui_locales", w.Locale))
	}
	if w.Fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return config.AuthCodeURL(state, options...), nil
}

// Done is a finished attempt.
type Done struct {
	Who  actor.Actor
	Next string
}

// Finish takes the provider's answer. Faults: unauthenticated, with a key for the cause; internal (retryable) if the provider
// cannot be reached.
func (s *SignIn) Finish(ctx context.Context, browser [32]byte, answer url.Values) (Done, error) {
	a, err := s.attempt(browser, answer)
	if err != nil {
		return Done{}, err
	}
	config, provider, err := s.client(ctx)
	if err != nil {
		return Done{}, err
	}
	ctx = oidc.ClientContext(ctx, s.cfg.HTTP)
	tokens, err := config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Done{}, refusedBy(err)
	}
	claims, err := s.claims(ctx, provider, tokens, a)
	if err != nil {
		return Done{}, err
	}
	who, err := s.cfg.Person(claims, s.granted(tokens))
	if err != nil {
		return Done{}, err
	}
	return Done{Who: who, Next: a.Next}, nil
}

// attempt reads what came back and checks that this browser began it, here and not long ago.
func (s *SignIn) attempt(browser [32]byte, answer url.Values) (attempt, error) {
	a, err := s.seal.open(answer.Get("state"))
	age := s.cfg.Now().Sub(time.Unix(a.At, 0))
	switch {
	case err != nil, a.Browser != browser, age < -leeway, age > attemptFor:
		return a, refuse("web.fault.sign_in_attempt")
	case answer.Get("iss") != "" && answer.Get("iss") != s.cfg.Issuer:
		return a, refuse("web.fault.sign_in_refused") // RFC 9207: another server's answer
	case answer.Get("code") == "":
		return a, refuse("web.fault.sign_in_refused")
	}
	return a, nil
}

// claims verifies the ID token and adds what only the userinfo endpoint tells.
func (s *SignIn) claims(ctx context.Context, provider *oidc.Provider, tokens *oauth2.Token, a attempt) (map[string]any, error) {
	raw, _ := tokens.Extra("id_token").(string)
	verifier := provider.Verifier(&oidc.Config{ClientID: s.cfg.ClientID, Now: s.cfg.Now})
	token, err := verifier.Verify(ctx, raw)
	if err != nil || token.Nonce != a.Nonce {
		return nil, refuse("web.fault.sign_in_refused").Because(err)
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(tokens.AccessToken); err != nil {
			return nil, refuse("web.fault.sign_in_refused").Because(err)
		}
	}
	var claims exactClaims
	if err := token.Claims(&claims); err != nil {
		return nil, refuse("web.fault.sign_in_refused").Because(err)
	}
	if azp, given := claims["azp"]; given && azp != s.cfg.ClientID {
		return nil, refuse("web.fault.sign_in_refused")
	}
	if a.Fresh && !s.isFresh(claims, a) {
		return nil, refuse("web.fault.sign_in_stale")
	}
	return claims, s.complete(ctx, provider, tokens, token.Subject, claims)
}

// isFresh reports whether the person has shown themselves since the attempt began.
func (s *SignIn) isFresh(claims exactClaims, a attempt) bool {
	number, _ := claims["auth_time"].(json.Number)
	at, err := number.Int64()
	return err == nil && at >= a.At-int64(leeway.Seconds())
}

// complete asks the userinfo endpoint for the wanted claims that the ID token lacks.
func (s *SignIn) complete(ctx context.Context, p *oidc.Provider, tokens *oauth2.Token, subject string, claims exactClaims) error {
	lacks := slices.ContainsFunc(s.cfg.Wanted, func(name string) bool { return claims[name] == nil })
	if !lacks || p.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return unreachable(err)
	}
	if info.Subject != subject {
		return refuse("web.fault.sign_in_refused") // OpenID Connect Core §5.3.2
	}
	var more exactClaims
	if err := info.Claims(&more); err != nil {
		return refuse("web.fault.sign_in_refused").Because(err)
	}
	for _, name := range s.cfg.Wanted {
		if value, given := more[name]; given && claims[name] == nil {
			claims[name] = value
		}
	}
	return nil
}

// granted are the scopes of the sign-in: those that the provider names, or those asked for if it names none (RFC 6749 §5.1).
func (s *SignIn) granted(tokens *oauth2.Token) []string {
	if text, ok := tokens.Extra("scope").(string); ok && text != "" {
		return splitScopes(text)
	}
	return slices.Clone(s.cfg.Scopes)
}

// client is the provider's description, fetched when it is first needed and kept once it is had.
func (s *SignIn) client(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.provider == nil {
		// The provider keeps this context for fetching keys: it must outlive the request.
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), s.cfg.HTTP), s.cfg.Issuer)
		if err != nil {
			return nil, nil, unreachable(err)
		}
		s.provider = provider
	}
	endpoint := s.provider.Endpoint()
	endpoint.AuthStyle = s.authStyle()
	return &oauth2.Config{
		ClientID: s.cfg.ClientID, ClientSecret: s.cfg.ClientSecret, RedirectURL: s.cfg.RedirectURL, Scopes: s.cfg.Scopes, Endpoint: endpoint,
	}, s.provider, nil
}

// authStyle is how the client shows its secret: as the provider says, else in the header (RFC 8414 §2). The library would
// find out by trying, and so spend a code twice.
func (s *SignIn) authStyle() oauth2.AuthStyle {
	var told struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	err := s.provider.Claims(&told)
	if s.cfg.ClientSecret == "" || err == nil && len(told.Methods) > 0 && !slices.Contains(told.Methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

func refuse(key string) *fault.Fault {
	return fault.New(fault.Unauthenticated, nil).WithKey(key).WithNext(fault.NextNone)
}

// refusedBy tells a provider that said no from one that could not be asked.
func refusedBy(err error) error {
	var said *oauth2.RetrieveError
	if errors.As(err, &said) && said.Response != nil && said.Response.StatusCode < http.StatusInternalServerError {
		return refuse("web.fault.sign_in_refused").Because(err)
	}
	return unreachable(err)
}

func unreachable(err error) error {
	f := fault.New(fault.Internal, nil).WithKey("web.fault.sign_in_unreachable").WithNext(fault.NextRetryLater).After(30 * time.Second)
	f.Retryable = true
	return f.Because(fmt.Errorf("asking the identity provider: %w", err))
}

// exactClaims keeps numbers as they were written.
type exactClaims map[string]any

// UnmarshalJSON reads an object without turning its numbers into floats.
func (c *exactClaims) UnmarshalJSON(raw []byte) error {
	members, err := exactMembers(raw)
	if err == nil {
		*c = maps.Clone(members)
	}
	return err
}

// Reach asks the provider for its description, as the first sign-in would. It tells where browsers are sent.
func (s *SignIn) Reach(ctx context.Context) (authorize string, err error) {
	config, _, err := s.client(ctx)
	if err != nil {
		return "", err
	}
	return config.Endpoint.AuthURL, nil
}
