package commit

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// FreezeKind is how far a freeze reaches.
type FreezeKind string

// The kinds of a freeze. All but FreezeEverything are of one tenant.
const (
	FreezeEverything FreezeKind = "everything"
	FreezeTenant     FreezeKind = "tenant"
	// FreezeConnector and FreezeAction have a name: a target system, and an action.
	FreezeConnector FreezeKind = "connector"
	FreezeAction    FreezeKind = "action"
)

// Freeze forbids every claim and every replay that it covers. Look-ups go on, and what was claimed before is not called back.
type Freeze struct {
	Kind   FreezeKind `json:"kind"`
	Name   string     `json:"name"`
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	At     time.Time  `json:"at"`
	// Until is when it ends by the database's clock; nil if it ends only by being lifted.
	Until *time.Time `json:"until"`
}

// FreezeOrder asks for a freeze, or for its end.
type FreezeOrder struct {
	Kind   FreezeKind
	Name   string
	By     actor.Actor
	Reason string
	// For is how long it lasts; zero means until it is lifted.
	For time.Duration
}

// Freezes keeps what is frozen. Each method is one transaction.
type Freezes interface {
	// Freeze sets a freeze, or puts it in the place of the one of the same kind and name. It returns once every claim that began
	// before it has ended.
	Freeze(ctx context.Context, o FreezeOrder) (Freeze, error)
	// Lift ends a freeze. lifted is false if there was none.
	Lift(ctx context.Context, o FreezeOrder) (lifted bool, err error)
	// Standing lists the freezes over a tenant, the widest first, with the database's time.
	Standing(ctx context.Context, tenant string) ([]Freeze, time.Time, error)
}

// Frozen is what a freeze call answers: the freeze, and what had been claimed before it and is not settled yet.
type Frozen struct {
	Freeze   Freeze
	InFlight []Change
	// More says that more is in flight than is listed.
	More bool
}

const (
	// shortestFreeze and longestFreeze bound a freeze that ends by itself.
	shortestFreeze = time.Minute
	longestFreeze  = 366 * 24 * time.Hour
	mostInFlight   = 100
)

// Freeze forbids applying whatever it covers, from the moment that it returns: claims that began before have ended by then, and those
// of them that are not settled are listed. Setting it again replaces who, why and until when. Only a human operator or admin may;
// everything only an admin. Faults: forbidden, invalid_input.
func (s *Service) Freeze(ctx context.Context, o FreezeOrder) (Frozen, error) {
	if err := s.mayFreeze(o); err != nil {
		return Frozen{}, err
	}
	if err := checkFreeze(o); err != nil {
		return Frozen{}, err
	}
	f, err := s.Freezes.Freeze(ctx, o)
	if err != nil {
		return Frozen{}, err
	}
	out := Frozen{Freeze: f}
	out.InFlight, out.More, err = s.inFlight(ctx, o)
	return out, err
}

// Lift ends a freeze. Who may set it may lift it. Faults: forbidden, invalid_input, not_found.
func (s *Service) Lift(ctx context.Context, o FreezeOrder) error {
	if err := s.mayFreeze(o); err != nil {
		return err
	}
	if err := preview.CheckText("/reason", o.Reason, 0, mostStatement); err != nil {
		return err
	}
	lifted, err := s.Freezes.Lift(ctx, o)
	if err == nil && !lifted {
		err = fault.New(fault.NotFound, nil).WithKey("fault.not_found.freeze").WithNext(fault.NextNone)
	}
	return err
}

// Standing lists what is frozen for this person's tenant, the widest first. Faults: forbidden.
func (s *Service) Standing(ctx context.Context, who actor.Actor) ([]Freeze, time.Time, error) {
	if !who.May(actor.SeeFreezes) {
		return nil, time.Time{}, fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.humans_only")
	}
	return s.Freezes.Standing(ctx, who.Tenant)
}

// MayFreeze reports whether a person may freeze their tenant, and everything.
func MayFreeze(who actor.Actor) (tenant, everything bool) {
	return who.May(actor.Freeze), who.May(actor.FreezeEverything)
}

func (s *Service) mayFreeze(o FreezeOrder) error {
	forbid := func(key string) error { return fault.New(fault.Forbidden, nil).WithKey(key) }
	tenant, everything := MayFreeze(o.By)
	switch {
	case o.By.Kind != actor.Human:
		return forbid("fault.forbidden.humans_only")
	case !tenant:
		return forbid("fault.forbidden.operators_only")
	case o.Kind == FreezeEverything && !everything:
		return forbid("fault.forbidden.admins_only")
	}
	return s.checkScope(o)
}

// checkScope refuses a freeze of what is not there: a misspelt one would protect nothing.
func (s *Service) checkScope(o FreezeOrder) error {
	bad := func(path, key string, args fault.Args) error {
		return fault.New(fault.InvalidInput, nil).WithField(path, key, args)
	}
	switch o.Kind {
	case FreezeEverything, FreezeTenant:
		if o.Name != "" {
			return bad("/name", "field.freeze.no_name", nil)
		}
		return nil
	case FreezeAction, FreezeConnector:
		if known := s.freezable(o.Kind); !known[o.Name] {
			return bad("/name", "field.freeze.unknown", fault.Args{"name": o.Name})
		}
		return nil
	}
	return bad("/kind", "field.one_of", fault.Args{"values": "everything, tenant, connector, action"})
}

// freezable are the names of a kind.
func (s *Service) freezable(kind FreezeKind) map[string]bool {
	names := map[string]bool{}
	for _, a := range s.Actions.Actions() {
		if kind == FreezeAction {
			names[a.Name] = true
		} else {
			names[a.System] = true
		}
	}
	return names
}

// Freezable lists the actions and the connectors that can be frozen by name.
func (s *Service) Freezable() (actions, connectors []string) {
	return slices.Sorted(maps.Keys(s.freezable(FreezeAction))), slices.Sorted(maps.Keys(s.freezable(FreezeConnector)))
}

func checkFreeze(o FreezeOrder) error {
	if o.For != 0 && (o.For < shortestFreeze || o.For > longestFreeze) {
		return fault.New(fault.InvalidInput, nil).WithField("/for_s", "field.query.whole",
			fault.Args{"least": int(shortestFreeze.Seconds()), "most": int(longestFreeze.Seconds())})
	}
	return preview.CheckText("/reason", o.Reason, leastStatement, mostStatement)
}

// inFlight lists what was claimed and is not settled, of what the freeze covers and of the caller's own tenant.
func (s *Service) inFlight(ctx context.Context, o FreezeOrder) (all []Change, more bool, err error) {
	f := Filter{Tenant: o.By.Tenant, Statuses: []Status{StatusApplying, StatusUnknown}, Limit: mostInFlight}
	if o.Kind == FreezeAction {
		f.Action = o.Name
	}
	for {
		page, next, err := s.Store.List(ctx, f)
		if err != nil {
			return nil, false, err
		}
		for _, c := range page {
			if o.Kind != FreezeConnector || c.Preview.Plan.Target.System == o.Name {
				all = append(all, c)
			}
		}
		switch {
		case len(all) > mostInFlight, len(all) == mostInFlight && next != "":
			return all[:mostInFlight], true, nil
		case next == "":
			return all, false, nil
		}
		f.Cursor = next
	}
}

// frozen is the refusal that a freeze gives: what, by whom, why and until when.
func frozen(f Freeze) *fault.Fault {
	args := fault.Args{"name": f.Name, "by": f.By, "reason": f.Reason}
	data := map[string]any{"kind": string(f.Kind), "by": f.By, "reason": f.Reason, "since": f.At.UTC().Format(time.RFC3339)}
	key := "fault.frozen." + string(f.Kind)
	if f.Name != "" {
		data["name"] = f.Name
	}
	if f.Until != nil {
		until := f.Until.UTC().Format(time.RFC3339)
		args["until"], data["until"] = until, until
		key += "_until"
	}
	return fault.New(fault.Frozen, args).WithKey(key).WithData(map[string]any{"freeze": data})
}
