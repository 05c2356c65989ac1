// Package api is the door for programs: JSON over HTTP, described by openapi.yaml.
//
// The promise: a body is read strictly or refused whole; every answer is the one body that package answer writes, and every
// refusal is an RFC 9457 problem with the same members, its code's one HTTP status (Status), and a next step; nothing of an
// internal error leaves but a request ID. The caller is who the bearer token says, at every call.
//
// What it does not promise: rules. Whether a change may happen, and what has happened, is decided by the services that Deps
// names; this package only translates. It knows no cookies and no sessions, so it needs no CSRF tokens; it grants no origin.
//
// Start at New and at the table in routes.go; each operation is in the file of its name.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/preview"
)

// Verifier tells who a token speaks for. Its refusals are faults.
type Verifier interface {
	Verify(ctx context.Context, token string) (actor.Actor, error)
}

// Previews prepares and withdraws changes, and finds what could be changed (preview.Service).
type Previews interface {
	Prepare(ctx context.Context, who actor.Actor, r preview.Request) (preview.Prepared, error)
	Undo(ctx context.Context, who actor.Actor, id preview.ID, reason, key string) (preview.Prepared, error)
	Find(ctx context.Context, who actor.Actor, tool string, input []byte) (connector.Page, error)
	Cancel(ctx context.Context, who actor.Actor, id preview.ID, reason string) (preview.Preview, error)
}

// Approvals asks people and hears them (approvals.Service).
type Approvals interface {
	Request(ctx context.Context, who actor.Actor, id preview.ID, justification string) (preview.Preview, error)
	Queue(ctx context.Context, who actor.Actor, page approvals.Page) ([]approvals.Item, string, time.Time, error)
	Decide(ctx context.Context, who actor.Actor, id preview.ID, d approvals.Decision) (preview.Preview, error)
	Remove(ctx context.Context, o approvals.RemovalOrder) (approvals.Removed, error)
	Restore(ctx context.Context, o approvals.RemovalOrder) error
	Removals(ctx context.Context, who actor.Actor) ([]preview.Removal, error)
}

// Changes applies changes and answers for them (commit.Service).
type Changes interface {
	Apply(ctx context.Context, who actor.Actor, action string, id preview.ID, wait time.Duration) (commit.Change, error)
	Status(ctx context.Context, who actor.Actor, id preview.ID, wait time.Duration, detail bool) (commit.Change, error)
	Why(ctx context.Context, who actor.Actor, id preview.ID) (commit.Why, error)
	List(ctx context.Context, who actor.Actor, f commit.Filter) ([]commit.Change, string, error)
	Probe(ctx context.Context, who actor.Actor, id preview.ID) (commit.Change, error)
	Resolve(ctx context.Context, r commit.Resolution) (commit.Change, error)
	Reveal(ctx context.Context, who actor.Actor, id preview.ID) (commit.Change, error)
	Export(ctx context.Context, who actor.Actor, o commit.ExportOrder, each func(commit.Change) error) (more bool, err error)
}

// Freezes forbids applying for a while, and says what is frozen (commit.Service).
type Freezes interface {
	Freeze(ctx context.Context, o commit.FreezeOrder) (commit.Frozen, error)
	Lift(ctx context.Context, o commit.FreezeOrder) error
	Standing(ctx context.Context, who actor.Actor) ([]commit.Freeze, time.Time, error)
}

var (
	_ Previews  = (*preview.Service)(nil)
	_ Approvals = (*approvals.Service)(nil)
	_ Changes   = (*commit.Service)(nil)
	_ Freezes   = (*commit.Service)(nil)
)

// Deps are what the door needs. All but the last group is required.
type Deps struct {
	Previews  Previews
	Approvals Approvals
	Changes   Changes
	Freezes   Freezes
	Verifier  Verifier
	Challenge auth.Challenge
	Catalog   *catalog.Catalog
	Actions   *connector.Registry
	// Ready reports why the service cannot take calls just now, nil if it can. The reason is logged, never shown.
	Ready func(ctx context.Context) error
	// ApplyWait is how long an apply waits for its outcome before it answers "applying".
	ApplyWait time.Duration
	Log       *slog.Logger
	Now       func() time.Time
	// NewRequestID names a request that brings no usable X-Request-Id.
	NewRequestID func() string

	// PublicURL is where people reach the console, for the addresses of changes in exports; may be empty.
	PublicURL string
	// Version of this build, shown by /healthz; may be empty.
	Version string
	// MaxBody bounds a request's body in bytes; zero means 64 KiB.
	MaxBody int
	// Limit, if set, is asked before every call. Its fault (rate_limited) is the answer.
	Limit func(who actor.Actor, p actor.Power) error
	// Clocks are the service's, shown with the actions.
	Clocks connector.Clocks
}

const defaultMaxBody = 64 << 10

// Prefixes are the path prefixes that the handler of New answers, for whoever mounts it beside others.
func Prefixes() []string { return []string{"/v1/", "/healthz", "/readyz", "/openapi.yaml"} }

// server is the door in service.
type server struct {
	Deps
	bodies bodies
}

// New makes the handler of Prefixes. It has its own Echo, so that its refusals are problems whatever is mounted beside it.
// It asks nobody for anything. Its server must let an answer take longer than commit.MaxWait and ApplyWait.
func New(d Deps) (*echo.Echo, error) {
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("making the JSON API: %w", err)
	}
	if d.MaxBody == 0 {
		d.MaxBody = defaultMaxBody
	}
	d.Clocks = d.Clocks.Or(connector.DefaultClocks())
	bodies, err := compileBodies()
	if err != nil {
		return nil, fmt.Errorf("making the JSON API: %w", err)
	}
	s := &server{Deps: d, bodies: bodies}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(s.observe)
	for _, r := range routes() {
		e.Add(r.method, r.echoPath(), s.handler(r))
	}
	return e, nil
}

func (d Deps) check() error {
	for name, absent := range map[string]bool{
		"Previews": d.Previews == nil, "Approvals": d.Approvals == nil, "Changes": d.Changes == nil, "Freezes": d.Freezes == nil, "Verifier": d.Verifier == nil,
		"Catalog": d.Catalog == nil, "Actions": d.Actions == nil, "Ready": d.Ready == nil, "Log": d.Log == nil, "Now": d.Now == nil,
		"NewRequestID": d.NewRequestID == nil,
	} {
		if absent {
			return errors.New(name + " is missing")
		}
	}
	return nil
}
