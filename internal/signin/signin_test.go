package signin_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/signin"
	"github.com/cutonce/cutonce/internal/signin/signintest"
)

const callback = "http://127.0.0.1:1/sign-in/done"

var browser = sha256.Sum256([]byte("a browser's cookie"))

type seen struct {
	claims  map[string]any
	granted []string
}

func start(t *testing.T, change func(*signin.Config)) (*signin.SignIn, *signintest.Provider, *seen) {
	t.Helper()
	p := signintest.Start(t, signintest.Person{Subject: "kim", Name: "Kim", Groups: []string{"finance", "ads-leads"}, Roles: []string{"approver"}})
	p.Client("console", "a secret", callback)
	got := &seen{}
	c := signin.Config{
		Issuer: p.URL, ClientID: "console", ClientSecret: "a secret", RedirectURL: callback, Scopes: []string{"profile"},
		Wanted: []string{"groups", "roles"}, Key: make([]byte, 32), Now: time.Now, Rand: rand.Reader,
		Person: func(claims map[string]any, granted []string) (actor.Actor, error) {
			*got = seen{claims, granted}
			sub, _ := claims["sub"].(string)
			return actor.Actor{Kind: actor.Human, Subject: sub}, nil
		},
	}
	if change != nil {
		change(&c)
	}
	s, err := signin.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, p, got
}

func begin(t *testing.T, s *signin.SignIn, w signin.Wish) string {
	t.Helper()
	if w.Browser == ([32]byte{}) {
		w.Browser = browser
	}
	address, err := s.Begin(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func TestSomebodySignsIn(t *testing.T) {
	t.Parallel()
	s, p, got := start(t, nil)
	address := begin(t, s, signin.Wish{Next: "/changes/1/review", Locale: "ja"})
	back := p.SignIn(t, address, "kim")
	done, err := s.Finish(t.Context(), browser, back.Query())
	if err != nil {
		t.Fatal(err)
	}
	if done.Who.Subject != "kim" || done.Next != "/changes/1/review" {
		t.Errorf("got %+v", done)
	}
	want := []any{"finance", "ads-leads"}
	if diff := cmp.Diff(want, got.claims["groups"]); diff != "" {
		t.Errorf("groups, from the userinfo endpoint (-want +got):\n%s", diff)
	}
	if _, ok := got.claims["auth_time"].(json.Number); !ok {
		t.Errorf("auth_time: got %T, want a number as it was written", got.claims["auth_time"])
	}
	if !slices.Contains(got.granted, "profile") {
		t.Errorf("granted: got %v", got.granted)
	}
}

// TestTheWayThereHidesWhatProvesIt reads what the browser and the provider get to see.
func TestTheWayThereHidesWhatProvesIt(t *testing.T) {
	t.Parallel()
	s, _, _ := start(t, nil)
	u, err := url.Parse(begin(t, s, signin.Wish{Next: "/secret-place"}))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("response_type") != "code" {
		t.Errorf("got %v, want the code flow with S256 and a nonce", q)
	}
	if q.Get("prompt") != "" || strings.Contains(u.String(), "secret-place") || strings.Contains(u.String(), "verifier") {
		t.Errorf("got %v", q)
	}
	other, err := url.Parse(begin(t, s, signin.Wish{Next: "/secret-place"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if q.Get(name) == other.Query().Get(name) {
			t.Errorf("%s is the same twice", name)
		}
	}
}

func TestRefusedOnTheWayBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, key string
		change    func(q url.Values)
		browser   [32]byte
		asked     int // how often the provider's token endpoint is asked
	}{
		{"another browser", "web.fault.sign_in_attempt", nil, sha256.Sum256([]byte("another")), 0},
		{"no state", "web.fault.sign_in_attempt", func(q url.Values) { q.Del("state") }, browser, 0},
		{"a changed state", "web.fault.sign_in_attempt", func(q url.Values) { q.Set("state", "A"+q.Get("state")[1:]+"A") }, browser, 0},
		{"another server's answer", "web.fault.sign_in_refused", func(q url.Values) { q.Set("iss", "https://other.example") }, browser, 0},
		{"no code", "web.fault.sign_in_refused", func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, browser, 0},
		{"a code of nobody", "web.fault.sign_in_refused", func(q url.Values) { q.Set("code", "guessed") }, browser, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, p, _ := start(t, nil)
			q := p.SignIn(t, begin(t, s, signin.Wish{}), "kim").Query()
			if tc.change != nil {
				tc.change(q)
			}
			_, err := s.Finish(t.Context(), tc.browser, q)
			if f := fault.From(err); f.Code != fault.Unauthenticated || f.Key != tc.key {
				t.Errorf("got %v, want unauthenticated (%s)", err, tc.key)
			}
			if got := p.Asked(); got != tc.asked {
				t.Errorf("the token endpoint was asked %d times, want %d", got, tc.asked)
			}
		})
	}
}

func TestAnAnswerIsGoodOnce(t *testing.T) {
	t.Parallel()
	s, p, _ := start(t, nil)
	q := p.SignIn(t, begin(t, s, signin.Wish{}), "kim").Query()
	if _, err := s.Finish(t.Context(), browser, q); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Finish(t.Context(), browser, q); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("the second time: got %v, want unauthenticated", err)
	}
}

// TestOneAttemptsCodeIsNoGoodForAnother: the nonce and the verifier belong to one attempt.
func TestOneAttemptsCodeIsNoGoodForAnother(t *testing.T) {
	t.Parallel()
	s, p, _ := start(t, nil)
	first := p.SignIn(t, begin(t, s, signin.Wish{}), "kim").Query()
	second := p.SignIn(t, begin(t, s, signin.Wish{}), "kim").Query()
	second.Set("code", first.Get("code"))
	if _, err := s.Finish(t.Context(), browser, second); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("got %v, want unauthenticated", err)
	}
}

func TestAnAttemptEnds(t *testing.T) {
	t.Parallel()
	var late time.Duration
	s, p, _ := start(t, func(c *signin.Config) { c.Now = func() time.Time { return time.Now().Add(late) } })
	q := p.SignIn(t, begin(t, s, signin.Wish{}), "kim").Query()
	late = 11 * time.Minute
	if _, err := s.Finish(t.Context(), browser, q); fault.From(err).Key != "web.fault.sign_in_attempt" {
		t.Errorf("got %v, want a link that has ended", err)
	}
}

func TestAFreshSignIn(t *testing.T) {
	t.Parallel()
	var early time.Duration
	s, p, _ := start(t, func(c *signin.Config) { c.Now = func() time.Time { return time.Now().Add(early) } })
	address := begin(t, s, signin.Wish{Fresh: true})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if u.Query().Get("prompt") != "login" || u.Query().Get("max_age") != "0" {
		t.Errorf("got %v, want the provider told to ask again", u.Query())
	}
	if _, err := s.Finish(t.Context(), browser, p.SignIn(t, address, "kim").Query()); err != nil {
		t.Errorf("somebody who showed themselves just now: %v", err)
	}
	// A provider that ignores the wish: the person was seen before the attempt began.
	early = 5 * time.Minute
	address = begin(t, s, signin.Wish{Fresh: true})
	if _, err := s.Finish(t.Context(), browser, p.SignIn(t, address, "kim").Query()); fault.From(err).Key != "web.fault.sign_in_stale" {
		t.Errorf("got %v, want a sign-in that is not fresh to be refused", err)
	}
}

func TestAProviderThatIsDown(t *testing.T) {
	t.Parallel()
	s, p, _ := start(t, nil)
	p.Down(true)
	if _, err := s.Begin(t.Context(), signin.Wish{Browser: browser}); fault.From(err).Key != "web.fault.sign_in_unreachable" {
		t.Errorf("got %v, want a provider that cannot be reached", err)
	}
	p.Down(false)
	q := p.SignIn(t, begin(t, s, signin.Wish{}), "kim").Query()
	p.Down(true)
	if _, err := s.Finish(t.Context(), browser, q); fault.From(err).Key != "web.fault.sign_in_unreachable" {
		t.Errorf("got %v, want a provider that cannot be reached", err)
	}
	p.Down(false)
	if _, err := s.Finish(t.Context(), browser, q); err != nil {
		t.Errorf("the answer is still good once the provider is back: %v", err)
	}
}

func TestWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	if _, err := signin.New(signin.Config{}); err == nil {
		t.Error("got no error without a provider")
	}
	c := signin.Config{
		Issuer: "https://id.example", ClientID: "c", RedirectURL: callback, Now: time.Now, Rand: rand.Reader, Key: []byte("short"),
		Person: func(map[string]any, []string) (actor.Actor, error) { return actor.Actor{}, nil },
	}
	if _, err := signin.New(c); err == nil {
		t.Error("got no error for a short key")
	}
}
