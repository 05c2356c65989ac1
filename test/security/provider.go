package main

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

// The OAuth clients at the providers.
const (
	bot           = "bot"
	console       = "console"
	consoleSecret = "the-console's-own-secret"
)

// claims are a token's payload or its header.
type claims map[string]any

func (c claims) with(name string, value any) claims {
	c = maps.Clone(c)
	c[name] = value
	return c
}

func (c claims) without(name string) claims {
	c = maps.Clone(c)
	delete(c, name)
	return c
}

// provider is an identity provider: it publishes an RSA key, counts who asks for it, and signs people in with the code flow.
type provider struct {
	*httptest.Server
	tenant string
	key    *rsa.PrivateKey

	mu    sync.Mutex
	asked int
	// moved, if set, is where the keys have been moved to.
	moved string
	codes map[string]signIn
	// forge, if set, makes the ID token instead.
	forge func(honest claims) string
}

// signIn is somebody who has shown themselves and comes back with a code.
type signIn struct {
	person claims
	query  url.Values
}

const keyID = "key-1"

func newProvider(tenant string) (*provider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	p := &provider{tenant: tenant, key: key, codes: map[string]signIn{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	return p, err
}

func (p *provider) metadata(w http.ResponseWriter, _ *http.Request) {
	answer(w, claims{
		"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (p *provider) keys(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	moved := p.moved
	p.mu.Unlock()
	if moved != "" {
		http.Redirect(w, r, moved, http.StatusFound)
		return
	}
	answer(w, claims{"keys": []any{p.jwk()}})
}

// jwk is the public key as it is published.
func (p *provider) jwk() claims {
	return claims{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID, "n": encode(p.key.N.Bytes()), "e": "AQAB"}
}

func (p *provider) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// authorize is the person's side: they show themselves at the address that the console sent their browser to.
func (p *provider) authorize(person claims, at string) (code, state string, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", "", err
	}
	code = rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = signIn{person, u.Query()}
	return code, u.Query().Get("state"), nil
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	code := r.PostFormValue("code")
	in, known := p.codes[code]
	delete(p.codes, code)
	forge := p.forge
	p.mu.Unlock()
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	_, secret, _ := r.BasicAuth()
	if !known || encode(verifier[:]) != in.query.Get("code_challenge") || secret != url.QueryEscape(consoleSecret) {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, claims{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	id := maps.Clone(in.person)
	maps.Copy(id, claims{
		"iss": p.URL, "aud": console, "nonce": in.query.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "auth_time": now.Unix(),
	})
	signed := p.sign(id)
	if forge != nil {
		signed = forge(id)
	}
	answer(w, claims{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": signed})
}

func answer(w http.ResponseWriter, body claims) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// sign makes an honest token.
func (p *provider) sign(c claims) string {
	return p.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "at+jwt"}, c)
}

// signAs signs with the provider's key under any header.
func (p *provider) signAs(header, c claims) string {
	input := unsigned(header, c)
	sum := sha256.Sum256([]byte(input))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:]) // an RSA key of 2048 bits signs any digest
	return input + "." + encode(signature)
}

// signHS signs with a secret.
func signHS(secret []byte, header, c claims) string {
	input := unsigned(header, c)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(input))
	return input + "." + encode(mac.Sum(nil))
}

func unsigned(header, c claims) string { return encode(asJSON(header)) + "." + encode(asJSON(c)) }

func asJSON(c claims) []byte {
	raw, _ := json.Marshal(c) // of plain values
	return raw
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// token is the honest token of somebody at the home provider.
func (w *world) token(c claims) string {
	p := w.home
	if c["iss"] == w.partner.URL {
		p = w.partner
	}
	token := p.sign(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens = append(w.tokens, token)
	return token
}

func (p *provider) person(subject, name string) claims {
	now := time.Now()
	return claims{
		"iss": p.URL, "aud": fleet.Audience, "tenant": p.tenant, "sub": subject, "name": name, "locale": "en", "client_id": console,
		"scope": "ads:read", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": rand.Text(), "auth_time": now.Unix(),
	}
}

// agentOf is the agent that acts for somebody.
func (p *provider) agentOf(subject string) claims {
	return p.person(subject, "Misaki Sato").with("client_id", bot).with("act", claims{"sub": bot}).without("auth_time").
		with("scope", "ads:read ads:budget").with("roles", []string{"requester"})
}

// The cast: an agent that acts for sato, another agent of the same tenant, an approver, and their like at the partner's.
func (w *world) agent() claims { return w.home.agentOf("sato@agency.example") }

func (w *world) otherAgent() claims { return w.home.agentOf("ito@agency.example") }

func (w *world) kim() claims {
	return w.home.person("kim@agency.example", "Minjun Kim").with("groups", []string{"ads-approvers"}).with("roles", []string{"approver"})
}

func (w *world) stranger() claims { return w.partner.agentOf("sato@agency.example") }
