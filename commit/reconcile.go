package commit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/connector"
)

const (
	sweepBatch   = 100
	probesAtOnce = 8
	// patience is how many probes without proof are made before the outcome is handed to operators. Probing goes on after
	// that, slowly: nothing is a dead end.
	patience = 6
	// slowest is the longest pause between probes.
	slowest = 5 * time.Minute
)

// Reconciler settles what is left over: it is safe to run on every replica.
type Reconciler struct {
	Service *Service
	// Every is the sweep; zero means 5 seconds.
	Every time.Duration
}

// Run sweeps until ctx ends. Marking what lapsed and probing run side by side: a target that does not answer must not delay
// the moment at which an operator sees a lapsed lease.
func (r Reconciler) Run(ctx context.Context) error {
	every := r.Every
	if every == 0 {
		every = 5 * time.Second
	}
	var loops sync.WaitGroup
	loops.Go(func() { r.loop(ctx, every, r.Service.markLapsed) })
	loops.Go(func() {
		r.loop(ctx, every, func(ctx context.Context) error {
			_, err := r.Service.startProbes(ctx)
			_, held := r.Service.startHeld(ctx)
			return errors.Join(err, held)
		})
		r.Service.probes.Wait()
	})
	loops.Wait()
	return nil
}

func (r Reconciler) loop(ctx context.Context, every time.Duration, pass func(context.Context) error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := pass(ctx); err != nil && ctx.Err() == nil {
			r.Service.Log.WarnContext(ctx, "a sweep failed; the next one tries again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sweep makes one pass: lapsed leases are marked, due probes and looks at held changes are made.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.markLapsed(ctx); err != nil {
		return err
	}
	wait, err := s.startHeld(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.probeDue(ctx), wait())
}

func (s *Service) markLapsed(ctx context.Context) error {
	for {
		n, err := s.Store.MarkLapsed(ctx, sweepBatch)
		if err != nil {
			return fmt.Errorf("marking what lapsed: %w", err)
		}
		if n < sweepBatch {
			return nil
		}
	}
}

// probeDue makes the probes that are due and waits for them.
func (s *Service) probeDue(ctx context.Context) error {
	wait, err := s.startProbes(ctx)
	if err != nil {
		return err
	}
	return wait()
}

// startProbes starts the probes that are due: of each action a few at a time, and none of an action whose last ones are still
// under way, so that a target that does not answer holds up its own probes and nobody else's.
func (s *Service) startProbes(ctx context.Context) (wait func() error, err error) {
	due, err := s.Store.NextProbes(ctx, sweepBatch)
	if err != nil {
		return nil, fmt.Errorf("listing due probes: %w", err)
	}
	lanes := map[string][]Key{}
	for _, d := range due {
		lanes[d.Action] = append(lanes[d.Action], d.Key)
	}
	results := make(chan error, len(lanes))
	for action, keys := range lanes {
		if _, busy := s.probing.LoadOrStore(action, true); busy {
			results <- nil
			continue
		}
		s.probes.Go(func() {
			defer s.probing.Delete(action)
			err := s.probeAll(ctx, keys)
			if err != nil && ctx.Err() == nil {
				s.Log.WarnContext(ctx, "probes failed; the next sweep tries again", "action", action, "error", err)
			}
			results <- err
		})
	}
	return func() error {
		var failed []error
		for range lanes {
			failed = append(failed, <-results)
		}
		return errors.Join(failed...)
	}, nil
}

// probeAll makes the probes of one action. Each is bounded by the send deadline.
func (s *Service) probeAll(ctx context.Context, keys []Key) error {
	failed := make([]error, len(keys))
	places := make(chan struct{}, probesAtOnce)
	var probes sync.WaitGroup
	for i, k := range keys {
		if ctx.Err() != nil {
			break
		}
		places <- struct{}{}
		probes.Go(func() {
			defer func() { <-places }()
			defer s.contain(k)
			failed[i] = s.probe(ctx, k)
		})
	}
	probes.Wait()
	return errors.Join(failed...)
}

// probe makes one look-up, or one allowed replay, and records what it proved. Another worker's probe is left alone.
func (s *Service) probe(ctx context.Context, k Key) error {
	asked := time.Now() // before the question, as with a lease
	c, epochs, err := s.Store.Load(ctx, k.Tenant, k.ID, true)
	if err != nil {
		return err
	}
	e, err := execution(c, k.Item)
	if err != nil {
		return err
	}
	action, ok := s.Actions.Action(c.Preview.Action)
	if !ok {
		// A connector that is gone can prove nothing: operators settle it.
		action.Connector = absent{}
	}
	clocks := s.clocks(action)
	kind := s.probeKind(c, e, action, epochs)
	attempt := uuid.New()
	ok, err = s.Store.BeginProbe(ctx, k, attempt, kind, clocks.SendFor+s.SendMargin, clocks.SettleFor)
	if err != nil || !ok {
		return err
	}
	r := Result{Key: k, Attempt: attempt, Kind: kind}
	if kind == Replay {
		r = s.replay(ctx, c, k, action, clocks, asked.Add(replayableFor(c, e, action)), r)
	} else {
		r = s.lookup(ctx, c, k, action, clocks, r)
	}
	if ctx.Err() != nil && r.Found != connector.EffectFound {
		// The process stops: a look that was cut short proves nothing and is not counted. Its hold ends by itself.
		return ctx.Err()
	}
	r = s.schedule(c, e, r)
	s.record(ctx, r)
	s.observeProbe(c, r)
	return nil
}

func (s *Service) observeProbe(c Change, r Result) {
	switch r.Found {
	case connector.EffectFound:
		s.Observe.Settled(c.Preview.Tenant, c.Preview.Action, StatusApplied)
	case connector.EffectAbsent:
		s.Observe.Settled(c.Preview.Tenant, c.Preview.Action, StatusNotApplied)
	}
}

// probeKind chooses a look-up wherever there is one. A replay can cause the effect, as a send can; it is allowed only inside
// the target's key retention and the apply window, unfrozen, and only once looking has had its time.
func (s *Service) probeKind(c Change, e Execution, a connector.Registered, epochs Epochs) AttemptKind {
	switch {
	case a.Able.Lookup, !a.Able.Replay, epochs.Frozen, e.State == NotApplied, c.Hold != nil:
		return Lookup
	case replayableFor(c, e, a) <= 0:
		return Lookup
	}
	return Replay
}

// replayableFor is how long a replay is still allowed: until the target may have forgotten the key, counted from the first send, and
// no longer than the apply window. A key that is forgotten would make a second effect, so this bounds the send itself.
func replayableFor(c Change, e Execution, a connector.Registered) time.Duration {
	return min(e.StartedAt.Add(a.Able.ReplayFor).Sub(c.Now), c.Preview.Deadline.Sub(c.Now))
}

func (s *Service) lookup(
	ctx context.Context, c Change, k Key, a connector.Registered, clocks connector.Clocks, r Result,
) Result {
	ctx, cancel := context.WithTimeout(ctx, clocks.SendFor)
	defer cancel()
	finding, err := prompt(ctx, s, func() (connector.Finding, error) {
		return a.Connector.Lookup(ctx, c.Preview.Plan.Clone(), s.call(c, k.Item))
	})
	r.Found, r.Evidence = finding.Found, c.Preview.Plan.Without(finding.Evidence)
	switch {
	case err != nil:
		r.Found, r.Evidence = connector.EffectUnsure, map[string]any{"cause": causeOf(err)}
	case finding.Found == connector.EffectAbsent && !a.Able.Lookup:
		// "Absent" proves nothing where look-ups are not declared consistent.
		r.Found = connector.EffectUnsure
	}
	if len(finding.Now) > 0 {
		r.Evidence = merged(r.Evidence, map[string]any{"columns": Columns(c.Preview.Plan, finding.Now)})
	}
	return r
}

// replay says the same thing again under the same key. Only a confirmed effect settles anything: a refusal may be the
// target's answer to its own earlier effect.
func (s *Service) replay(
	ctx context.Context, c Change, k Key, a connector.Registered, clocks connector.Clocks, until time.Time, r Result,
) Result {
	r.Found = connector.EffectUnsure
	reading, err := s.read(ctx, a, c.Preview.Plan.Target, clocks.SendFor)
	if err != nil || (c.Preview.Plan.Moved(reading) && !a.Able.Precondition) {
		r.Evidence = map[string]any{"cause": "the target moved or could not be read: not replayed"}
		return r
	}
	asked := time.Now()
	check, err := s.Store.CheckLease(ctx, k, r.Attempt, reading.Version, clocks.SettleFor)
	if err != nil || !check.Current || check.Left <= s.SendMargin {
		r.Evidence = map[string]any{"cause": "the probe's time was over or another worker's: not replayed"}
		return r
	}
	deadline := asked.Add(min(clocks.SendFor, check.Left-s.SendMargin, until.Sub(asked)-s.SendMargin))
	if !time.Now().Before(deadline) {
		r.Evidence = map[string]any{"cause": "the probe's time was over or another worker's: not replayed"}
		return r
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	receipt, err := contained(s, func() (connector.Receipt, error) {
		return a.Connector.Execute(ctx, c.Preview.Plan.Clone(), s.call(c, k.Item))
	})
	if err == nil {
		r.Found, r.Evidence = connector.EffectFound, c.Preview.Plan.Without(receipt.Evidence)
		return r
	}
	r.Evidence = map[string]any{"replay": string(connector.Classify(err))}
	return r
}

// schedule plans the next probe of an outcome that this one did not settle.
func (s *Service) schedule(c Change, e Execution, r Result) Result {
	early := r.Found == connector.EffectAbsent && c.Now.Before(e.SettleAt)
	if early {
		r.Found = connector.EffectUnsure
		r.Evidence = merged(r.Evidence, map[string]any{"absent_too_early": true})
		r.RetryIn = e.SettleAt.Sub(c.Now)
		return r
	}
	r.RetryIn = min(s.ProbeBase<<min(e.Probes, 10), slowest)
	r.HandOver = r.Found == connector.EffectUnsure && !c.Now.Before(e.SettleAt) && e.Probes+1 >= patienceOf(r)
	return r
}

// patienceOf is shorter where the target said that it cannot tell: asking again will not help.
func patienceOf(r Result) int {
	if r.Evidence["cause"] == nil {
		return 1
	}
	return patience
}

func merged(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range []map[string]any{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// absent stands in for a connector that is no longer served.
type absent struct{ connector.Connector }

// Lookup proves nothing.
func (absent) Lookup(context.Context, connector.Plan, connector.Call) (connector.Finding, error) {
	return connector.Finding{Found: connector.EffectUnsure}, nil
}
