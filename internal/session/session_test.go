package session_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/session"
)

// store is a Store with a clock that only moves when told.
type store struct {
	now     time.Time
	rows    map[[32]byte]*row
	touched int
	broken  error
}

type row struct {
	session.Record
	expiresAt, seenAt time.Time
}

func (s *store) Put(_ context.Context, r session.Record) error {
	if s.broken == nil {
		s.rows[r.Hash] = &row{r, s.now.Add(r.AbsoluteFor), s.now}
	}
	return s.broken
}

func (s *store) Get(_ context.Context, hash [32]byte, idleFor time.Duration) ([]byte, time.Duration, error) {
	r, ok := s.rows[hash]
	if s.broken != nil {
		return nil, 0, s.broken
	}
	if !ok || !s.now.Before(r.expiresAt) || s.now.Sub(r.seenAt) >= idleFor {
		return nil, 0, session.ErrNone
	}
	return r.Actor, s.now.Sub(r.seenAt), nil
}

func (s *store) Touch(_ context.Context, hash [32]byte) error {
	s.touched++
	s.rows[hash].seenAt = s.now
	return s.broken
}

func (s *store) Delete(_ context.Context, hash [32]byte) error {
	if s.broken == nil {
		delete(s.rows, hash)
	}
	return s.broken
}

func (s *store) DeleteAll(_ context.Context, tenant, person string) error {
	for hash, r := range s.rows {
		if r.Tenant == tenant && r.Person == person {
			delete(s.rows, hash)
		}
	}
	return s.broken
}

var kim = actor.Actor{
	Tenant: "acme", Kind: actor.Human, Issuer: "https://idp.example", Subject: "kim@agency.example", Name: "김민준", Locale: "en",
	Groups: []string{"ads-approvers"}, Roles: []string{"approver"}, Scopes: []string{"ads:read"}, AuthTime: time.Unix(1796115600, 0).UTC(),
}

// browser is a Manager and the one cookie that its user holds.
type browser struct {
	t       *testing.T
	manager *session.Manager
	store   *store
	cookie  *http.Cookie
}

func newBrowser(t *testing.T, change ...func(*session.Config)) *browser {
	t.Helper()
	b := &browser{t: t, store: &store{now: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), rows: map[[32]byte]*row{}}}
	cfg := session.Config{Store: b.store, Rand: rand.Reader, Secure: true}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if b.manager, err = session.New(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) request() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://cutonce.example/", nil)
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	return r
}

func (b *browser) signIn(a actor.Actor) {
	b.t.Helper()
	w := httptest.NewRecorder()
	if err := b.manager.Start(w, b.request(), a); err != nil {
		b.t.Fatalf("Start: %v", err)
	}
	b.cookie = w.Result().Cookies()[0]
}

func (b *browser) wantSignedOut() {
	b.t.Helper()
	if a, err := b.manager.Actor(b.request()); fault.From(err).Key != "fault.unauthenticated.session" {
		b.t.Errorf("got %+v, %v, want to be signed out", a, err)
	}
}

func (b *browser) wantSignedIn(want actor.Actor) {
	b.t.Helper()
	got, err := b.manager.Actor(b.request())
	if err != nil {
		b.t.Fatalf("Actor: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("actor (-want +got):\n%s", diff)
	}
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.wantSignedOut()
	b.signIn(kim)
	b.wantSignedIn(kim)
	w := httptest.NewRecorder()
	if err := b.manager.End(w, b.request()); err != nil {
		t.Fatal(err)
	}
	if got := w.Result().Cookies()[0]; got.MaxAge >= 0 || got.Value != "" {
		t.Errorf("the cookie after signing out: got %v, want it cleared", got)
	}
	b.wantSignedOut() // also when the browser keeps the cookie
}

func TestCookie(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secure bool
		base   string
		prefix string
	}{
		"https":             {true, "", "__Host-cutonce="},
		"http on loopback":  {false, "", "cutonce="},
		"a second instance": {false, "cutonce-demo", "cutonce-demo="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrowser(t, func(cfg *session.Config) { cfg.Secure, cfg.Name = c.secure, c.base })
			w := httptest.NewRecorder()
			if err := b.manager.Start(w, b.request(), kim); err != nil {
				t.Fatal(err)
			}
			got := w.Header().Get("Set-Cookie")
			want := "; Path=/; Max-Age=604800; HttpOnly"
			if c.secure {
				want += "; Secure"
			}
			if want += "; SameSite=Lax"; !strings.HasPrefix(got, c.prefix) || !strings.HasSuffix(got, want) {
				t.Errorf("got %q, want %s…%s", got, c.prefix, want)
			}
		})
	}
}

func TestStoreHoldsOnlyTheHash(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.signIn(kim)
	token, err := base64.RawURLEncoding.DecodeString(b.cookie.Value)
	if err != nil || len(token) != 32 {
		t.Fatalf("the cookie: got %d bytes, %v, want 32", len(token), err)
	}
	r, ok := b.store.rows[sha256.Sum256(token)]
	if !ok {
		t.Fatal("the row is not under the token's SHA-256")
	}
	if bytes.Contains(r.Actor, token) || strings.Contains(string(r.Actor), b.cookie.Value) {
		t.Error("the row holds the token")
	}
	if r.Tenant != "acme" || r.Person != kim.Person() {
		t.Errorf("the row is of %q, %q", r.Tenant, r.Person)
	}
}

func TestNoFixation(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	planted := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	b.cookie = &http.Cookie{Name: "__Host-cutonce", Value: planted}
	b.signIn(kim)
	if b.cookie.Value == planted {
		t.Fatal("the planted name was adopted")
	}
	first := b.cookie
	b.signIn(kim)
	if b.cookie.Value == first.Value {
		t.Error("a second sign-in kept the name")
	}
	b.cookie = first
	b.wantSignedOut() // the earlier session ended with the new sign-in
	if got := len(b.store.rows); got != 1 {
		t.Errorf("sessions: got %d, want 1", got)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		b := newBrowser(t)
		b.signIn(kim)
		b.store.now = b.store.now.Add(12*time.Hour - 1)
		b.wantSignedIn(kim)
		b.store.now = b.store.now.Add(12*time.Hour - 1) // the last look counted as use
		b.wantSignedIn(kim)
		b.store.now = b.store.now.Add(12 * time.Hour)
		b.wantSignedOut()
	})
	t.Run("absolute", func(t *testing.T) {
		t.Parallel()
		b := newBrowser(t)
		b.signIn(kim)
		for range 7*24 - 1 {
			b.store.now = b.store.now.Add(time.Hour)
			b.wantSignedIn(kim)
		}
		b.store.now = b.store.now.Add(time.Hour)
		b.wantSignedOut()
	})
	t.Run("everywhere", func(t *testing.T) {
		t.Parallel()
		b := newBrowser(t)
		b.signIn(kim)
		laptop := b.cookie
		b.cookie = nil
		tanaka := kim
		tanaka.Subject = "tanaka@agency.example"
		b.signIn(tanaka)
		tanakas := b.cookie
		b.cookie = nil
		b.signIn(kim)
		if err := b.manager.EndAll(httptest.NewRecorder(), b.request(), kim); err != nil {
			t.Fatal(err)
		}
		b.wantSignedOut()
		b.cookie = laptop
		b.wantSignedOut()
		b.cookie = tanakas
		b.wantSignedIn(tanaka)
	})
}

func TestUseIsRecordedAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.signIn(kim)
	for range 10 {
		b.wantSignedIn(kim)
	}
	b.store.now = b.store.now.Add(time.Minute)
	b.wantSignedIn(kim)
	b.wantSignedIn(kim)
	if b.store.touched != 1 {
		t.Errorf("writes: got %d, want 1", b.store.touched)
	}
}

// TestAnOpenPageIsNoUse: what a page asks by itself finds the session, and does not keep it.
func TestAnOpenPageIsNoUse(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, func(c *session.Config) { c.IdleFor = time.Hour })
	b.signIn(kim)
	for range 3 {
		b.store.now = b.store.now.Add(19 * time.Minute)
		if got, err := b.manager.Peek(b.request()); err != nil || got.Subject != kim.Subject {
			t.Fatalf("Peek: got %+v, %v, want %s", got, err, kim.Subject)
		}
	}
	if b.store.touched != 0 {
		t.Errorf("writes: got %d, want none", b.store.touched)
	}
	b.store.now = b.store.now.Add(3 * time.Minute)
	if got, err := b.manager.Peek(b.request()); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("Peek: got %+v, %v, want to be signed out", got, err)
	}
	b.wantSignedOut()
}

func TestOnlyHumansSignIn(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	for _, kind := range []actor.Kind{actor.Agent, actor.Service, ""} {
		a := kim
		a.Kind = kind
		w := httptest.NewRecorder()
		err := b.manager.Start(w, b.request(), a)
		if !errors.Is(err, fault.Forbidden) || len(b.store.rows) != 0 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%q: got %v, %d sessions, want forbidden and none", kind, err, len(b.store.rows))
		}
	}
}

func TestBadCookiesAreNobody(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.signIn(kim)
	good := b.cookie.Value
	for name, value := range map[string]string{"empty": "", "short": good[:42], "long": good + "A", "padded": good + "=", "not base64": "!" + good[1:]} {
		b.cookie = &http.Cookie{Name: "__Host-cutonce", Value: value}
		if _, err := b.manager.Actor(b.request()); !errors.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %v, want unauthenticated", name, err)
		}
	}
	b.cookie = &http.Cookie{Name: "cutonce", Value: good}
	b.wantSignedOut() // the name without __Host- can be planted by a neighbour
	b.cookie = &http.Cookie{Name: "__Host-cutonce", Value: good}
	r := b.request()
	r.AddCookie(b.cookie)
	if _, err := b.manager.Actor(r); !errors.Is(err, fault.Unauthenticated) {
		t.Errorf("two cookies: got %v, want unauthenticated", err)
	}
}

func TestDeadStoreIsNotSignedOut(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	b.signIn(kim)
	b.store.broken = errors.New("connection refused")
	if _, err := b.manager.Actor(b.request()); err == nil || fault.CodeOf(err) != fault.Internal {
		t.Errorf("Actor: got %v, want an internal error", err)
	}
	w := httptest.NewRecorder()
	if err := b.manager.Start(w, b.request(), kim); err == nil || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("Start: got %v and cookie %q, want an error and none", err, w.Header().Get("Set-Cookie"))
	}
	w = httptest.NewRecorder()
	if err := b.manager.End(w, b.request()); err == nil || w.Header().Get("Set-Cookie") == "" {
		t.Errorf("End: got %v and cookie %q, want an error and the cookie cleared", err, w.Header().Get("Set-Cookie"))
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []session.Config{{Rand: rand.Reader}, {Store: &store{}}} {
		if _, err := session.New(cfg); err == nil {
			t.Errorf("%+v: got nil, want an error", cfg)
		}
	}
}
