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

// Hold is what a restore from a backup has laid on a change: it may have been applied in the time that the database has forgotten.
// Who moves next: the service, by asking the target with the change's constant key; then an operator.
type Hold struct {
	// Held is true until the target was asked; then it says only that the change came out of a restore as an unknown outcome.
	Held  bool      `json:"held"`
	Since time.Time `json:"since"`
	Looks int       `json:"looks"`
}

// held reports whether a change must not be claimed.
func (c Change) held() bool { return c.Hold != nil && c.Hold.Held }

// Holds keeps what restores have laid on changes. Each method is one transaction.
type Holds interface {
	// NextHeld lists held changes that are due for a look, at most limit of each action.
	NextHeld(ctx context.Context, limit int) ([]Due, error)
	// BeginLook takes a held change for one look. ok is false when another worker has it, or it is not held any more.
	BeginLook(ctx context.Context, k Key, holdFor time.Duration) (ok bool, err error)
	// LookAgain records a look that proved nothing and plans the next one. handOver hands the change to so many operators; 0 does not.
	LookAgain(ctx context.Context, k Key, in time.Duration, handOver int) error
	// EndHold ends a hold by what a look found, with its audit event. "Absent" counts only settleFor after the restore was
	// declared. ErrTargetBusy means that another change holds the target: look again later.
	EndHold(ctx context.Context, e HoldEnd) (ended bool, err error)
}

// HoldEnd is what a look says of a held change.
type HoldEnd struct {
	Result
	// Settled: the change's own execution was settled meanwhile, and nothing is left to be asked.
	Settled   bool
	SettleFor time.Duration
	Resolvers int
}

const heldAtOnce = 4

// startHeld starts the looks at held changes that are due, a lane per action as probes have.
func (s *Service) startHeld(ctx context.Context) (wait func() error, err error) {
	if s.Holds == nil {
		return func() error { return nil }, nil
	}
	due, err := s.Holds.NextHeld(ctx, sweepBatch)
	if err != nil {
		return nil, fmt.Errorf("listing held changes: %w", err)
	}
	lanes := map[string][]Key{}
	for _, d := range due {
		lanes[d.Action] = append(lanes[d.Action], d.Key)
	}
	var looks sync.WaitGroup
	failed := make([]error, len(due))
	n := 0
	for action, keys := range lanes {
		from := n
		n += len(keys)
		lane := "held " + action
		if _, busy := s.probing.LoadOrStore(lane, true); busy {
			continue
		}
		looks.Add(1)
		s.probes.Go(func() {
			defer looks.Done()
			defer s.probing.Delete(lane)
			s.lookAtAll(ctx, keys, failed[from:from+len(keys)])
		})
	}
	return func() error { looks.Wait(); return errors.Join(failed...) }, nil
}

func (s *Service) lookAtAll(ctx context.Context, keys []Key, failed []error) {
	places := make(chan struct{}, heldAtOnce)
	var looks sync.WaitGroup
	for i, k := range keys {
		if ctx.Err() != nil {
			break
		}
		places <- struct{}{}
		looks.Go(func() {
			defer func() { <-places }()
			defer s.contain(k)
			if failed[i] = s.lookAtHeld(ctx, k); failed[i] != nil && ctx.Err() == nil {
				s.Log.WarnContext(ctx, "a look at a held change failed; the next sweep tries again", "preview_id", k.ID.String(), "error", failed[i])
			}
		})
	}
	looks.Wait()
}

// lookAtHeld asks the target whether a held change was applied in the time that the database has forgotten.
func (s *Service) lookAtHeld(ctx context.Context, k Key) error {
	c, _, err := s.Store.Load(ctx, k.Tenant, k.ID, false)
	if err != nil {
		return err
	}
	if !c.held() {
		return nil
	}
	action, ok := s.Actions.Action(c.Preview.Action)
	if !ok {
		action.Connector = absent{}
	}
	clocks := s.clocks(action)
	if ok, err = s.Holds.BeginLook(ctx, k, clocks.SendFor+s.SendMargin); err != nil || !ok {
		return err
	}
	end := HoldEnd{
		Result:    Result{Key: k, Attempt: uuid.New(), Kind: Lookup},
		SettleFor: clocks.LeaseFor + clocks.SendFor + clocks.SettleFor, Resolvers: action.ResolveBy,
	}
	switch {
	case c.Status == StatusApplied:
		end.Settled = true
		return s.endHold(ctx, c, end)
	case c.Status == StatusApplying || c.Status == StatusUnknown:
		return s.Holds.LookAgain(ctx, k, slowestHeld, 0) // its own probes settle it
	}
	end.Result = s.lookup(ctx, c, k, action, clocks, end.Result)
	if ctx.Err() != nil && end.Found != connector.EffectFound {
		return ctx.Err()
	}
	return s.endHold(ctx, c, end)
}

// slowestHeld is the pause before a held change is looked at again whose turn has not come.
const slowestHeld = 5 * time.Second

// endHold writes what a look proved. What nobody can tell becomes an unknown outcome for operators.
func (s *Service) endHold(ctx context.Context, c Change, e HoldEnd) error {
	settles := c.Hold.Since.Add(e.SettleFor)
	early := c.Now.Before(settles)
	pause := min(s.ProbeBase<<min(c.Hold.Looks, 10), slowest)
	switch {
	case e.Found == connector.EffectAbsent && early:
		return s.Holds.LookAgain(ctx, e.Key, min(settles.Sub(c.Now), slowest), 0)
	case e.Found == connector.EffectUnsure && (early || c.Hold.Looks+1 < patienceOf(e.Result)):
		return s.Holds.LookAgain(ctx, e.Key, pause, 0)
	}
	ended, err := s.Holds.EndHold(context.WithoutCancel(ctx), e)
	switch {
	case errors.Is(err, ErrTargetBusy):
		return s.Holds.LookAgain(ctx, e.Key, pause, 0)
	case err != nil:
		return err
	case !ended && e.Found == connector.EffectUnsure:
		return s.Holds.LookAgain(ctx, e.Key, pause, max(e.Resolvers, 1))
	case !ended:
		return s.Holds.LookAgain(ctx, e.Key, pause, 0)
	}
	if e.Found == connector.EffectFound {
		s.Observe.Settled(c.Preview.Tenant, c.Preview.Action, StatusApplied)
	}
	return nil
}
