package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/fault"
)

const audience = "https://cutonce.example/mcp"

// signer is one private key with the algorithm and name it signs under.
type signer struct {
	kid    string
	method jwt.SigningMethod
	key    crypto.Signer
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newSigner(t testing.TB, kid, alg string) signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch alg {
	case "RS256", "PS256":
		key = rsaKey()
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatalf("making a %s key: %v", alg, err)
	}
	return signer{kid, jwt.GetSigningMethod(alg), key}
}

func (s signer) jwk(t testing.TB) map[string]string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	out := map[string]string{"kid": s.kid, "use": "sig", "alg": s.method.Alg()}
	switch pub := s.key.Public().(type) {
	case *rsa.PublicKey:
		out["kty"], out["n"], out["e"] = "RSA", b64(pub.N.Bytes()), b64(big.NewInt(int64(pub.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := pub.Bytes()
		if err != nil {
			t.Fatalf("encoding the key: %v", err)
		}
		half := (len(point) - 1) / 2
		out["kty"], out["crv"], out["x"], out["y"] = "EC", pub.Params().Name, b64(point[1:1+half]), b64(point[1+half:])
	case ed25519.PublicKey:
		out["kty"], out["crv"], out["x"] = "OKP", "Ed25519", b64(pub)
	}
	return out
}

// server is a real issuer: it publishes keys over HTTP and counts who asks.
type server struct {
	*httptest.Server
	requests atomic.Int64
	asked    chan struct{} // one value for each request answered
	mu       sync.Mutex
	keys     []any
	down     bool
}

func newServer(t testing.TB, signers ...signer) *server {
	t.Helper()
	s := &server{asked: make(chan struct{}, 1000)}
	s.publish(t, signers...)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) publish(t testing.TB, signers ...signer) {
	t.Helper()
	var keys []any
	for _, key := range signers {
		keys = append(keys, key.jwk(t))
	}
	s.publishRaw(keys...)
}

func (s *server) publishRaw(keys ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
}

func (s *server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.Add(1)
	defer func() { s.asked <- struct{}{} }()
	switch {
	case s.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/keys":
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": s.keys})
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys"})
	default:
		http.NotFound(w, r)
	}
}

// clock is a clock that only moves when told.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// rig is a verifier that trusts one issuer.
type rig struct {
	t        testing.TB
	clock    *clock
	server   *server
	signer   signer
	verifier *auth.Verifier
}

func newRig(t testing.TB, alg string, change ...func(*auth.Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: newClock(), signer: newSigner(t, "k1", alg)}
	r.server = newServer(t, r.signer)
	cfg := auth.Config{
		Issuers:   []auth.Issuer{{URL: r.server.URL, JWKSURL: r.server.URL + "/keys"}},
		Audiences: []string{audience, "https://cutonce.example"},
		Now:       r.clock.now,
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if r.verifier, err = auth.New(t.Context(), cfg); err != nil {
		t.Fatalf("auth.New: %v", err)
	}
	return r
}

// claims are those of a person, good for an hour.
func (r *rig) claims(change ...func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": r.server.URL, "sub": "sato@agency.example", "aud": audience, "tenant": "acme", "client_id": "console",
		"iat": r.clock.now().Unix(), "exp": r.clock.now().Add(time.Hour).Unix(), "scope": "ads:read ads:budget",
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func set(name string, value any) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) { c[name] = value }
}
func unset(name string) func(jwt.MapClaims) { return func(c jwt.MapClaims) { delete(c, name) } }

func (s signer) sign(t testing.TB, c jwt.MapClaims, headers ...map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, c)
	token.Header["typ"], token.Header["kid"] = "at+jwt", s.kid
	for _, h := range headers {
		for name, value := range h {
			token.Header[name] = value
			if value == nil {
				delete(token.Header, name)
			}
		}
	}
	signed, err := token.SignedString(s.key)
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	return signed
}

func (r *rig) token(change ...func(jwt.MapClaims)) string {
	return r.signer.sign(r.t, r.claims(change...))
}

func (r *rig) verify(raw string) (actor.Actor, error) {
	return r.verifier.Verify(context.Background(), raw)
}

// wantAccepted fails the test unless the token is good.
func (r *rig) wantAccepted(raw string) actor.Actor {
	r.t.Helper()
	a, err := r.verify(raw)
	if err != nil {
		r.t.Fatalf("Verify: got %v, want an actor", err)
	}
	return a
}

// wantRefused fails the test unless the token is refused for this cause, with nothing of the token in any text.
func (r *rig) wantRefused(raw, cause string) {
	r.t.Helper()
	a, err := r.verify(raw)
	if err == nil {
		r.t.Fatalf("Verify: got %+v, want refusal %q", a, cause)
	}
	f := fault.From(err)
	if !errors.Is(err, fault.Unauthenticated) || f.Key != "fault.unauthenticated."+cause {
		r.t.Errorf("Verify: got %v, want unauthenticated %q", err, cause)
	}
	for _, part := range strings.Split(raw, ".") {
		if len(part) > 8 && strings.Contains(err.Error(), part) {
			r.t.Errorf("the refusal repeats the token: %v", err)
		}
	}
	if a.Subject != "" {
		r.t.Errorf("an actor came with the refusal: %+v", a)
	}
}
