package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

// The OAuth clients at the provider.
const (
	bot           = "bot"
	consoleClient = "console"
	consoleSecret = "the-console's-own-secret"
)

type claims map[string]any

// provider is an identity provider that everybody is known to. Its page asks who somebody is, and believes it.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu    sync.Mutex
	codes map[string]shown
	// tenant is whose people come to the door.
	tenant string
}

// expect says whose people come to the door from now on.
func (p *provider) expect(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tenant = tenant
}

// shown is somebody who has shown themselves, and what the console had asked.
type shown struct {
	who   visitor
	query url.Values
}

// visitor is a person at the provider: of one tenant, in one language, shown some time ago.
type visitor struct {
	person
	tenant string
	ago    time.Duration
}

func newProvider() (*provider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	p := &provider{key: key, codes: map[string]shown{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.door)
	mux.HandleFunc("GET /shown", p.pass)
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

const keyID = "key-1"

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, claims{"keys": []any{claims{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID, "n": encode(p.key.N.Bytes()), "e": "AQAB",
	}}})
}

var doorPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Who are you?</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width"></head>
<body><main><h1>Who are you?</h1><ul>{{range .}}<li><a id="{{.ID}}" href="{{.Link}}">{{.ID}}</a></li>{{end}}</ul></main></body></html>`))

// door is the page on which a person shows themselves.
func (p *provider) door(w http.ResponseWriter, r *http.Request) {
	type choice struct{ ID, Link string }
	var list []choice
	q := r.URL.Query()
	for _, one := range cast {
		if one.agent {
			continue
		}
		q.Set("person", one.id)
		list = append(list, choice{one.id, "/shown?" + q.Encode()})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = doorPage.Execute(w, list)
}

// pass sends somebody who has just shown themselves back to the console.
func (p *provider) pass(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	who, err := personOf(q.Get("person"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	tenant := p.tenant
	p.mu.Unlock()
	http.Redirect(w, r, p.back(visitor{person: who, tenant: tenant}, q), http.StatusFound)
}

// back is the address at the console that somebody is sent back to, with a code for them.
func (p *provider) back(who visitor, asked url.Values) string {
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = shown{who, asked}
	p.mu.Unlock()
	return asked.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	p.mu.Lock()
	in, known := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	_, secret, _ := r.BasicAuth()
	if !known || encode(verifier[:]) != in.query.Get("code_challenge") || secret != url.QueryEscape(consoleSecret) {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, claims{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	id := in.who.claims(in.who.tenant)
	maps.Copy(id, claims{
		"iss": p.URL, "aud": consoleClient, "nonce": in.query.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"auth_time": now.Add(-in.who.ago).Unix(),
	})
	answer(w, claims{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": p.sign(id), "scope": "openid " + in.who.scopes,
	})
}

// accessToken is for a caller of the API.
func (p *provider) accessToken(who person, tenant string) string {
	now := time.Now()
	c := who.claims(tenant)
	maps.Copy(c, claims{
		"iss": p.URL, "aud": fleet.Audience, "client_id": consoleClient, "scope": who.scopes, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"jti": rand.Text(), "auth_time": now.Unix(),
	})
	if who.agent {
		c["client_id"], c["act"] = bot, claims{"sub": bot}
		delete(c, "auth_time")
	}
	return p.sign(c)
}

func (p *provider) sign(c claims) string {
	input := encode(asJSON(claims{"alg": "RS256", "kid": keyID, "typ": "at+jwt"})) + "." + encode(asJSON(c))
	sum := sha256.Sum256([]byte(input))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:]) // an RSA key of 2048 bits signs any digest
	return input + "." + encode(signature)
}

func answer(w http.ResponseWriter, body claims) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func asJSON(c claims) []byte {
	raw, _ := json.Marshal(c) // of plain values
	return raw
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
