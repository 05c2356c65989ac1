package web_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/signin"
	"github.com/cutonce/cutonce/internal/signin/signintest"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/web"
)

// provided is a sign-in that is made once the console's address is known.
type provided struct{ *signin.SignIn }

func (p *provided) Begin(ctx context.Context, w signin.Wish) (string, error) {
	return p.SignIn.Begin(ctx, w)
}

func (p *provided) Finish(ctx context.Context, browser [32]byte, answer url.Values) (signin.Done, error) {
	return p.SignIn.Finish(ctx, browser, answer)
}

// withProvider is a console whose people sign in at a real OpenID provider.
func withProvider(t *testing.T) (*rig, *signintest.Provider) {
	t.Helper()
	p := signintest.Start(t,
		signintest.Person{Subject: "kim@agency.example", Name: "Kim", Groups: []string{"ads-approvers"}, Roles: []string{"approver"}},
		signintest.Person{Subject: "guest@agency.example", Name: "Guest"})
	way := &provided{}
	r := newRig(t, func(r *rig) { r.deps.Dev, r.deps.SignIn = nil, way })
	p.Client("console", "a secret", r.url+web.SignInDone)
	verifier, err := auth.New(t.Context(), auth.Config{
		Issuers: []auth.Issuer{{URL: p.URL, Tenant: "acme"}}, Audiences: []string{"cutonce"}, Now: time.Now,
	})
	r.must(err)
	way.SignIn, err = signin.New(signin.Config{
		Issuer: p.URL, ClientID: "console", ClientSecret: "a secret", RedirectURL: r.url + web.SignInDone, Scopes: []string{"profile"},
		Wanted: verifier.WantedClaims(p.URL), Key: make([]byte, 32), Now: time.Now, Rand: rand.Reader,
		Person: func(claims map[string]any, granted []string) (actor.Actor, error) {
			return verifier.Person(p.URL, "console", claims, granted)
		},
	})
	r.must(err)
	return r, p
}

// toProvider follows the console's redirects until they leave it, and returns where to.
func (b *browser) toProvider(path string) string {
	b.t.Helper()
	var left string
	b.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if req.URL.Scheme+"://"+req.URL.Host != b.base {
			left = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	defer func() { b.client.CheckRedirect = nil }()
	resp, err := b.client.Get(b.base + path)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if left == "" {
		b.t.Fatalf("%s: got %d, want to be sent to the provider", path, resp.StatusCode)
	}
	return left
}

// signInAt goes through the provider and back, to where the person wanted to go.
func (b *browser) signInAt(p *signintest.Provider, path, subject string) *page {
	b.t.Helper()
	back := p.SignIn(b.t, b.toProvider(path), subject)
	return b.get(back.RequestURI())
}

func (p *page) signedInAs(name string) *page {
	p.t.Helper()
	if got := p.text("footer bdi"); p.status != http.StatusOK || got != name {
		p.t.Errorf("%s: got %d, signed in as %q, want %q", p.url, p.status, got, name)
	}
	return p
}

func TestALinkLeadsThroughTheProviderToTheChange(t *testing.T) {
	t.Parallel()
	r, p := withProvider(t)
	id := r.pending(target.PlainJPY(0))
	path := "/changes/" + id.String() + "/review"
	b := r.browser()
	review := b.signInAt(p, path, "kim@agency.example").signedInAs("Kim Test")
	if got := review.url.Path; got != path {
		t.Errorf("got %s, want %s", got, path)
	}
	if review.Find(`form[action*="/decision"]`).Length() == 0 {
		t.Error("the groups that the provider tells do not count: no form to decide with")
	}
	at, err := url.Parse(r.url)
	r.must(err)
	if got := b.client.Jar.Cookies(at); len(got) != 1 || got[0].Name != "cutonce" {
		t.Errorf("cookies: got %v, want the session alone", got)
	}
}

func TestGroupsDecideAndNotTheSignIn(t *testing.T) {
	t.Parallel()
	r, p := withProvider(t)
	id := r.pending(target.PlainJPY(0))
	got := r.browser().signInAt(p, "/changes/"+id.String()+"/review", "guest@agency.example")
	if got.Find(`form[action*="/decision"]`).Length() != 0 {
		t.Errorf("somebody of no group may decide: %s", got.body)
	}
}

func TestASignInEndsTheCookieThatCameWithIt(t *testing.T) {
	t.Parallel()
	r, p := withProvider(t)
	b := r.browser()
	at, err := url.Parse(r.url)
	r.must(err)
	back := p.SignIn(t, b.toProvider("/"), "kim@agency.example")
	planted := b.client.Jar.Cookies(at)[0].Value
	b.get(back.RequestURI()).signedInAs("Kim Test")
	if got := b.client.Jar.Cookies(at)[0].Value; got == planted {
		t.Error("the cookie from before the sign-in is the session")
	}
	thief := r.browser()
	thief.client.Jar.SetCookies(at, []*http.Cookie{{Name: "cutonce", Value: planted}})
	thief.toProvider("/") // it is signed in nowhere
	// Neither does the address help another browser.
	thief.get(back.RequestURI()).want(http.StatusUnauthorized)
	r.browser().get(p.SignIn(t, b.toProvider("/sign-in/start"), "kim@agency.example").RequestURI()).want(http.StatusUnauthorized, "begun in another browser")
}

func TestSignedOutEverywhere(t *testing.T) {
	t.Parallel()
	r, p := withProvider(t)
	phone, desk := r.browser(), r.browser()
	phone.signInAt(p, "/", "kim@agency.example").signedInAs("Kim Test")
	desk.signInAt(p, "/", "kim@agency.example").signedInAs("Kim Test")
	other := r.browser()
	other.signInAt(p, "/", "guest@agency.example").signedInAs("Guest Test")
	if got := desk.post("/sign-out-everywhere").url.Path; got != "/sign-in" {
		t.Errorf("got %s, want the way in", got)
	}
	for _, b := range []*browser{phone, desk} {
		b.toProvider("/")
	}
	other.get("/").signedInAs("Guest Test")
}

func TestTheConsoleSaysWhenTheProviderIsDown(t *testing.T) {
	t.Parallel()
	r, p := withProvider(t)
	p.Down(true)
	r.browser().get("/sign-in/start").want(http.StatusServiceUnavailable, "cannot be reached")
}
