package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/signin"
	"github.com/cutonce/cutonce/preview"
)

// Approvals is what the console needs of the approvals service.
type Approvals interface {
	Queue(ctx context.Context, who actor.Actor, page approvals.Page) ([]approvals.Item, string, time.Time, error)
	Item(who actor.Actor, p preview.Preview) approvals.Item
	Decide(ctx context.Context, who actor.Actor, id preview.ID, d approvals.Decision) (preview.Preview, error)
}

// Commits is what the console needs of the commit service.
type Commits interface {
	Why(ctx context.Context, who actor.Actor, id preview.ID) (commit.Why, error)
	List(ctx context.Context, who actor.Actor, f commit.Filter) ([]commit.Change, string, error)
	Probe(ctx context.Context, who actor.Actor, id preview.ID) (commit.Change, error)
	Resolve(ctx context.Context, r commit.Resolution) (commit.Change, error)
	Apply(ctx context.Context, who actor.Actor, action string, id preview.ID, wait time.Duration) (commit.Change, error)
	Reveal(ctx context.Context, who actor.Actor, id preview.ID) (commit.Change, error)
	WhyNotApply(ctx context.Context, who actor.Actor, id preview.ID) error
	Glance(ctx context.Context, who actor.Actor, p preview.Preview, within time.Duration) (commit.Glance, error)
}

// Sessions keeps people signed in. Start and Actor answer with faults for an actor that is no human and for nobody signed in.
type Sessions interface {
	Start(w http.ResponseWriter, r *http.Request, a actor.Actor) error
	Actor(r *http.Request) (actor.Actor, error)
	// Peek is Actor for what an open page asks by itself: it is no use of the session.
	Peek(r *http.Request) (actor.Actor, error)
	// Browser names the browser, setting its cookie if it has none.
	Browser(w http.ResponseWriter, r *http.Request) ([32]byte, error)
	End(w http.ResponseWriter, r *http.Request) error
	// EndAll signs the person out everywhere.
	EndAll(w http.ResponseWriter, r *http.Request, a actor.Actor) error
}

// SignIn is the way by an identity provider.
type SignIn interface {
	// Begin is the provider's address to send the browser to.
	Begin(ctx context.Context, w signin.Wish) (string, error)
	// Finish takes the provider's answer, the query of the address that it sent the browser back to.
	Finish(ctx context.Context, browser [32]byte, answer url.Values) (signin.Done, error)
}

// DevSignIn is the development sign-in. Production has none, and then its route does not exist.
type DevSignIn interface {
	// Allowed reports whether this request may see the people and sign in as one: it comes from this machine itself, say.
	Allowed(r *http.Request) bool
	// People lists who can sign in.
	People() []DevPerson
	// CheckSignIn verifies the two values of a sign-in link. Any error is shown as a link that does not work.
	CheckSignIn(ctx context.Context, person, code string) (actor.Actor, error)
}

// DevPerson is somebody of the development cast. Path is the link that signs them in, below the console's root.
type DevPerson struct {
	Name, Subject, Path string
	Roles, Groups       []string
}

// Deps are what the console needs. Dev is nil in production, SignIn where no identity provider is configured.
type Deps struct {
	Approvals Approvals
	Commits   Commits
	// Freezes is nil where nothing can be frozen from here.
	Freezes Freezes
	// Previews is nil where nothing can be prepared from here.
	Previews Previews
	// Exports is nil where nothing can be exported from here.
	Exports Exports
	// Now is only for what a search suggests; nil suggests nothing.
	Now func() time.Time
	// Trails is nil where no record can be checked; Keys are the keys that seals are signed with.
	Trails   Trails
	Keys     audit.Keys
	Sessions Sessions
	SignIn   SignIn
	Dev      DevSignIn
	Catalog  *catalog.Catalog
	Log      *slog.Logger
	// Version is shown at the foot of each page.
	Version string
	// PublicURL is where browsers reach the console; its origin may post forms. It has no path: the console is at the root.
	PublicURL string
	// Key is the idempotency key that a change is sent under, shown beside what was sent. Nil shows none.
	Key func(tenant string, id preview.ID, item int) string
	// Zones are the time zones that a reader may choose, beside UTC; the first is the default.
	Zones []string
	// RequestID names a request as the logs do.
	RequestID func(*http.Request) string
	// Feed tells open pages that there is news. Nil leaves them to ask by themselves.
	Feed preview.Feed
	// LiveEvery is how often the feed is read while pages are open, BeatEvery how often a page hears that it is still connected; zero
	// means half a second and fifteen seconds.
	LiveEvery, BeatEvery time.Duration
	// ApplyWait is how long the page of an apply waits for the outcome; zero means ten seconds.
	ApplyWait time.Duration
}

// console is the handler's state, fixed at start.
type console struct {
	Deps
	places places
	assets assets

	opening sync.Mutex
	pages   map[tongue]*book

	live *live
	// glances are what targets showed a moment ago.
	glances glances
}

// Console is the console as a handler.
type Console struct {
	http.Handler
	live *live
}

// EndWaits ends the streams of open pages, which wait for news, now and from now on. It is a step of a drain.
func (c *Console) EndWaits() { c.live.close() }

// New checks every template and text, and returns the console. It must be served at the root of its origin.
func New(d Deps) (*Console, error) {
	if d.Approvals == nil || d.Commits == nil || d.Sessions == nil || d.Catalog == nil || d.Log == nil || d.RequestID == nil {
		return nil, errors.New("the console needs approvals, commits, sessions, a catalogue, a log and request IDs")
	}
	origin, err := originOf(d.PublicURL)
	if err != nil {
		return nil, err
	}
	if d.ApplyWait == 0 {
		d.ApplyWait = 10 * time.Second
	}
	c := &console{Deps: d, assets: loadAssets(), live: newLive(d)}
	if c.places, err = openPlaces(d.Zones); err != nil {
		return nil, fmt.Errorf("the console's time zones: %w", err)
	}
	if c.pages, err = openBooks(d.Catalog, c.assets, c.places[0]); err != nil {
		return nil, fmt.Errorf("the console's pages: %w", err)
	}
	handler, err := c.protect(origin, c.routes())
	if err != nil {
		return nil, err
	}
	return &Console{Handler: handler, live: c.live}, nil
}

func originOf(publicURL string) (string, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" {
		return "", errors.New("the console's public URL must be an http or https origin without a path")
	}
	return u.Scheme + "://" + u.Host, nil
}

func (c *console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", c.assets.serve)
	mux.HandleFunc("GET /sign-in", c.open(c.signIn))
	if c.SignIn != nil {
		mux.HandleFunc("GET /sign-in/start", c.open(c.startSignIn))
		mux.HandleFunc("GET "+SignInDone, c.open(c.finishSignIn))
	}
	if c.Dev != nil {
		mux.HandleFunc("GET /dev/sign-in", c.open(c.devSignIn))
	}
	mux.HandleFunc("POST /sign-out", c.open(c.signOut))
	mux.HandleFunc("POST /sign-out-everywhere", c.signedIn(c.signOutEverywhere))
	mux.HandleFunc("GET /live", c.open(c.stream))
	mux.HandleFunc("GET /{$}", c.signedIn(c.queue))
	mux.HandleFunc("GET /bulk", c.signedIn(c.bulk))
	mux.HandleFunc("POST /bulk", c.signedIn(c.decideMany))
	mux.HandleFunc("GET /outcomes", c.signedIn(c.outcomes))
	mux.HandleFunc("GET /history", c.signedIn(c.history))
	if c.Exports != nil {
		mux.HandleFunc("GET /history/export.csv", c.signedIn(taken(c.exportCSV)))
		mux.HandleFunc("GET /history/export.ndjson", c.signedIn(taken(c.exportNDJSON)))
		mux.HandleFunc("HEAD /history/export.csv", c.open(onlyGet))
		mux.HandleFunc("HEAD /history/export.ndjson", c.open(onlyGet))
	}
	mux.HandleFunc("GET /changes/{id}", c.signedIn(c.change))
	mux.HandleFunc("GET /changes/{id}/review", c.signedIn(c.review))
	mux.HandleFunc("GET /changes/{id}/document", c.signedIn(c.document))
	mux.HandleFunc("POST /changes/{id}/decision", c.signedIn(c.decide))
	mux.HandleFunc("POST /changes/{id}/apply", c.signedIn(c.apply))
	mux.HandleFunc("POST /changes/{id}/probe", c.signedIn(c.probe))
	mux.HandleFunc("POST /changes/{id}/resolution", c.signedIn(c.resolve))
	mux.HandleFunc("POST /changes/{id}/again", c.signedIn(c.prepareAgain))
	mux.HandleFunc("POST /changes/{id}/reveal", c.signedIn(c.reveal))
	// A form's address, opened as a link, shows the change and does nothing.
	for _, form := range []string{"decision", "apply", "probe", "resolution", "again", "reveal"} {
		mux.HandleFunc("GET /changes/{id}/"+form, c.signedIn(c.toChange))
	}
	if c.Freezes != nil {
		mux.HandleFunc("GET /freeze", c.signedIn(c.frozen))
		mux.HandleFunc("POST /freeze", c.signedIn(c.freeze))
		mux.HandleFunc("POST /freeze/lift", c.signedIn(c.thaw))
		mux.HandleFunc("GET /freeze/lift", c.signedIn(func(v *visit) error { return v.goTo("/freeze") }))
	}
	mux.HandleFunc("/", c.open(c.nowhere))
	return mux
}
