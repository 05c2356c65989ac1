package preview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
	"github.com/cutonce/cutonce/policy"
)

// Store keeps previews. Each method is one transaction.
type Store interface {
	// FindReplay returns the preview stored under the caller's key, nil if there is none.
	FindReplay(ctx context.Context, q ReplayQuery) (*Preview, error)
	// Create stores a new preview with its first audit event. created is false when another call stored the same key first, or,
	// without a key, while the caller's newest preview of the same input is open and shows the target as it still is: that preview
	// is returned instead. An approved preview for which a cap has no room is stored as denied, and returned so. Expected errors are
	// ErrKeyRetired, and a *TooManyOpen where the requester has as many open previews as New.MaxOpen.
	Create(ctx context.Context, n New) (p Preview, created bool, err error)
	// Preview reads one preview and the database's time. It returns the fault not_found for an unknown ID.
	Preview(ctx context.Context, tenant string, id ID) (Preview, time.Time, error)
	// Now is the database's time.
	Now(ctx context.Context) (time.Time, error)
	// Exposure reads what the caps of these charges come to, but for the preview apart, zero if it is not stored yet.
	Exposure(ctx context.Context, tenant string, apart ID, charges []policy.Charge) ([]policy.Exposure, error)
	// Cancel ends an open preview. moved is false when it had left the open states before; the preview is returned as it is.
	Cancel(ctx context.Context, m Move) (p Preview, moved bool, err error)
}

// TooManyOpen is one open preview more than a requester may have; stores return it as an error.
type TooManyOpen struct {
	Limit int
	// Open is how many there are, by state; EndsIn is when the first of them expires.
	Open   map[State]int
	EndsIn time.Duration
}

// Error is for logs.
func (e *TooManyOpen) Error() string {
	return fmt.Sprintf("the requester has %v open, of at most %d", e.Open, e.Limit)
}

// fault tells the requester to make room, or to wait. Nothing was sent, so that the same call may be repeated.
func (e *TooManyOpen) fault() error {
	seconds := int(math.Ceil(e.EndsIn.Seconds()))
	return fault.New(fault.TooManyOpen, fault.Args{"limit": e.Limit, "seconds": seconds}).After(e.EndsIn).
		WithData(map[string]any{"limit": e.Limit, "open": e.Open})
}

// ErrKeyRetired: the idempotency key belongs to a change whose record was retired. It is never accepted again, so that a very late
// repetition does not become a second change.
var ErrKeyRetired = errors.New("the key's change has been retired")

// ReplayQuery names the earlier call that a prepare may be repeating.
type ReplayQuery struct {
	Tenant, Caller, Action, Key string
	InputHash                   canon.Digest
}

// New is a preview to be stored. Its ID, state, ruling and document are set; its clocks are the database's.
type New struct {
	Preview   Preview
	Caller    string
	Key       string
	InputHash canon.Digest
	LiveFor   time.Duration
	// MaxOpen is how many previews the requester may have open, this one among them; zero is without limit.
	MaxOpen int
}

// Move is a transition asked for by somebody.
type Move struct {
	Tenant string
	ID     ID
	By     actor.Actor
	Reason string
	// LiveFor is how long the new state lasts before it expires, where the state has a clock.
	LiveFor time.Duration
}

// Ruler is the policy.
type Ruler interface {
	Evaluate(policy.Facts) Ruling
	// UsesTime reports whether Evaluate needs the database's time.
	UsesTime() bool
	// UsesExposure reports whether Evaluate looks at what changes add up to; Counted are the charges to ask that by.
	UsesExposure() bool
	Counted(policy.Facts) []policy.Charge
}

// Deps are what a Service needs.
type Deps struct {
	Store   Store
	Actions *connector.Registry
	Policy  Ruler
	Clocks  connector.Clocks
	// Limit, if set, is asked before a new change of an action is planned; its fault is the answer.
	Limit func(who actor.Actor, action string) error
	// MaxOpen is how many previews one requester may have open; zero is without limit.
	MaxOpen int
	// MaxInput bounds an input in bytes; zero means 64 KiB.
	MaxInput int
	Log      *slog.Logger
}

// Service prepares and cancels changes. It never sends anything.
type Service struct {
	Deps
	schemas map[string]*intake.Schema
}

// NewService compiles the schemas of all actions and find tools.
func NewService(d Deps) (*Service, error) {
	if d.MaxInput == 0 {
		d.MaxInput = 64 << 10
	}
	s := &Service{Deps: d, schemas: map[string]*intake.Schema{}}
	for _, a := range d.Actions.Actions() {
		schema, err := intake.Compile(a.Name, a.Input)
		if err != nil {
			return nil, fmt.Errorf("action %s: %w", a.Name, err)
		}
		s.schemas[a.Name] = schema
	}
	for _, f := range d.Actions.Finds() {
		schema, err := intake.Compile(f.Name, f.Input)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", f.Name, err)
		}
		s.schemas[f.Name] = schema
	}
	return s, nil
}

// Find runs a read-only tool. Its faults are invalid_input, insufficient_scope, not_found and target_unavailable.
func (s *Service) Find(ctx context.Context, who actor.Actor, tool string, raw []byte) (connector.Page, error) {
	f, ok := s.Actions.Find(tool)
	if !ok {
		return connector.Page{}, fault.New(fault.NotFound, nil)
	}
	if err := RequireScopes(who, f.Scopes...); err != nil {
		return connector.Page{}, err
	}
	input, err := s.read(tool, raw)
	if err != nil {
		return connector.Page{}, err
	}
	page, err := f.Connector.Find(ctx, who, tool, input)
	if err != nil {
		return connector.Page{}, s.unavailable(ctx, tool, err)
	}
	return page, nil
}

const (
	maxKey    = 255
	maxReason = 2000
)

// Cancel withdraws a change that has not been claimed. Only its requester may, or the human it was asked for. Canceling
// twice is the same cancel. After the claim it loses, and says that the change is being applied.
func (s *Service) Cancel(ctx context.Context, who actor.Actor, id ID, reason string) (Preview, error) {
	p, _, err := s.Store.Preview(ctx, who.Tenant, id)
	if err != nil {
		return Preview{}, err
	}
	if !Owns(who, p) {
		return Preview{}, fault.New(fault.NotFound, nil)
	}
	if err := CheckText("/reason", reason, 0, maxReason); err != nil {
		return p, err
	}
	for range cancelTries {
		p, moved, err := s.Store.Cancel(ctx, Move{Tenant: who.Tenant, ID: id, By: who, Reason: reason})
		switch {
		case err != nil:
			return Preview{}, err
		case moved || p.State == Canceled:
			return p, nil
		case !p.State.Open():
			return p, lostTo(p)
		}
		// It is open and did not move: its clock has ended, or a claim that stood in the way was given back before it was read.
		p, now, err := s.Store.Preview(ctx, who.Tenant, id)
		switch {
		case err != nil:
			return Preview{}, err
		case p.State.Open() && !now.Before(p.Deadline):
			return p, fault.New(fault.Expired, nil) // whether or not a sweep has come by
		}
	}
	return p, fault.New(fault.Conflict, nil).WithNext(fault.NextRetryLater)
}

// cancelTries bounds how often a cancel meets claims that are given back at once.
const cancelTries = 4

// lostTo is what a cancel is told that came too late.
func lostTo(p Preview) error {
	switch p.State {
	case Claimed:
		return fault.New(fault.InProgress, nil)
	case Expired:
		return fault.New(fault.Expired, nil)
	}
	return fault.New(fault.Conflict, fault.Args{"status": string(p.State)}).WithKey("fault.conflict.decided").WithNext(fault.NextNone)
}

// RequireScopes checks the token's scopes and names all that are needed if one is missing.
func RequireScopes(who actor.Actor, scopes ...string) error {
	if len(who.Missing(scopes...)) == 0 {
		return nil
	}
	f := fault.New(fault.InsufficientScope, fault.Args{"scopes": strings.Join(scopes, " ")})
	f.Scopes = scopes
	return f
}

// Owns reports whether the caller is the requester of p, or the human on whose behalf it was asked for.
func Owns(who actor.Actor, p Preview) bool {
	if who.Tenant != p.Tenant {
		return false
	}
	person := who.Person()
	return who.ID() == p.Requester.ID() || who.Kind == actor.Human && person != "" && person == p.Requester.Person()
}

// MayRead reports whether the caller may see p at all: its owner, or a person with a role that reviews changes or in a group
// that its ruling asks for. Everybody else gets the same answer as for an unknown ID.
func MayRead(who actor.Actor, p Preview) bool {
	if Owns(who, p) {
		return true
	}
	return who.Tenant == p.Tenant && (Reviews(who) || who.May(actor.Decide) && Seated(who, p.Ruling))
}

// Reviews reports whether the caller is a person with a role that sees every change of the tenant.
func Reviews(who actor.Actor) bool {
	return who.May(actor.ReadAll)
}

// MayReveal reports whether the caller may see the hidden values of p: a person who settles or audits changes, or who has a seat in its
// ruling and was not removed. Whoever asked for it gets no more than they sent.
func MayReveal(who actor.Actor, p Preview) bool {
	if who.Tenant != p.Tenant || p.Requester.Involves(who.Person()) {
		return false
	}
	return who.May(actor.Reveal) || who.May(actor.Decide) && Seated(who, p.Ruling) && p.RemovalOf(who.Person()) == nil
}

// Seated reports whether the caller is in a group that the ruling asks for.
func Seated(who actor.Actor, r Ruling) bool {
	for _, seats := range r.Needs {
		if who.InGroup(seats.AnyOf...) {
			return true
		}
	}
	return false
}
