// Package session keeps people signed in at the console.
//
// The promise: a browser holds a random 256-bit name and the store holds only its SHA-256, so that a copy of the database
// signs nobody in; every sign-in makes a new name and ends the one that the browser came with, so that a planted cookie is
// worth nothing; a session ends after idling, at an absolute age, and on request, by the store's clock.
//
// What it does not promise: protection against cross-site requests (the web room refuses those), or that a person whose
// rights changed at the identity provider loses them before the session ends.
//
// Start at New, Manager.Start and Manager.Actor.
package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

const tokenBytes = 32

// ErrNone is what a Store returns for a session that does not exist or has ended.
var ErrNone = errors.New("no such session")

// Record is a session to be stored.
type Record struct {
	Hash   [32]byte
	Tenant string
	// Person is the actor's PersonID: what DeleteAll goes by.
	Person string
	// Actor is opaque to the store.
	Actor []byte
	// AbsoluteFor is how long the session may live at all, counted by the store from now.
	AbsoluteFor time.Duration
}

// Store keeps sessions. Its clock decides what has ended; only ended or missing sessions are ErrNone.
type Store interface {
	// Put stores a new session.
	Put(ctx context.Context, r Record) error
	// Get returns the actor of a session that is neither past its absolute end nor has idled for idleFor, and how long it
	// has idled.
	Get(ctx context.Context, hash [32]byte, idleFor time.Duration) (actor []byte, idle time.Duration, err error)
	// Touch says that the session is in use.
	Touch(ctx context.Context, hash [32]byte) error
	// Delete ends a session; one that does not exist is no error.
	Delete(ctx context.Context, hash [32]byte) error
	// DeleteAll ends every session of a person: signing out everywhere.
	DeleteAll(ctx context.Context, tenant, person string) error
}

// Config of a Manager.
type Config struct {
	Store Store
	// Secure is whether the console is served over https. It must be, except on loopback.
	Secure bool
	// Name tells instances on one host apart, since cookies ignore ports (default "cutonce").
	Name string
	// IdleFor is how long a session may go unused (default 12 h).
	IdleFor time.Duration
	// AbsoluteFor is how long a session may last (default 7 d).
	AbsoluteFor time.Duration
	// TouchEvery is how exactly use is recorded: at most one write in this time (default 1 min).
	TouchEvery time.Duration

	Rand io.Reader
}

// Manager starts, finds and ends sessions. It is safe for concurrent use.
type Manager struct {
	cfg    Config
	cookie string
}

// New returns a Manager.
func New(cfg Config) (*Manager, error) {
	if cfg.Store == nil || cfg.Rand == nil {
		return nil, errors.New("configuring sessions: a store and randomness are needed")
	}
	cfg.Name = cmp.Or(cfg.Name, "cutonce")
	cfg.IdleFor = cmp.Or(cfg.IdleFor, 12*time.Hour)
	cfg.AbsoluteFor = cmp.Or(cfg.AbsoluteFor, 7*24*time.Hour)
	cfg.TouchEvery = min(cmp.Or(cfg.TouchEvery, time.Minute), cfg.IdleFor/2)
	m := &Manager{cfg: cfg, cookie: cfg.Name}
	if cfg.Secure {
		m.cookie = "__Host-" + cfg.Name // the browser then takes it from this host alone, over https alone
	}
	return m, nil
}

// Start signs a person in and sets the cookie. The session that the request came with, if any, has ended when it returns.
// Fault: forbidden, for an actor that is not a human; nothing else signs in.
func (m *Manager) Start(w http.ResponseWriter, r *http.Request, a actor.Actor) error {
	if a.Kind != actor.Human {
		return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.session")
	}
	if err := m.deletePresented(r); err != nil {
		return err
	}
	token := make([]byte, tokenBytes)
	if _, err := io.ReadFull(m.cfg.Rand, token); err != nil {
		return fmt.Errorf("naming a session: %w", err)
	}
	encoded, err := encode(a)
	if err != nil {
		return err
	}
	record := Record{Hash: sha256.Sum256(token), Tenant: a.Tenant, Person: a.Person(), Actor: encoded, AbsoluteFor: m.cfg.AbsoluteFor}
	if err := m.cfg.Store.Put(r.Context(), record); err != nil {
		return fmt.Errorf("starting a session: %w", err)
	}
	m.setCookie(w, base64.RawURLEncoding.EncodeToString(token), int(m.cfg.AbsoluteFor.Seconds()))
	return nil
}

// Actor returns who is signed in, and counts as use. Fault: unauthenticated, if nobody is; any other error means that the store could
// not say, and must not be shown as being signed out.
func (m *Manager) Actor(r *http.Request) (actor.Actor, error) { return m.find(r, true) }

// Peek is Actor for what a page asks by itself: it keeps no session from idling, since an open page is nobody's presence.
func (m *Manager) Peek(r *http.Request) (actor.Actor, error) { return m.find(r, false) }

func (m *Manager) find(r *http.Request, use bool) (actor.Actor, error) {
	hash, ok := m.presented(r)
	if !ok {
		return actor.Actor{}, signedOut()
	}
	encoded, idle, err := m.cfg.Store.Get(r.Context(), hash, m.cfg.IdleFor)
	if errors.Is(err, ErrNone) {
		return actor.Actor{}, signedOut()
	}
	if err != nil {
		return actor.Actor{}, fmt.Errorf("finding a session: %w", err)
	}
	if use && idle >= m.cfg.TouchEvery {
		if err := m.cfg.Store.Touch(r.Context(), hash); err != nil {
			return actor.Actor{}, fmt.Errorf("keeping a session: %w", err)
		}
	}
	return decode(encoded)
}

// Browser names the browser that makes the request, for a sign-in that leads elsewhere first: only the same browser may finish
// it. It is the hash of the cookie, which is set if there is none; a cookie by itself signs nobody in.
func (m *Manager) Browser(w http.ResponseWriter, r *http.Request) ([32]byte, error) {
	if hash, ok := m.presented(r); ok {
		return hash, nil
	}
	token := make([]byte, tokenBytes)
	if _, err := io.ReadFull(m.cfg.Rand, token); err != nil {
		return [32]byte{}, fmt.Errorf("naming a browser: %w", err)
	}
	m.setCookie(w, base64.RawURLEncoding.EncodeToString(token), int(m.cfg.AbsoluteFor.Seconds()))
	return sha256.Sum256(token), nil
}

// End signs out: the session has ended when it returns nil, and the cookie is cleared in any case.
func (m *Manager) End(w http.ResponseWriter, r *http.Request) error {
	m.setCookie(w, "", -1)
	return m.deletePresented(r)
}

// EndAll signs a person out everywhere.
func (m *Manager) EndAll(w http.ResponseWriter, r *http.Request, a actor.Actor) error {
	m.setCookie(w, "", -1)
	if err := m.cfg.Store.DeleteAll(r.Context(), a.Tenant, a.Person()); err != nil {
		return fmt.Errorf("ending all sessions: %w", err)
	}
	return nil
}

func (m *Manager) deletePresented(r *http.Request) error {
	hash, ok := m.presented(r)
	if !ok {
		return nil
	}
	if err := m.cfg.Store.Delete(r.Context(), hash); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// presented reads the one cookie. Two of the same name mean that another host or path has planted one: neither counts.
func (m *Manager) presented(r *http.Request) ([32]byte, bool) {
	cookies := r.CookiesNamed(m.cookie)
	if len(cookies) != 1 {
		return [32]byte{}, false
	}
	token, err := base64.RawURLEncoding.Strict().DecodeString(cookies[0].Value)
	if err != nil || len(token) != tokenBytes {
		return [32]byte{}, false
	}
	return sha256.Sum256(token), true
}

// setCookie writes the cookie. Lax, because links to a change arrive from chat and mail; nothing changes on GET.
func (m *Manager) setCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: m.cookie, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: m.cfg.Secure, SameSite: http.SameSiteLaxMode,
	})
}

func signedOut() error {
	return fault.New(fault.Unauthenticated, nil).WithKey("fault.unauthenticated.session")
}

// stored is an actor with the parts that belong to a sign-in and not to a preview's requester.
type stored struct {
	Actor    actor.Actor `json:"actor"`
	Scopes   []string    `json:"scopes,omitempty"`
	AuthTime time.Time   `json:"auth_time,omitzero"`
}

func encode(a actor.Actor) ([]byte, error) {
	encoded, err := json.Marshal(stored{a, a.Scopes, a.AuthTime})
	if err != nil {
		return nil, fmt.Errorf("storing who signed in: %w", err)
	}
	return encoded, nil
}

func decode(encoded []byte) (actor.Actor, error) {
	var s stored
	if err := json.Unmarshal(encoded, &s); err != nil {
		return actor.Actor{}, fmt.Errorf("reading who signed in: %w", err)
	}
	s.Actor.Scopes, s.Actor.AuthTime = s.Scopes, s.AuthTime
	return s.Actor, nil
}
