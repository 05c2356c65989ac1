package main

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// waiting is a change that waits for kim, who is signed in.
func (w *world) waiting() (id, digest string, b *browser) {
	r := w.pending()
	b = w.browser()
	b.signsIn(kimThere())
	return r.PreviewID, w.digest(r.PreviewID), b
}

func replayedSession(w *world) {
	id, digest, b := w.waiting()
	thief := &browser{w: w, cookie: b.cookie}
	w.quiet(func() {
		want(w, "signing out", b.post("/sign-out", nil).status, http.StatusSeeOther)
		thief.out("after sign-out", id, digest)
		here, there := w.browser(), w.browser()
		here.signsIn(kimThere())
		there.signsIn(kimThere())
		stolen := &browser{w: w, cookie: there.cookie}
		want(w, "signing out everywhere", here.post("/sign-out-everywhere", nil).status, http.StatusSeeOther)
		stolen.out("after sign-out everywhere", id, digest)
	})
	b = w.browser()
	b.signsIn(kimThere())
	b.decides(id, digest)
}

func fixedSession(w *world) {
	r := w.pending()
	digest := w.digest(r.PreviewID)
	victim := w.browser()
	invented := encode([]byte(rand.Text() + rand.Text())[:32])
	for what, planted := range map[string]string{"an invented cookie": invented, "a cookie of the attacker's own attempt": w.attackersCookie()} {
		w.quiet(func() {
			victim.cookie = planted
			victim.signsIn(kimThere())
			if victim.cookie == planted || victim.cookie == "" {
				w.fail("%s is still the session's after signing in", what)
			}
			(&browser{w: w, cookie: planted}).out(what, r.PreviewID, digest)
		})
	}
	w.quiet(func() { // somebody else's session, planted: it is ended by the victim's sign-in, not taken over
		attacker := w.browser()
		attacker.signsIn(claims{"sub": "mallory@agency.example", "tenant": "acme"})
		planted := attacker.cookie
		victim.cookie = planted
		victim.signsIn(kimThere())
		(&browser{w: w, cookie: planted}).out("the attacker's session", r.PreviewID, digest)
	})
	victim.decides(r.PreviewID, digest)
}

func (w *world) attackersCookie() string {
	b := w.browser()
	b.begins("/", kimThere())
	return b.cookie
}

func twoCookies(w *world) {
	id, digest, b := w.waiting()
	good := b.cookie
	w.quiet(func() {
		for what, cookies := range map[string]string{
			"two of one name":        sessionCookie + "=" + good + "; " + sessionCookie + "=" + encode(make([]byte, 32)),
			"the same twice":         sessionCookie + "=" + good + "; " + sessionCookie + "=" + good,
			"without __Host-":        "cutonce=" + good,
			"another prefix":         "__Secure-cutonce=" + good,
			"other letters":          "__host-CUTONCE=" + good,
			"padded":                 sessionCookie + "=" + good + "=",
			"one character less":     sessionCookie + "=" + good[:len(good)-1],
			"one character changed":  sessionCookie + "=" + flipped(good),
			"SQL":                    sessionCookie + "=' or 1=1 --",
			"an empty one":           sessionCookie + "=",
			"very long":              sessionCookie + "=" + strings.Repeat(good, 200),
			"a cookie and its hash?": sessionCookie + "=" + encode([]byte(good)[:32]),
		} {
			nobody := w.browser()
			want(w, what, nobody.get("/", "Cookie", cookies).status, http.StatusSeeOther)
			r := nobody.send("POST", "/changes/"+id+"/decision", yes(digest).Encode(), "Cookie", cookies, "Sec-Fetch-Site", "same-origin")
			want(w, what+": a decision", r.status, http.StatusUnauthorized)
		}
	})
	b.cookie = good
	b.decides(id, digest)
}

// flipped changes the first character.
func flipped(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}

func crossSite(w *world) {
	id, digest, b := w.waiting()
	w.quiet(func() {
		for what, headers := range map[string][]string{
			"another site":               {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
			"a neighbour":                {"Sec-Fetch-Site", "same-site", "Origin", "https://shop.cutonce.example"},
			"another site, no origin":    {"Sec-Fetch-Site", "cross-site"},
			"another site, our origin":   {"Sec-Fetch-Site", "same-site", "Origin", "null"},
			"an old browser":             {"Origin", "https://evil.example"},
			"an old browser, in a frame": {"Origin", "null"},
			"a longer name":              {"Origin", "https://cutonce.example.evil.example"},
			"another port":               {"Origin", "https://cutonce.example:8443"},
		} {
			for _, path := range []string{"/changes/" + id + "/decision", "/changes/" + id + "/resolution", "/sign-out", "/sign-out-everywhere"} {
				r := b.send("POST", path, yes(digest).Encode(), headers...)
				want(w, what+" at "+path, r.status, http.StatusForbidden)
			}
		}
		r := b.send("POST", "/changes/"+id+"/decision", `{"decision":"approve","digest":"`+digest+`","x":"="}`, "Sec-Fetch-Site", "cross-site")
		want(w, "JSON in a form", r.status, http.StatusForbidden)
		want(w, "still signed in", b.get("/").status, http.StatusOK)
	})
	b.decides(id, digest)
}

func framed(w *world) {
	id, _, b := w.waiting()
	w.quiet(func() {
		for _, path := range []string{
			"/", "/sign-in", "/changes/" + id, "/changes/" + id + "/review", "/outcomes", "/history", "/nowhere", "/sign-in/done?state=x", "/assets/none",
			"/changes/none",
		} {
			h := b.get(path).header
			csp := h.Get("Content-Security-Policy")
			for _, must := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
				if !strings.Contains(csp, must) {
					w.fail("%s: the content security policy %q lacks %s", path, csp, must)
				}
			}
			scripts := regexp.MustCompile(`script-src[^;]*|connect-src[^;]*`).FindAllString(csp, -1)
			own := slices.Equal(scripts, []string{"script-src 'self'", "connect-src 'self'"})
			if strings.Contains(csp, "unsafe") || !own || strings.Contains(csp, "*") {
				w.fail("%s: the content security policy lets in too much: %s", path, csp)
			}
			want(w, path+": nosniff", h.Get("X-Content-Type-Options"), "nosniff")
			want(w, path+": the referrer", h.Get("Referrer-Policy"), "no-referrer")
			want(w, path+": other origins", h.Get("Access-Control-Allow-Origin"), "")
		}
		for _, path := range []string{"/v1/previews", "/mcp", "/"} {
			r := w.send("OPTIONS", path, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
			want(w, "a preflight at "+path, r.header.Get("Access-Control-Allow-Origin")+r.header.Get("Access-Control-Allow-Headers"), "")
		}
	})
}

func openRedirect(w *world) {
	r := w.pending()
	w.quiet(func() {
		for _, next := range []string{
			"https://evil.example/", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "http:evil.example", "javascript:alert(1)",
			"/\t/evil.example", "/%0d%0aLocation: https://evil.example", "https:/evil.example", "@evil.example", "/..//evil.example", ".evil.example",
			"%2f%2fevil.example", "/%2fevil.example", "/%5cevil.example", " https://evil.example",
		} {
			b := w.browser()
			done := b.finish(b.begins(next, kimThere()))
			want(w, "signing in with next="+next, done.status, http.StatusSeeOther)
			for _, at := range []string{done.header.Get("Location"), b.get("/sign-in?next=" + url.QueryEscape(next)).header.Get("Location")} {
				w.ours(next, at)
			}
		}
	})
	b := w.browser()
	done := b.finish(b.begins("/changes/"+r.PreviewID, kimThere()))
	want(w, "an honest next", done.header.Get("Location"), "/changes/"+r.PreviewID)
}

// ours wants an address that a browser at the console resolves to the console, or none.
func (w *world) ours(next, location string) {
	base, err := url.Parse(public + "/sign-in/done")
	w.must(err)
	to, err := base.Parse(strings.ReplaceAll(location, "\\", "/")) // as browsers read it
	w.must(err)
	if to.Scheme+"://"+to.Host != public {
		w.fail("next=%q leads to %q", next, location)
	}
}

func hostGames(w *world) {
	_, _, b := w.waiting()
	w.quiet(func() {
		for what, headers := range map[string][]string{
			"another Host": {"Host", "evil.example"}, "a Host with a port": {"Host", "evil.example:443"},
			"X-Forwarded-Host": {"X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http"},
			"Forwarded":        {"Forwarded", "host=evil.example"}, "X-Original-URL": {"X-Original-URL", "https://evil.example/", "X-Rewrite-URL", "/evil.example"},
		} {
			for _, path := range []string{"/", "/sign-in", "/sign-in/start?next=/", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/v1/previews", "/mcp", "/nowhere"} {
				r := b.get(path, headers...)
				for name, values := range r.header {
					if strings.Contains(strings.Join(values, " "), "evil.example") {
						w.fail("%s at %s: the header %s says %v", what, path, name, values)
					}
				}
				if strings.Contains(r.text, "evil.example") {
					w.fail("%s at %s: the answer speaks of it: %s", what, path, r.text)
				}
			}
		}
	})
	r := w.send("GET", "/.well-known/oauth-protected-resource/mcp", "")
	if !strings.Contains(r.text, public+"/mcp") {
		w.fail("the metadata does not name our address: %s", r.text)
	}
}

func signInMixUp(w *world) {
	r := w.pending()
	digest := w.digest(r.PreviewID)
	w.quiet(func() {
		attacker, victim := w.browser(), w.browser()
		theirs := attacker.begins("/", kimThere())
		mine := victim.begins("/", kimThere())
		refused := func(what string, b *browser, answer url.Values) {
			got := b.finish(answer)
			want(w, what+" ("+got.text+")", got.status, http.StatusUnauthorized)
			b.out(what, r.PreviewID, digest)
		}
		refused("another browser's attempt", victim, theirs)
		refused("no cookie", w.browser(), theirs)
		refused("another attempt's code", victim, url.Values{"code": theirs["code"], "state": mine["state"]})
		refused("a forged state", victim, url.Values{"code": mine["code"], "state": {encode([]byte(rand.Text() + rand.Text()))}})
		refused("a changed state", victim, url.Values{"code": mine["code"], "state": {flipped(mine.Get("state"))}})
		refused("no state", victim, url.Values{"code": mine["code"]})
		refused("no code", victim, url.Values{"state": mine["state"], "error": {"access_denied"}})
		refused("another server's answer", victim, url.Values{"code": mine["code"], "state": mine["state"], "iss": {w.elsewhere.URL}})
		again := victim.begins("/", kimThere())
		want(w, "an honest attempt", victim.finish(again).status, http.StatusSeeOther)
		other := w.browser()
		refused("a replayed answer", other, again)
	})
	b := w.browser()
	b.signsIn(kimThere())
	b.decides(r.PreviewID, digest)
}

func forgedIDToken(w *world) {
	r := w.pending()
	digest := w.digest(r.PreviewID)
	header := claims{"alg": "RS256", "kid": keyID}
	defer w.home.forges(nil)
	w.quiet(func() {
		for what, forge := range map[string]func(claims) string{
			"unsigned":                  func(c claims) string { return unsigned(claims{"alg": "none"}, c) + "." },
			"another key":               func(c claims) string { return w.elsewhere.provider.signAs(header, c) },
			"the client secret":         func(c claims) string { return signHS([]byte(consoleSecret), claims{"alg": "HS256"}, c) },
			"another audience":          func(c claims) string { return w.home.signAs(header, c.with("aud", "another")) },
			"another party":             func(c claims) string { return w.home.signAs(header, c.with("azp", "another")) },
			"another nonce":             func(c claims) string { return w.home.signAs(header, c.with("nonce", "another")) },
			"no nonce":                  func(c claims) string { return w.home.signAs(header, c.without("nonce")) },
			"another issuer":            func(c claims) string { return w.home.signAs(header, c.with("iss", w.partner.URL)) },
			"an hour ago":               func(c claims) string { return w.home.signAs(header, c.with("exp", time.Now().Add(-time.Hour).Unix())) },
			"another tenant":            func(c claims) string { return w.home.signAs(header, c.with("tenant", "globex")) },
			"somebody acts for another": func(c claims) string { return w.home.signAs(header, c.with("act", claims{"sub": bot})) },
			"nobody":                    func(c claims) string { return w.home.signAs(header, c.without("sub")) },
			"none at all":               func(claims) string { return "" },
		} {
			w.home.forges(forge)
			b := w.browser()
			got := b.finish(b.begins("/", kimThere()))
			want(w, what+" ("+got.text+")", got.status, http.StatusUnauthorized)
			b.out(what, r.PreviewID, digest)
		}
	})
	w.home.forges(nil)
	b := w.browser()
	b.signsIn(kimThere())
	b.decides(r.PreviewID, digest)
}

func (p *provider) forges(forge func(claims) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forge = forge
}

func wrongDoor(w *world) {
	id, digest, b := w.waiting()
	cookie := []string{"Cookie", sessionCookie + "=" + b.cookie, "Content-Type", "application/json", "Host", "cutonce.example"}
	w.quiet(func() {
		r := w.send("POST", "/v1/previews/"+id+"/decisions", `{"decision":"approve","digest":"`+digest+`"}`, cookie...)
		want(w, "a cookie at the API", r.status, http.StatusUnauthorized)
		r = w.send("POST", "/mcp", callOf("change_status", map[string]any{"preview_id": id}), cookie...)
		want(w, "a cookie at MCP", r.status, http.StatusUnauthorized)
		r = w.send("GET", "/v1/previews", "", "Authorization", "Bearer "+b.cookie)
		want(w, "a cookie as a token", r.status, http.StatusUnauthorized)
		for _, who := range []claims{w.kim(), w.agent()} {
			form := []string{"Authorization", "Bearer " + w.token(who), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
			want(w, "a token at the queue", w.send("GET", "/", "", form...).status, http.StatusSeeOther)
			r = w.send("POST", "/changes/"+id+"/decision", yes(digest).Encode(), form...)
			want(w, "a token at a decision", r.status, http.StatusUnauthorized)
			r = w.send("GET", "/", "", "Cookie", sessionCookie+"="+w.token(who))
			want(w, "a token as a cookie", r.status, http.StatusSeeOther)
		}
	})
	b.decides(id, digest)
}

func byAnotherMethod(w *world) {
	id, digest, b := w.waiting()
	ready := w.ready()
	form := yes(digest).Encode()
	at := "/changes/" + id + "/decision"
	w.quiet(func() {
		want(w, "GET", b.get(at+"?"+form).status, http.StatusSeeOther)
		want(w, "HEAD", b.send("HEAD", at+"?"+form, "").status, http.StatusSeeOther)
		want(w, "an override of GET", b.get(at+"?_method=POST&"+form, "X-HTTP-Method-Override", "POST").status, http.StatusSeeOther)
		for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"} {
			r := b.send(method, at+"?"+form, form, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/x-www-form-urlencoded")
			want(w, method, r.status, http.StatusMethodNotAllowed, http.StatusNotFound)
		}
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "TRACE"} {
			r := w.send(method, "/v1/previews/"+ready.PreviewID+"/apply", "", append(bearer(w.token(w.agent())), "X-HTTP-Method-Override", "POST")...)
			want(w, method+" at the API", r.status, http.StatusMethodNotAllowed, http.StatusNotFound)
		}
		r := w.send("POST", "/v1/previews/"+ready.PreviewID, "", append(bearer(w.token(w.agent())), "X-HTTP-Method-Override", "DELETE")...)
		want(w, "POST where there is only GET", r.status, http.StatusMethodNotAllowed)
	})
	b.decides(id, digest)
	w.applies(ready.PreviewID)
}
