package auth_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
)

func TestVerifyAcceptsEachAlgorithm(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, alg)
			got := r.wantAccepted(r.token(set("name", "佐藤　美咲"), set("locale", "ja"), set("groups", []string{"ads"}),
				set("roles", "requester"), set("auth_time", 1796115600)))
			want := actor.Actor{
				Tenant: "acme", Kind: actor.Human, Issuer: r.server.URL, Subject: "sato@agency.example", Client: "console",
				Name: "佐藤　美咲", Locale: "ja", Groups: []string{"ads"}, Roles: []string{"requester"},
				Scopes: []string{"ads:read", "ads:budget"}, AuthTime: time.Unix(1796115600, 0).UTC(),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("actor (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	header := func(h map[string]any) string { return r.signer.sign(t, r.claims(), h) }
	cases := map[string]string{
		"audience list that contains us": r.token(set("aud", []string{"https://other.example", audience})),
		"our other audience":             r.token(set("aud", "https://cutonce.example")),
		"typ JWT":                        header(map[string]any{"typ": "JWT"}),
		"typ application/at+jwt":         header(map[string]any{"typ": "application/AT+JWT"}),
		"no typ":                         header(map[string]any{"typ": nil}),
		"no kid":                         header(map[string]any{"kid": nil}),
		"expired within the leeway":      r.token(set("exp", r.clock.now().Add(-29*time.Second).Unix())),
		"not before within the leeway":   r.token(set("nbf", r.clock.now().Add(29*time.Second).Unix())),
		"issued at within the leeway":    r.token(set("iat", r.clock.now().Add(29*time.Second).Unix())),
		"no iat":                         r.token(unset("iat")),
		"payload typ Bearer":             r.token(set("typ", "Bearer")),
		"scp list":                       r.token(unset("scope"), set("scp", []string{"ads:read"})),
		"no scope at all":                r.token(unset("scope")),
		"emoji with a variation selector in name": r.token(set("name", "Kim ❤️")),
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			(&rig{t: t, verifier: r.verifier}).wantAccepted(raw)
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	other := newSigner(t, "k1", "ES256")
	at := func(d time.Duration) int64 { return r.clock.now().Add(d).Unix() }
	header := func(h map[string]any) string { return r.signer.sign(t, r.claims(), h) }
	good := r.token()
	parts := strings.Split(good, ".")
	chain := any(nil)
	for range 6 {
		link := map[string]any{"sub": "agent"}
		if chain != nil {
			link["act"] = chain
		}
		chain = link
	}
	cases := map[string]struct{ raw, cause string }{
		"empty":                          {"", "malformed"},
		"not a token":                    {"hello", "malformed"},
		"two parts":                      {parts[0] + "." + parts[1], "malformed"},
		"four parts":                     {good + ".x", "malformed"},
		"payload is no JSON":             {parts[0] + ".aGVsbG8." + parts[2], "malformed"},
		"padded base64":                  {parts[0] + "=." + parts[1] + "." + parts[2], "malformed"},
		"17 KiB":                         {good + strings.Repeat("A", 17<<10), "too_large"},
		"signature of another key":       {other.sign(t, r.claims()), "signature"},
		"payload changed":                {parts[0] + "." + forge(t, r.claims(set("sub", "kim@agency.example"))) + "." + parts[2], "signature"},
		"signature spelled otherwise":    {good[:len(good)-1] + respell(good), "malformed"},
		"signature empty":                {parts[0] + "." + parts[1] + ".", "signature"},
		"unknown kid":                    {newSigner(t, "k9", "ES256").sign(t, r.claims()), "key"},
		"kid is a path":                  {header(map[string]any{"kid": "../../dev/null"}), "key"},
		"kid is SQL":                     {header(map[string]any{"kid": "k1' or '1'='1"}), "key"},
		"kid is no string":               {header(map[string]any{"kid": 1}), "key"},
		"kid of another algorithm":       {newSigner(t, "k1", "EdDSA").sign(t, r.claims()), "key"},
		"key in the header":              {other.sign(t, r.claims(), map[string]any{"jwk": other.jwk(t)}), "signature"},
		"critical extension":             {header(map[string]any{"crit": []string{"b64"}, "b64": false}), "malformed"},
		"typ of a logout token":          {header(map[string]any{"typ": "logout+jwt"}), "type"},
		"typ is no string":               {header(map[string]any{"typ": 7}), "type"},
		"ID token by typ":                {r.token(set("typ", "ID")), "type"},
		"refresh token":                  {r.token(set("typ", "Refresh")), "type"},
		"ID token by at_hash":            {r.token(set("at_hash", "x")), "type"},
		"bound to a client's key":        {r.token(set("cnf", map[string]any{"jkt": "x"})), "bound"},
		"issuer missing":                 {r.token(unset("iss")), "claim"},
		"issuer unknown":                 {r.token(set("iss", "https://evil.example")), "issuer"},
		"issuer with a slash more":       {r.token(set("iss", r.server.URL+"/")), "issuer"},
		"issuer is a list":               {r.token(set("iss", []string{r.server.URL})), "issuer"},
		"subject missing":                {r.token(unset("sub")), "claim"},
		"subject empty":                  {r.token(set("sub", "")), "claim"},
		"subject is a number":            {r.token(set("sub", 7)), "claim"},
		"audience missing":               {r.token(unset("aud")), "claim"},
		"audience empty list":            {r.token(set("aud", []string{})), "malformed"},
		"audience of another":            {r.token(set("aud", "https://other.example")), "audience"},
		"audience list without us":       {r.token(set("aud", []string{"https://a.example", "https://b.example"})), "audience"},
		"audience that begins like ours": {r.token(set("aud", audience+"/x")), "audience"},
		"audience of the wrong type":     {r.token(set("aud", []any{audience, 7})), "malformed"},
		"audience wrong and expired":     {r.token(set("aud", "https://other.example"), set("exp", at(-time.Hour))), "audience"},
		"expiry missing":                 {r.token(unset("exp")), "claim"},
		"expiry zero":                    {r.token(set("exp", 0)), "expired"},
		"expiry is a string":             {r.token(set("exp", "tomorrow")), "malformed"},
		"expiry 1e400":                   {r.token(set("exp", json.Number("1e400"))), "expired"},
		"expired":                        {r.token(set("exp", at(-31*time.Second))), "expired"},
		"not yet valid":                  {r.token(set("nbf", at(31*time.Second))), "not_yet_valid"},
		"issued in the future":           {r.token(set("iat", at(31*time.Second))), "not_yet_valid"},
		"tenant missing":                 {r.token(unset("tenant")), "claim"},
		"tenant is a list":               {r.token(set("tenant", []string{"acme"})), "claim"},
		"bidi in the subject":            {r.token(set("sub", "kim\u202egro.elpmaxe")), "claim"},
		"zero width in the subject":      {r.token(set("sub", "ki\u200bm")), "claim"},
		"variation selector in subject":  {r.token(set("sub", "kim\ufe00")), "claim"},
		"hangul filler in the subject":   {r.token(set("sub", "kim\u3164")), "claim"},
		"newline in the subject":         {r.token(set("sub", "kim\nx")), "claim"},
		"space around the subject":       {r.token(set("sub", "kim ")), "claim"},
		"two names in the subject":       {r.token(set("sub", "a/for:kim")), "claim"},
		"long subject":                   {r.token(set("sub", strings.Repeat("k", 256))), "claim"},
		"bidi in the name":               {r.token(set("name", "Kim\u202e")), "claim"},
		"control in a group":             {r.token(set("groups", []string{"ads\x00"})), "claim"},
		"group is an object":             {r.token(set("groups", map[string]any{})), "claim"},
		"role is a number":               {r.token(set("roles", []any{"approver", 1})), "claim"},
		"too many groups":                {r.token(set("groups", strings.Split(strings.Repeat("g,", 1001), ","))), "claim"},
		"scope with a quote":             {r.token(set("scope", `ads:read "x"`)), "claim"},
		"scope is a number":              {r.token(set("scope", 1)), "claim"},
		"auth_time is a string":          {r.token(set("auth_time", "now")), "claim"},
		"client is a number":             {r.token(set("client_id", 1)), "claim"},
		"act is a string":                {r.token(set("act", "agent")), "act"},
		"act is null":                    {r.token(set("act", nil)), "act"},
		"act without a subject":          {r.token(set("act", map[string]any{"client_id": "agent"})), "act"},
		"act with bidi":                  {r.token(set("act", map[string]any{"sub": "a\u202eb"})), "act"},
		"act of another issuer":          {r.token(set("act", map[string]any{"sub": "a", "iss": "https://evil.example"})), "act"},
		"act nested too deep":            {r.token(set("act", chain)), "act"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			(&rig{t: t, verifier: r.verifier}).wantRefused(c.raw, c.cause)
		})
	}
}

// respell changes the bits of the last character that carry nothing: laxly decoded, it is the same signature.
func respell(raw string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, raw[len(raw)-1])|1])
}

// forge encodes claims that nobody signed.
func forge(t *testing.T, c any) string {
	t.Helper()
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}

func TestVerifyRefusesWeakAlgorithms(t *testing.T) {
	t.Parallel()
	r := newRig(t, "RS256")
	der, err := x509.MarshalPKIXPublicKey(r.signer.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	hmacWith := func(secret []byte) string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, r.claims())
		token.Header["kid"] = "k1"
		signed, err := token.SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, r.claims()).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	unsigned := func(alg any) string {
		return forge(t, map[string]any{"typ": "at+jwt", "alg": alg, "kid": "k1"}) + "." + forge(t, r.claims()) + "."
	}
	cases := map[string]string{
		"none":                         none,
		"None":                         unsigned("None"),
		"NONE":                         unsigned("NONE"),
		"empty":                        unsigned(""),
		"no string":                    unsigned(1),
		"HS256 with the public PEM":    hmacWith(publicPEM),
		"HS256 with the public DER":    hmacWith(der),
		"HS256 with an empty secret":   hmacWith([]byte{}),
		"RS512, which is not allowed":  signer{"k1", jwt.SigningMethodRS512, r.signer.key}.sign(t, r.claims()),
		"RS256 header, HS256 tag":      swapHeader(t, hmacWith(publicPEM), "RS256"),
		"ES256 header over an RSA key": swapHeader(t, r.token(), "ES256"),
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := r.verify(raw); err == nil || !strings.Contains(err.Error(), "unauthenticated") {
				t.Errorf("Verify: got %v, want unauthenticated", err)
			}
		})
	}
	r.wantAccepted(r.token()) // the rig itself is sound
}

func swapHeader(t *testing.T, raw, alg string) string {
	t.Helper()
	_, rest, _ := strings.Cut(raw, ".")
	return forge(t, map[string]any{"typ": "at+jwt", "alg": alg, "kid": "k1"}) + "." + rest
}

func TestPublishedSymmetricOrShortKeysAreIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	secret := []byte("0123456789abcdef0123456789abcdef")
	r.server.publishRaw(
		map[string]string{"kty": "oct", "kid": "shared", "k": base64.RawURLEncoding.EncodeToString(secret)},
		map[string]string{"kty": "RSA", "kid": "short", "e": "AQAB", "n": strings.Repeat("v", 171)},
		map[string]string{"kty": "EC", "kid": "off-curve", "crv": "P-256", "x": strings.Repeat("A", 43), "y": strings.Repeat("A", 43)},
		"not an object",
	)
	r.wantUnreachable(r.token()) // nothing in there can be used
	r.clock.advance(11 * time.Second)
	// Entries that cannot be used do not cost the one that can.
	r.server.publishRaw("not an object", map[string]any{"kty": "EC", "x5c": 7}, r.signer.jwk(t),
		map[string]string{"kty": "oct", "kid": "shared", "k": base64.RawURLEncoding.EncodeToString(secret)})
	r.wantAccepted(r.token())
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, r.claims())
	token.Header["kid"] = "shared"
	signed, err := token.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	r.wantRefused(signed, "algorithm")
}

func TestIssuerMixUp(t *testing.T) {
	t.Parallel()
	clock := newClock()
	first, second := newSigner(t, "k1", "ES256"), newSigner(t, "k2", "ES256")
	a, b := newServer(t, first), newServer(t, second)
	v, err := auth.New(t.Context(), auth.Config{
		Issuers: []auth.Issuer{
			{URL: a.URL, JWKSURL: a.URL + "/keys", Tenants: []string{"acme"}},
			{URL: b.URL, JWKSURL: b.URL + "/keys", Tenants: []string{"beta"}},
		},
		Audiences: []string{audience}, Now: clock.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, clock: clock, server: a, signer: first, verifier: v}
	r.wantAccepted(r.token())
	r.wantRefused(second.sign(t, r.claims()), "key") // b's key, a's name
	second.kid = "k1"
	r.wantRefused(second.sign(t, r.claims()), "signature")
	r.wantRefused(r.token(set("tenant", "beta")), "tenant") // a speaks for acme only
}

func TestTenantAndClaimNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256", func(c *auth.Config) {
		c.Issuers[0].Tenant = "solo"
		c.Issuers[0].Claims = auth.ClaimNames{Tenant: "https://cutonce.example/tenant", Roles: "realm_access.roles", Client: "cid"}
	})
	a := r.wantAccepted(r.token(unset("tenant"), set("realm_access", map[string]any{"roles": []string{"operator"}}), set("cid", "cli")))
	if a.Tenant != "solo" || !slices.Equal(a.Roles, []string{"operator"}) || a.Client != "cli" {
		t.Errorf("got tenant %q, roles %v, client %q", a.Tenant, a.Roles, a.Client)
	}
	a = r.wantAccepted(r.token(set("https://cutonce.example/tenant", "acme")))
	if got, want := a.Tenant, "acme"; got != want {
		t.Errorf("tenant: got %q, want %q", got, want)
	}
}

func TestAccessTokenTypeOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256", func(c *auth.Config) { c.Issuers[0].AccessTokenTypeOnly = true })
	r.wantAccepted(r.token())
	r.wantRefused(r.signer.sign(t, r.claims(), map[string]any{"typ": "JWT"}), "type")
	r.wantRefused(r.signer.sign(t, r.claims(), map[string]any{"typ": nil}), "type")
}

func TestWhoCountsAsWhat(t *testing.T) {
	t.Parallel()
	const sato = "sato@agency.example"
	agents := func(i *auth.Issuer) { i.AgentClients = []string{"bot"} }
	humans := func(i *auth.Issuer) { i.HumanClients = []string{"console"} }
	act := func(links ...string) func(jwt.MapClaims) {
		var chain any
		for _, sub := range slices.Backward(links) {
			link := map[string]any{"sub": sub}
			if chain != nil {
				link["act"] = chain
			}
			chain = link
		}
		return set("act", chain)
	}
	cases := []struct {
		name               string
		issuer             func(*auth.Issuer)
		claims             []func(jwt.MapClaims)
		kind               actor.Kind
		subject, for_, own string
	}{
		{"a person", agents, nil, actor.Human, sato, "", ""},
		{"a person has no owner", agents, []func(jwt.MapClaims){set("owner", "boss")}, actor.Human, sato, "", ""},
		{"an agent acts for a person", agents, []func(jwt.MapClaims){act("bot-7")}, actor.Agent, "bot-7", sato, ""},
		{"an agent that has an owner too", agents, []func(jwt.MapClaims){act("bot-7"), set("owner", "boss")}, actor.Agent, "bot-7", sato, "boss"},
		{"the outermost acts now", agents, []func(jwt.MapClaims){act("now", "before", "first")}, actor.Agent, "now", sato, ""},
		{"an agent's client for a person", agents, []func(jwt.MapClaims){set("client_id", "bot")}, actor.Agent, "bot", sato, ""},
		{"an agent's client for itself", agents, []func(jwt.MapClaims){set("client_id", "bot"), set("sub", "bot"), set("owner", "boss")}, actor.Agent, "bot", "", "boss"},
		{"azp instead of client_id", agents, []func(jwt.MapClaims){unset("client_id"), set("azp", "bot")}, actor.Agent, "bot", sato, ""},
		{"client credentials", agents, []func(jwt.MapClaims){set("sub", "console")}, actor.Service, "console", "", ""},
		{"client credentials, subject with a suffix", nil, []func(jwt.MapClaims){set("sub", "console@clients")}, actor.Service, "console@clients", "", ""},
		{"client credentials by grant", nil, []func(jwt.MapClaims){set("sub", "x1"), set("gty", "client-credentials")}, actor.Service, "x1", "", ""},
		{"client credentials by identity type", nil, []func(jwt.MapClaims){set("sub", "x1"), set("idtyp", "app")}, actor.Service, "x1", "", ""},
		{"client credentials by user name", nil, []func(jwt.MapClaims){set("sub", "x1"), set("preferred_username", "service-account-x")}, actor.Service, "x1", "", ""},
		{"a person by a known client", humans, nil, actor.Human, sato, "", ""},
		{"a person by a client that registered itself", humans, []func(jwt.MapClaims){set("client_id", "https://app.example/c.json")}, actor.Agent, "https://app.example/c.json", sato, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "EdDSA", func(cfg *auth.Config) {
				if c.issuer != nil {
					c.issuer(&cfg.Issuers[0])
				}
			})
			got := r.wantAccepted(r.token(c.claims...))
			if got.Kind != c.kind || got.Subject != c.subject || got.For != c.for_ || got.Owner != c.own {
				t.Errorf("got %s %q for %q owner %q, want %s %q for %q owner %q",
					got.Kind, got.Subject, got.For, got.Owner, c.kind, c.subject, c.for_, c.own)
			}
		})
	}
}

// Where clients tell agents from people, a token without a client could be an agent's.
func TestClientIsRequiredWhereItMatters(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256", func(c *auth.Config) { c.Issuers[0].AgentClients = []string{"bot"} })
	r.wantRefused(r.token(unset("client_id")), "claim")
	plain := newRig(t, "ES256")
	plain.wantAccepted(plain.token(unset("client_id")))
}

func TestNewRefusesUnsafeConfiguration(t *testing.T) {
	t.Parallel()
	good := func() auth.Config {
		return auth.Config{Issuers: []auth.Issuer{{URL: "https://idp.example"}}, Audiences: []string{audience}, Now: time.Now}
	}
	if _, err := auth.New(t.Context(), good()); err != nil {
		t.Fatalf("the good configuration: got %v", err)
	}
	cases := map[string]func(*auth.Config){
		"no issuer":            func(c *auth.Config) { c.Issuers = nil },
		"no audience":          func(c *auth.Config) { c.Audiences = nil },
		"empty audience":       func(c *auth.Config) { c.Audiences = []string{audience, ""} },
		"no clock":             func(c *auth.Config) { c.Now = nil },
		"none":                 func(c *auth.Config) { c.Algorithms = []string{"none"} },
		"HS256":                func(c *auth.Config) { c.Algorithms = []string{"ES256", "HS256"} },
		"leeway of an hour":    func(c *auth.Config) { c.Leeway = time.Hour },
		"issuer twice":         func(c *auth.Config) { c.Issuers = append(c.Issuers, c.Issuers[0]) },
		"issuer in the clear":  func(c *auth.Config) { c.Issuers[0].URL = "http://idp.example" },
		"keys in the clear":    func(c *auth.Config) { c.Issuers[0].JWKSURL = "http://idp.example/keys" },
		"keys from a file":     func(c *auth.Config) { c.Issuers[0].JWKSURL = "file:///etc/keys" },
		"issuer with fragment": func(c *auth.Config) { c.Issuers[0].URL = "https://idp.example#a" },
		"issuer empty":         func(c *auth.Config) { c.Issuers[0].URL = "" },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := good()
			spoil(&cfg)
			if _, err := auth.New(t.Context(), cfg); err == nil {
				t.Error("got nil, want an error")
			}
		})
	}
}
