package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// forged tries tokens at all three doors that take one, each against a change that could be applied, and then lets the honest
// caller apply it.
func (w *world) forged(tokens map[string]string) {
	ready := w.ready()
	w.quiet(func() {
		for what, token := range tokens {
			w.refusesToken(what, token, ready.PreviewID)
		}
	})
	w.applies(ready.PreviewID)
}

func (w *world) refusesToken(what, token, id string) {
	for _, door := range [][3]string{
		{"GET", "/v1/previews", ""},
		{"POST", "/v1/previews/" + id + "/apply", ""},
		{"POST", "/mcp", callOf("budget_change_apply", map[string]any{"preview_id": id})},
	} {
		r := w.send(door[0], door[1], door[2], append(bearer(token), "Accept", "application/json, text/event-stream")...)
		want(w, what+" at "+door[1]+" ("+r.text+")", r.status, http.StatusUnauthorized)
		if !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") {
			w.fail("%s: got no challenge", what)
		}
	}
}

func algConfusion(w *world) {
	public := &w.home.key.PublicKey
	pkix, err := x509.MarshalPKIXPublicKey(public)
	w.must(err)
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	tokens := map[string]string{}
	for what, secret := range map[string][]byte{
		"PKIX in PEM": block("PUBLIC KEY", pkix), "PKIX": pkix, "PKCS #1 in PEM": block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(public)),
		"PKCS #1": x509.MarshalPKCS1PublicKey(public), "the modulus": public.N.Bytes(), "the modulus as text": []byte(encode(public.N.Bytes())),
		"the JWK": asJSON(w.home.jwk()), "nothing": {},
	} {
		for _, alg := range []string{"HS256", "hs256", "RS256"} {
			tokens[alg+" with "+what] = signHS(secret, claims{"alg": alg, "kid": keyID, "typ": "at+jwt"}, w.agent())
		}
	}
	w.forged(tokens)
}

func algNone(w *world) {
	tokens := map[string]string{}
	signed := w.home.sign(w.agent())
	for _, alg := range []any{"none", "None", "NONE", "nOnE", "", nil, []string{"none"}} {
		bare := unsigned(claims{"alg": alg, "kid": keyID, "typ": "at+jwt"}, w.agent())
		tokens[fmt.Sprintf("%v", alg)] = bare + "."
		tokens[fmt.Sprintf("%v with a signature", alg)] = bare + signed[strings.LastIndex(signed, "."):]
	}
	tokens["a stripped signature"] = signed[:strings.LastIndex(signed, ".")+1]
	w.forged(tokens)
}

func kidInjection(w *world) {
	tokens, before := map[string]string{}, w.elsewhere.called()
	for _, kid := range []any{
		"../../../../dev/null", "/dev/null", "file:///dev/null", "' or '1'='1", "key-1' union select 'a' --", w.elsewhere.URL + "/keys",
		"key-1\x00", "|| true", "${jndi:ldap://x}", strings.Repeat("k", 9000), "", nil, 1, []string{keyID}, claims{"a": 1},
	} {
		header := claims{"alg": "RS256", "kid": kid, "typ": "at+jwt"}
		tokens[fmt.Sprintf("%.40v", kid)] = w.elsewhere.provider.signAs(header, w.agent())
		tokens[fmt.Sprintf("%.40v and an empty secret", kid)] = signHS(nil, claims{"alg": "HS256", "kid": kid, "typ": "at+jwt"}, w.agent())
	}
	w.forged(tokens)
	want(w, "calls to the attacker's keys", w.elsewhere.called(), before)
}

func keyByHeader(w *world) {
	theirs := w.elsewhere.provider
	before := w.elsewhere.called()
	der := base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PublicKey(&theirs.key.PublicKey))
	tokens := map[string]string{}
	for name, value := range map[string]any{
		"jku": w.elsewhere.URL + "/keys", "x5u": w.elsewhere.URL + "/certificate", "jwk": theirs.jwk(), "x5c": []string{der},
	} {
		for _, kid := range []string{keyID, "other"} {
			header := claims{"alg": "RS256", "kid": kid, "typ": "at+jwt", name: value}
			tokens[name+" "+kid] = theirs.signAs(header, w.agent())
		}
	}
	w.forged(tokens)
	want(w, "calls to the attacker's keys", w.elsewhere.called(), before)
}

func wrongAudience(w *world) {
	tokens := map[string]string{}
	for _, aud := range []any{
		[]string{"https://other.example", "another"}, []string{}, []any{nil}, "https://other.example", "cutonce", "cutonce-fleet/", "Cutonce-Fleet",
		" cutonce-fleet", "cutonce-fleet,x", claims{"cutonce-fleet": true}, 1, []any{[]string{"cutonce-fleet"}}, console,
	} {
		tokens[fmt.Sprintf("%v", aud)] = w.home.sign(w.agent().with("aud", aud))
	}
	w.forged(tokens)
}

func noAudience(w *world) {
	w.forged(map[string]string{
		"none": w.home.sign(w.agent().without("aud")), "null": w.home.sign(w.agent().with("aud", nil)), "empty": w.home.sign(w.agent().with("aud", "")),
		"as resource": w.home.sign(w.agent().without("aud").with("resource", w.agent()["aud"])),
	})
}

func expired(w *world) {
	past := time.Now().Add(-time.Minute)
	w.forged(map[string]string{
		"a minute ago": w.home.sign(w.agent().with("exp", past.Unix())), "never": w.home.sign(w.agent().without("exp")),
		"null": w.home.sign(w.agent().with("exp", nil)), "in words": w.home.sign(w.agent().with("exp", "tomorrow")), "zero": w.home.sign(w.agent().with("exp", 0)),
		"negative": w.home.sign(w.agent().with("exp", -1)), "a list": w.home.sign(w.agent().with("exp", []int64{time.Now().Unix() + 900})),
	})
}

func notYet(w *world) {
	soon := time.Now().Add(5 * time.Minute).Unix()
	w.forged(map[string]string{
		"nbf": w.home.sign(w.agent().with("nbf", soon)), "iat": w.home.sign(w.agent().with("iat", soon)), "nbf in words": w.home.sign(w.agent().with("nbf", "yesterday")),
	})
}

func issuerMixUp(w *world) {
	ours, theirs := w.agent(), w.stranger()
	w.forged(map[string]string{
		"a partner's key for our issuer":  w.partner.sign(ours),
		"our key for the partner":         w.home.sign(theirs),
		"a partner for our tenant":        w.partner.sign(theirs.with("tenant", "acme")),
		"a partner for no tenant":         w.partner.sign(theirs.without("tenant")),
		"our issuer for another's tenant": w.home.sign(ours.with("tenant", "globex")),
		"the development issuer's name":   w.home.sign(ours.with("iss", w.f.Issuer.URL())),
		"an unknown issuer":               w.elsewhere.provider.sign(ours.with("iss", w.elsewhere.provider.URL)),
		"a trailing slash":                w.home.sign(ours.with("iss", w.home.URL+"/")),
		"other letters":                   w.home.sign(ours.with("iss", strings.ToUpper(w.home.URL))),
		"two issuers":                     w.home.sign(ours.with("iss", []string{w.home.URL, w.partner.URL})),
		"no issuer":                       w.home.sign(ours.without("iss")),
		"an agent of another issuer":      w.home.sign(ours.with("act", claims{"sub": bot, "iss": w.partner.URL})),
	})
	r := w.send("GET", "/v1/previews", "", bearer(w.token(theirs))...)
	want(w, "the partner's honest token", r.status, http.StatusOK)
}

// floodOf is how many key IDs are made up.
const floodOf = 300

func keyFlood(w *world) {
	before := w.home.requests()
	began := time.Now()
	w.quiet(func() {
		for i := range floodOf {
			header := claims{"alg": "RS256", "kid": fmt.Sprintf("made-up-%d", i), "typ": "at+jwt"}
			r := w.send("GET", "/v1/previews", "", bearer(w.elsewhere.provider.signAs(header, w.agent()))...)
			want(w, "a made-up key", r.status, http.StatusUnauthorized)
		}
	})
	allowed := 2 + int(time.Since(began)/(10*time.Second)) // one in ten seconds
	if asked := w.home.requests() - before; asked > allowed {
		w.fail("%d made-up keys: the issuer was asked %d times, want %d at most", floodOf, asked, allowed)
	}
}

func notAccessTokens(w *world) {
	id := w.home.person("kim@agency.example", "Minjun Kim")
	w.forged(map[string]string{
		"an ID token":                 w.home.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "JWT"}, id.with("aud", console).with("nonce", "n")),
		"an ID token for our address": w.home.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "JWT"}, id.with("at_hash", "x")),
		"by its typ claim":            w.home.sign(id.with("typ", "ID")),
		"a refresh token":             w.home.sign(id.with("typ", "Refresh")),
		"a logout token":              w.home.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "logout+jwt"}, id),
		"a DPoP proof":                w.home.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "dpop+jwt"}, id),
		"an ID token by its type":     w.home.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "id_token+jwt"}, id),
	})
}

func oversized(w *world) {
	w.forged(map[string]string{
		"17 KiB": w.home.sign(w.agent().with("more", strings.Repeat("x", 17<<10))), "40 KiB": w.home.sign(w.agent().with("more", strings.Repeat("x", 28<<10))),
	})
	w.quiet(func() {
		r := w.send("GET", "/v1/previews", "", bearer(strings.Repeat("x", 80<<10))...)
		want(w, "80 KiB of header", r.status, http.StatusRequestHeaderFieldsTooLarge)
	})
}

func tampered(w *world) {
	honest := w.home.sign(w.agent())
	parts := strings.Split(honest, ".")
	other := strings.Split(w.home.sign(w.otherAgent()), ".")
	twice := `{"sub":"kim@agency.example",` + string(asJSON(w.agent()))[1:]
	w.forged(map[string]string{
		"another's payload":      parts[0] + "." + other[1] + "." + parts[2],
		"another's signature":    parts[0] + "." + parts[1] + "." + other[2],
		"a name given twice":     parts[0] + "." + encode([]byte(twice)) + "." + parts[2],
		"four parts":             honest + "." + parts[2],
		"two parts":              parts[0] + "." + parts[1],
		"standard base64":        parts[0] + "." + parts[1] + "." + parts[2] + "==",
		"PS256 for the same key": w.home.signAs(claims{"alg": "PS256", "kid": keyID, "typ": "at+jwt"}, w.agent()),
		"ES256 for the same key": w.home.signAs(claims{"alg": "ES256", "kid": keyID, "typ": "at+jwt"}, w.agent()),
		"a critical extension":   w.home.signAs(claims{"alg": "RS256", "kid": keyID, "typ": "at+jwt", "crit": []string{"x"}, "x": 1}, w.agent()),
	})
}

func tokenElsewhere(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	at := "/v1/previews/" + ready.PreviewID + "/apply"
	form := []string{"Content-Type", "application/json"}
	w.quiet(func() {
		for what, headers := range map[string][]string{
			"a cookie": append(form, "Cookie", "access_token="+token), "Basic": append(form, "Authorization", "Basic "+token),
			"no scheme": append(form, "Authorization", token), "two headers": append(bearer(token), "Authorization", "Bearer "+token),
			"X-Authorization": append(form, "X-Authorization", "Bearer "+token), "a forwarded user": append(form, "X-Forwarded-User", "kim@agency.example"),
			"two tokens in one": append(form, "Authorization", "Bearer "+token+", Bearer "+token), "DPoP": append(form, "Authorization", "DPoP "+token),
		} {
			want(w, what, w.send("POST", at, "", headers...).status, http.StatusUnauthorized)
		}
		want(w, "in the query", w.send("POST", at+"?access_token="+token, "", form...).status, http.StatusUnauthorized)
		want(w, "in the body", w.send("POST", at, `{"access_token":"`+token+`"}`, form...).status, http.StatusUnauthorized)
	})
	w.applies(ready.PreviewID)
}
