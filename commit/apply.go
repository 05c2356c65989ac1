package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Rechecker asks the policy again. It is wired to approvals, which this package does not know.
type Rechecker interface {
	// Missing is who must still approve a change that waits.
	Missing(p preview.Preview) preview.Requirement
	Standing(ctx context.Context, p preview.Preview, at time.Time) (preview.Standing, preview.Ruling, error)
	// UsesTime reports whether Standing depends on the moment.
	UsesTime() bool
}

// Deps are what a Service needs.
type Deps struct {
	Store   Store
	Actions *connector.Registry
	Recheck Rechecker
	// Holds are the changes that a restore holds; nil where there are none.
	Holds Holds
	// Freezes are what is frozen; nil where nobody can freeze.
	Freezes Freezes
	// Journal keeps on record what was exported; nil where nothing can be.
	Journal Journal
	// MostExported bounds one export; zero means a hundred thousand changes.
	MostExported int
	// PolicyVersion is the policy that this process has loaded.
	PolicyVersion string
	// Secret is the deployment's secret under the idempotency keys. It must never change while previews are alive.
	Secret []byte
	Clocks connector.Clocks
	// SendMargin is what must be left of a lease beyond the send deadline; zero means a second.
	SendMargin time.Duration
	Log        *slog.Logger
	Observe    Observer
	// ProbeBase is the pause after the first probe that proved nothing; it doubles up to five minutes. Zero means a second.
	ProbeBase time.Duration
}

// Observer is told what happened, for metrics.
type Observer interface {
	Sent(action string, class connector.Class, took time.Duration)
	Settled(tenant, action string, status Status)
}

// Service applies changes and answers for them.
type Service struct {
	Deps
	// exporting holds one element for each export under way.
	exporting chan struct{}
	running   sync.WaitGroup
	// probes are the probes under way; probing names their actions.
	probes  sync.WaitGroup
	probing sync.Map
	// base is the context of sends: cancelled only when a drain runs out of time.
	base context.Context
	kill context.CancelFunc
	// leaving ends every wait for news; sends go on.
	leaving context.Context
	leave   context.CancelFunc
}

// NewService makes a Service. Call Drain before the process ends.
func NewService(d Deps) *Service {
	if d.SendMargin == 0 {
		d.SendMargin = time.Second
	}
	if d.ProbeBase == 0 {
		d.ProbeBase = time.Second
	}
	if d.MostExported == 0 {
		d.MostExported = mostExported
	}
	s := &Service{Deps: d, exporting: make(chan struct{}, mostExports)}
	s.base, s.kill = context.WithCancel(context.Background())
	s.leaving, s.leave = context.WithCancel(context.Background())
	return s
}

// EndWaits answers every call that waits for news as things stand, now and from now on. An apply that is being sent is still
// waited for: its caller gets the outcome. It is the first step of a drain.
func (s *Service) EndWaits() { s.leave() }

// Drain waits for the sends under way and their records. When ctx ends first, they are cut off and will read as unknown.
func (s *Service) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.kill()
		return fmt.Errorf("draining sends: %w", ctx.Err())
	}
}

// epochRetries bounds how often an apply authorises anew because the rules moved under it.
const epochRetries = 3

// Apply claims an approved change and sends it, once. Calling it again returns the same change as it stands. The Change is
// set beside an error whenever the caller may see it. Faults: not_found, forbidden, insufficient_scope, conflict, frozen,
// policy_denied, approval_required, target_busy, target_unavailable (nothing was sent). A change that ends unknown,
// not_applied or any other status is returned without an error: its status says so.
func (s *Service) Apply(ctx context.Context, who actor.Actor, action string, id preview.ID, wait time.Duration) (Change, error) {
	if c, done, err := s.applyAtOnce(ctx, who, action, id, wait); done {
		return c, err
	}
	for range epochRetries {
		c, epochs, err := s.Store.Load(ctx, who.Tenant, id, false)
		if err != nil {
			return Change{}, err
		}
		if err := s.mayApply(who, action, c); err != nil {
			return visibleTo(who, c), err
		}
		if c.Status != StatusApproved {
			return s.await(ctx, c, wait)
		}
		c, err = s.claim(ctx, who, c, epochs, wait)
		if errors.Is(err, ErrEpochsMoved) {
			continue
		}
		return c, err
	}
	return Change{}, fault.New(fault.Conflict, nil).WithKey("fault.conflict.policy_moved").WithNext(fault.NextRetryLater)
}

func visibleTo(who actor.Actor, c Change) Change {
	if preview.MayRead(who, c.Preview) {
		return c
	}
	return Change{}
}

// mayApply checks what a preview ID alone does not give: ownership, the right tool, and the scopes.
func (s *Service) mayApply(who actor.Actor, action string, c Change) error {
	if !preview.Owns(who, c.Preview) {
		if preview.MayRead(who, c.Preview) {
			return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.not_requester")
		}
		return fault.New(fault.NotFound, nil)
	}
	if action != "" && action != c.Preview.Action {
		return fault.New(fault.InvalidInput, nil).WithField("/preview_id", "field.other_action",
			fault.Args{"action": c.Preview.Action, "tool": c.Preview.Action + "_apply"})
	}
	served, ok := s.Actions.Action(c.Preview.Action)
	if !ok {
		return staleAction()
	}
	return preview.RequireScopes(who, served.Scopes...)
}

func staleAction() error {
	return fault.New(fault.Conflict, nil).WithKey("fault.conflict.action_version").WithNext(fault.NextPrepareAgain)
}

// claim authorises, claims and hands over to the sender: steps 3 to 6 of an apply in ARCHITECTURE.md.
func (s *Service) claim(ctx context.Context, who actor.Actor, c Change, epochs Epochs, wait time.Duration) (Change, error) {
	action, err := s.authorize(ctx, who, c, epochs)
	switch {
	case errors.Is(err, ErrNotClaimed):
		return s.afterLostClaim(ctx, c, wait)
	case err != nil:
		return s.reload(ctx, c, err)
	}
	c, err = s.claimAndSend(ctx, who, c, epochs, action, wait)
	if errors.Is(err, ErrNotClaimed) {
		return s.afterLostClaim(ctx, c, wait)
	}
	return c, err
}

// claimAndSend claims what was authorised. ErrNotClaimed and ErrEpochsMoved are for the caller to deal with.
func (s *Service) claimAndSend(
	ctx context.Context, who actor.Actor, c Change, epochs Epochs, action connector.Registered, wait time.Duration,
) (Change, error) {
	cl := Claim{
		Key: Key{Tenant: c.Preview.Tenant, ID: c.Preview.ID}, Attempt: uuid.New(), By: who, Digest: c.Preview.Digest,
		Revision: c.Preview.Revision, Version: c.Preview.Plan.Version, Epochs: epochs, Clocks: s.clocks(action),
		Resolvers: action.ResolveBy,
	}
	// The claim is never cancelled by the caller: a cancelled commit would be a commit in doubt.
	err := s.claimDurably(context.WithoutCancel(ctx), cl)
	switch {
	case errors.Is(err, ErrTargetBusy):
		return c, s.busy(ctx, c)
	case err != nil:
		return c, err
	}
	return s.sendAndWait(ctx, c, cl, action, wait)
}

// applyAtOnce applies a change as this process saw it last, which spares a reading. Whatever would refuse it is looked at anew, and a
// claim compares state, clock, digest, votes and epochs with what is stored: done is false where it did not find them so. Rules about
// the time are asked with the database's.
func (s *Service) applyAtOnce(
	ctx context.Context, who actor.Actor, action string, id preview.ID, wait time.Duration,
) (_ Change, done bool, _ error) {
	c, epochs, ok := s.Store.RecallChange(who.Tenant, id)
	if !ok || c.Status != StatusApproved || s.Recheck.UsesTime() || s.mayApply(who, action, c) != nil {
		return Change{}, false, nil
	}
	registered, err := s.served(c, epochs)
	if err != nil {
		return Change{}, false, nil
	}
	if standing, _, err := s.Recheck.Standing(ctx, c.Preview, c.Now); err != nil || standing != preview.Stands {
		return Change{}, false, nil
	}
	if s.permitted(ctx, who, c, registered) != nil {
		return Change{}, false, nil
	}
	c, err = s.claimAndSend(ctx, who, c, epochs, registered, wait)
	if errors.Is(err, ErrNotClaimed) || errors.Is(err, ErrEpochsMoved) {
		return Change{}, false, nil
	}
	if err != nil && c.Status == StatusApproved {
		c, err = s.anew(ctx, c, err)
	}
	return c, true, err
}

// anew is how a change stands now, beside an error: what was seen before the call is said by no answer.
func (s *Service) anew(ctx context.Context, c Change, refusal error) (Change, error) {
	fresh, _, err := s.Store.Load(ctx, c.Preview.Tenant, c.Preview.ID, false)
	if err != nil {
		return Change{}, refusal
	}
	return fresh, refusal
}

func (s *Service) clocks(a connector.Registered) connector.Clocks {
	clocks := a.Clocks.Or(s.Clocks)
	clocks.SettleFor = max(clocks.SettleFor, a.Able.SettleFor)
	return clocks
}

// authorize repeats, at apply, every check that prepare made: the rules may have changed since.
func (s *Service) authorize(ctx context.Context, who actor.Actor, c Change, epochs Epochs) (connector.Registered, error) {
	action, err := s.served(c, epochs)
	if err != nil {
		return action, err
	}
	if err := s.permitted(ctx, who, c, action); err != nil {
		return action, err
	}
	return action, s.standing(ctx, c, action)
}

// served checks that nothing of ours stands in the way: action, restore, freeze and policy.
func (s *Service) served(c Change, epochs Epochs) (connector.Registered, error) {
	action, ok := s.Actions.Action(c.Preview.Action)
	switch {
	case !ok || action.Version != c.Preview.ActionVersion:
		return action, staleAction()
	case c.held():
		return action, fault.New(fault.Frozen, nil).WithKey("fault.frozen.held")
	case epochs.Restoring:
		return action, fault.New(fault.Frozen, nil).WithKey("fault.frozen.restored")
	case epochs.FrozenBy != nil:
		return action, frozen(*epochs.FrozenBy)
	case epochs.PolicyVersion != s.PolicyVersion:
		return action, fault.New(fault.Conflict, nil).WithKey("fault.conflict.policy_moved").WithNext(fault.NextRetryLater)
	}
	return action, nil
}

// permitted asks the target's own permission system.
func (s *Service) permitted(ctx context.Context, who actor.Actor, c Change, action connector.Registered) error {
	permission, err := action.Connector.Authorize(ctx, who, connector.VerbApply, c.Preview.Plan.Target)
	if err != nil {
		s.Log.WarnContext(ctx, "the permission system did not answer", "preview_id", c.Preview.ID.String(), "error", err)
		return fault.New(fault.TargetUnavailable, nil).Because(err)
	}
	if !permission.Allowed {
		return preview.NotPermitted(who, action.System, permission)
	}
	return nil
}

func (s *Service) standing(ctx context.Context, c Change, action connector.Registered) error {
	standing, ruling, err := s.Recheck.Standing(ctx, c.Preview, c.Now)
	if err != nil {
		return err
	}
	switch standing {
	case preview.Stands:
		return nil
	case preview.DeniedNow:
		return deniedNow(ruling)
	}
	back, err := s.Store.SendBack(ctx, c.Preview.Tenant, c.Preview.ID, ruling, s.clocks(action).PreviewTTL)
	switch {
	case err != nil:
		return fmt.Errorf("sending the change back for approval: %w", err)
	case !back:
		return ErrNotClaimed // somebody else moved it first: its status says what became of it
	}
	return wantsMore(c.Preview)
}

func deniedNow(r preview.Ruling) error {
	return fault.New(fault.PolicyDenied, fault.Args{"rule": r.Rule})
}

// wantsMore is the refusal of an approved change that people must approve once more.
func wantsMore(p preview.Preview) error {
	if lost := p.Lost(); len(lost) > 0 {
		return fault.New(fault.ApprovalRequired, fault.Args{"names": strings.Join(lost, ", ")}).WithKey("fault.approval_required.removed")
	}
	return fault.New(fault.ApprovalRequired, nil).WithKey("fault.approval_required.tightened")
}

// reload shows a refused change as it stands after the refusal.
func (s *Service) reload(ctx context.Context, c Change, refusal error) (Change, error) {
	fresh, _, err := s.Store.Load(ctx, c.Preview.Tenant, c.Preview.ID, false)
	if err != nil {
		return c, refusal
	}
	return fresh, refusal
}

func (s *Service) busy(ctx context.Context, c Change) error {
	f := fault.New(fault.TargetBusy, nil).After(busyPause)
	holder, unknown, err := s.Store.HolderOf(ctx, c.Preview.Tenant, c.Preview.Plan.Target.Key())
	if err != nil || holder == nil {
		return f
	}
	f = f.WithKey("fault.target_busy.named").WithData(map[string]any{"waits_for": holder.String()})
	f.Args = fault.Args{"preview_id": holder.String()}
	if unknown {
		f = f.WithKey("fault.target_busy.unknown").After(unknownPause)
	}
	return f
}

// How long to leave a held target alone: a send ends soon, an unknown outcome may need a person.
const (
	busyPause    = 2 * time.Second
	unknownPause = time.Minute
)

// afterLostClaim answers with the status that won.
func (s *Service) afterLostClaim(ctx context.Context, c Change, wait time.Duration) (Change, error) {
	fresh, _, err := s.Store.Load(ctx, c.Preview.Tenant, c.Preview.ID, false)
	if err != nil {
		return c, err
	}
	return s.await(ctx, fresh, wait)
}

// claimDurably claims, and does not return nil before the claim is known to be durable (step 5 in ARCHITECTURE.md).
func (s *Service) claimDurably(ctx context.Context, cl Claim) error {
	err := s.Store.ClaimApproved(ctx, cl)
	if !errors.Is(err, ErrInDoubt) {
		return err
	}
	s.Log.WarnContext(ctx, "the claim's commit is in doubt; confirming before anything is sent", "preview_id", cl.ID.String())
	return s.confirm(ctx, cl)
}

func (s *Service) confirm(ctx context.Context, cl Claim) error {
	ctx, cancel := context.WithTimeout(ctx, cl.Clocks.LeaseFor)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := s.Store.ConfirmClaim(ctx, cl.Key, cl.Attempt)
		switch {
		case err == nil, errors.Is(err, ErrNotClaimed):
			return err
		case ctx.Err() != nil:
			return fault.New(fault.TargetUnavailable, nil).Because(err)
		}
		wait(ctx, pause)
	}
}

// wait pauses until the time has passed or the context has ended.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
