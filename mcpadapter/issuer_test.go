package mcpadapter_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cutonce/cutonce/internal/auth"
)

const (
	resource    = "https://cutonce.example/mcp"
	metadataURL = "https://cutonce.example/.well-known/oauth-protected-resource/mcp"
)

// issuer is an authorization server with one key.
type issuer struct {
	t   testing.TB
	url string
	key ed25519.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "k1", "x": base64.RawURLEncoding.EncodeToString(public),
		}}})
	}))
	t.Cleanup(server.Close)
	return &issuer{t: t, url: server.URL, key: private}
}

func (i *issuer) verifier() *auth.Verifier {
	i.t.Helper()
	v, err := auth.New(i.t.Context(), auth.Config{
		Issuers: []auth.Issuer{{URL: i.url, JWKSURL: i.url + "/jwks"}}, Audiences: []string{resource}, Now: time.Now,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return v
}

// claims are the agent "bot", acting for sato, with every scope, changed by edits.
func (i *issuer) claims(edits ...func(jwt.MapClaims)) jwt.MapClaims {
	now := time.Now()
	c := jwt.MapClaims{
		"iss": i.url, "sub": "sato@agency.example", "aud": resource, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"tenant": "acme", "scope": "ads:read ads:budget", "act": map[string]any{"sub": "bot"}, "client_id": "bot",
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func (i *issuer) token(edits ...func(jwt.MapClaims)) string {
	i.t.Helper()
	return i.sign(jwt.SigningMethodEdDSA, i.key, i.claims(edits...))
}

func (i *issuer) sign(method jwt.SigningMethod, key any, c jwt.MapClaims) string {
	i.t.Helper()
	token := jwt.NewWithClaims(method, c)
	token.Header["kid"] = "k1"
	signed, err := token.SignedString(key)
	if err != nil {
		i.t.Fatal(err)
	}
	return signed
}

func with(name string, value any) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) {
		if value == nil {
			delete(c, name)
			return
		}
		c[name] = value
	}
}

// person is a human with the groups and roles.
func person(name string, groups, roles []string) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) {
		delete(c, "act")
		c["sub"], c["groups"], c["roles"], c["client_id"] = name, groups, roles, "console"
	}
}
