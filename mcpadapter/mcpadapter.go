package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/preview"
)

// Changes prepares, finds and cancels (preview.Service).
type Changes interface {
	Prepare(ctx context.Context, who actor.Actor, r preview.Request) (preview.Prepared, error)
	Find(ctx context.Context, who actor.Actor, tool string, input []byte) (connector.Page, error)
	Cancel(ctx context.Context, who actor.Actor, id preview.ID, reason string) (preview.Preview, error)
}

// Commits applies and answers for changes (commit.Service).
type Commits interface {
	Apply(ctx context.Context, who actor.Actor, action string, id preview.ID, wait time.Duration) (commit.Change, error)
	Status(ctx context.Context, who actor.Actor, id preview.ID, wait time.Duration, detail bool) (commit.Change, error)
	List(ctx context.Context, who actor.Actor, f commit.Filter) ([]commit.Change, string, error)
}

// Approvals asks people for an approval. It is all that an agent can do about one.
type Approvals interface {
	Request(ctx context.Context, who actor.Actor, id preview.ID, justification string) (preview.Preview, error)
}

// Verifier judges access tokens (auth.Verifier). Its refusals are faults.
type Verifier interface {
	Verify(ctx context.Context, token string) (actor.Actor, error)
}

// Listing says which tools a caller is shown. Hiding is comfort: the check that counts is made at every call.
type Listing string

// The listings.
const (
	// Grantable shows what a step-up could reach; only what Deps.CanGrant says can never be granted is hidden. It is the
	// default, because a tool that is not listed is never called, and a client that never calls never meets the challenge.
	Grantable Listing = "grantable"
	// Granted shows only what the token allows already.
	Granted Listing = "granted"
)

// Deps are what the door needs. Fields are required unless said otherwise.
type Deps struct {
	Actions   *connector.Registry
	Changes   Changes
	Commits   Commits
	Approvals Approvals
	Verifier  Verifier
	Catalog   *catalog.Catalog
	Log       *slog.Logger
	// ResourceMetadataURL is where the RFC 9728 document of this resource is.
	ResourceMetadataURL string
	// Version is the server's version, shown to clients.
	Version string

	// AllowedOrigins are the exact origins ("https://host:port") that browsers may call from; none by default. A request
	// without an Origin header is no browser's and passes.
	AllowedOrigins []string
	// Listing is Grantable if empty.
	Listing Listing
	// CanGrant, if set, says whether policy could ever grant the scopes to the caller.
	CanGrant func(who actor.Actor, scopes []string) bool
	// MaxBody bounds a request in bytes; zero means 128 KiB.
	MaxBody int64
	// ApplyWait is how long an apply waits for its outcome; zero means 20 s.
	ApplyWait time.Duration
	// Clocks are the service's clocks, for the tools' texts; zero fields mean the defaults.
	Clocks connector.Clocks
	// Limit, if set, is asked before every call of a tool, and before every other message. Its faults (rate_limited) are the answer: a
	// tool's refusal, or HTTP's 429 where no tool is called.
	Limit func(who actor.Actor, p actor.Power) error
	// RequestID, if set, names a request; otherwise a random ID does.
	RequestID func(r *http.Request) string
}

const (
	defaultMaxBody   = 128 << 10
	defaultApplyWait = 20 * time.Second
)

// Handler serves MCP. It is safe for concurrent use.
type Handler struct {
	deps      Deps
	door      http.Handler
	challenge auth.Challenge
	origins   map[string]bool
	// servers holds one server per language: the SDK asks for it twice in each request.
	servers map[string]*mcp.Server
	tools   map[string]map[string]*tool // by language and name
	powers  map[string]actor.Power      // by tool
	closing context.Context
	close   context.CancelFunc
}

// New compiles the tools of all actions and connectors, in every language. It opens nothing.
func New(d Deps) (*Handler, error) {
	d, err := d.complete()
	if err != nil {
		return nil, fmt.Errorf("the agents' door: %w", err)
	}
	h := &Handler{deps: d, origins: map[string]bool{}, servers: map[string]*mcp.Server{}, tools: map[string]map[string]*tool{}}
	h.powers = map[string]actor.Power{}
	for _, held := range Powers(d.Actions) {
		h.powers[held.Tool] = held.Power
	}
	h.closing, h.close = context.WithCancel(context.Background())
	h.challenge = auth.Challenge{ResourceMetadataURL: d.ResourceMetadataURL, ReadScopes: readScopes(d.Actions)}
	for _, origin := range d.AllowedOrigins {
		h.origins[origin] = true
	}
	for _, lang := range catalog.Languages {
		if err := h.serve(lang); err != nil {
			return nil, fmt.Errorf("the agents' door: %w", err)
		}
	}
	h.door = h.layers()
	return h, nil
}

func (d Deps) complete() (Deps, error) {
	if d.Actions == nil || d.Changes == nil || d.Commits == nil || d.Approvals == nil || d.Verifier == nil || d.Catalog == nil || d.Log == nil {
		return d, errors.New("a dependency is missing")
	}
	if d.Listing == "" {
		d.Listing = Grantable
	}
	if d.Listing != Grantable && d.Listing != Granted {
		return d, fmt.Errorf("listing %q is neither %s nor %s", d.Listing, Grantable, Granted)
	}
	for _, origin := range d.AllowedOrigins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return d, fmt.Errorf("%q is no origin: write scheme://host or scheme://host:port", origin)
		}
	}
	if d.MaxBody == 0 {
		d.MaxBody = defaultMaxBody
	}
	if d.ApplyWait == 0 {
		d.ApplyWait = defaultApplyWait
	}
	if d.ApplyWait < 0 || d.ApplyWait > commit.MaxWait || d.MaxBody < 0 {
		return d, errors.New("a limit is out of range")
	}
	d.Clocks = d.Clocks.Or(connector.DefaultClocks())
	return d, nil
}

// readScopes are what a first sign-in should ask for.
func readScopes(r *connector.Registry) []string {
	set := map[string]bool{}
	for _, a := range r.Actions() {
		for _, scope := range a.ReadScopes {
			set[scope] = true
		}
	}
	for _, f := range r.Finds() {
		for _, scope := range f.Scopes {
			set[scope] = true
		}
	}
	return sorted(set)
}

// ServeHTTP answers one MCP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.door.ServeHTTP(w, r) }

// Close ends all waiting, so that calls held by change_status answer at once, as things stand. Calls are still served:
// stopping the listener is the owner's work. Executions are not touched.
func (h *Handler) Close() error {
	h.close()
	return nil
}
