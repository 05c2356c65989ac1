package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/cutonce/cutonce/test/fleet"
)

// sessionCookie is the console's, as it is called behind https.
const sessionCookie = "__Host-cutonce"

// browser is somebody's browser at the console, as behind a TLS proxy.
type browser struct {
	w      *world
	cookie string
}

func (w *world) browser() *browser { return &browser{w: w} }

// get opens an address. headers are pairs.
func (b *browser) get(path string, headers ...string) reply {
	return b.send("GET", path, "", headers...)
}

// post sends a form of the console's own page.
func (b *browser) post(path string, form url.Values) reply {
	return b.send("POST", path, form.Encode(), "Sec-Fetch-Site", "same-origin", "Origin", "null")
}

// send makes a request with the cookie and learns a new one. Forms are labelled as such.
func (b *browser) send(method, path, body string, headers ...string) reply {
	all := []string{"Host", "cutonce.example"}
	if b.cookie != "" {
		all = append(all, "Cookie", sessionCookie+"="+b.cookie)
	}
	if method == "POST" {
		all = append(all, "Content-Type", "application/x-www-form-urlencoded")
	}
	r := b.w.send(method, path, body, append(all, headers...)...)
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		if c.Name == sessionCookie {
			b.cookie = c.Value
		}
	}
	return r
}

// signsIn takes a person through the provider and back, and wants a session.
func (b *browser) signsIn(person claims) {
	r := b.finish(b.begins("/", person))
	want(b.w, "signing in ("+r.text+")", r.status, http.StatusSeeOther)
	want(b.w, "the queue of somebody signed in", b.get("/").status, http.StatusOK)
}

// begins goes to the provider, where the person shows themselves, and returns what the browser brings back.
func (b *browser) begins(next string, person claims) url.Values {
	r := b.get("/sign-in/start?next=" + url.QueryEscape(next))
	want(b.w, "beginning to sign in ("+r.text+")", r.status, http.StatusSeeOther)
	to := r.header.Get("Location")
	if !strings.HasPrefix(to, b.w.home.URL+"/authorize?") {
		b.w.fail("signing in leads to %s", to)
	}
	code, state, err := b.w.home.authorize(person, to)
	b.w.must(err)
	return url.Values{"code": {code}, "state": {state}}
}

func (b *browser) finish(answer url.Values) reply { return b.get("/sign-in/done?" + answer.Encode()) }

// out wants that nobody is signed in here: a page leads to the way in, a decision is refused.
func (b *browser) out(what, id, digest string) {
	cookie := b.cookie
	want(b.w, what+": the queue", b.get("/").status, http.StatusSeeOther)
	b.cookie = cookie
	r := b.post("/changes/"+id+"/decision", yes(digest))
	want(b.w, what+": a decision", r.status, http.StatusUnauthorized)
	b.cookie = cookie
}

// yes is the form of an approval.
func yes(digest string) url.Values {
	return url.Values{"decision": {"approve"}, "digest": {digest}, "reason": {"looked at it"}}
}

// decides is the positive control of the console: the form of our own page, and the change is approved.
func (b *browser) decides(id, digest string) {
	r := b.post("/changes/"+id+"/decision", yes(digest))
	want(b.w, "the honest decision ("+r.text+")", r.status, http.StatusSeeOther)
	s, err := b.w.caller(b.w.agent()).Status(b.w.ctx, id, 0)
	b.w.must(err)
	want(b.w, "the change after the honest decision", s.Status, "approved")
}

// kimThere is the approver as the provider knows them.
func kimThere() claims {
	return claims{
		"sub": "kim@agency.example", "name": "Minjun Kim", "locale": "en", "tenant": fleet.Tenant, "groups": []string{"ads-approvers"},
		"roles": []string{"approver"},
	}
}
