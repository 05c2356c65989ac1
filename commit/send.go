package commit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// sendAndWait runs the send under the service's own context, so that a caller who leaves cancels nothing, and waits for it
// as long as the caller wants.
func (s *Service) sendAndWait(
	ctx context.Context, c Change, cl Claim, action connector.Registered, wait time.Duration,
) (Change, error) {
	done := make(chan sent, 1)
	s.running.Go(func() {
		defer s.contain(cl.Key)
		done <- s.send(s.base, c, cl, action)
	})
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var r sent
	select {
	case r = <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
	fresh, err := s.after(context.WithoutCancel(ctx), c, r)
	if err != nil {
		// The claim is ours and something may have left: "approved", as it was read before, would be a lie.
		c.Status = StatusApplying
		return c, fault.New(fault.OutcomeUnknown, nil).Because(err)
	}
	// "Try again" is true only where there is something to apply again; after the lease the status says the rest.
	if r.Class == connector.ClassNotSent && fresh.Status == StatusApproved {
		return fresh, r.neverLeft(cl.Clocks)
	}
	return fresh, nil
}

// sent is what a send proved, and what stood when that was recorded; nothing if it was not.
type sent struct {
	Result
	stands *Recorded
}

// after is the change after a send: as its record gave it back, or read anew where there was none to wait for.
func (s *Service) after(ctx context.Context, c Change, r sent) (Change, error) {
	if r.stands == nil {
		fresh, _, err := s.Store.Load(ctx, c.Preview.Tenant, c.Preview.ID, false)
		return fresh, err
	}
	c.Preview.State, c.Executions, c.Now = r.stands.State, r.stands.Executions, r.stands.Now
	c.Status = StatusOf(c.Preview, c.Executions, c.Now)
	return c, nil
}

// contain keeps a defect of ours in a send or a probe from ending the process, and every other send with it. The execution of
// such a send reads as unknown once its lease has lapsed.
func (s *Service) contain(k Key) {
	if v := recover(); v != nil {
		s.Log.Error("a send or a probe panicked", "preview_id", k.ID.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}

// neverLeft tells why nothing was sent, and when to try again.
func (r Result) neverLeft(clocks connector.Clocks) error {
	f := fault.New(fault.TargetUnavailable, nil)
	if r.Why == "" {
		return f
	}
	pause := time.Second
	if r.Why == staleRead {
		pause = clocks.SettleFor
	}
	f = f.WithKey(r.Why).After(pause)
	f.Args = fault.Args{"seconds": seconds(pause)}
	return f
}

// The sentences of sends that never left though the target answered.
const (
	staleRead  = "fault.target_unavailable.stale"
	shortLease = "fault.target_unavailable.lease"
)

// send is one claimed attempt from the drift check to the record. It returns what the attempt proved.
func (s *Service) send(ctx context.Context, c Change, cl Claim, action connector.Registered) sent {
	r := s.attempt(ctx, c, cl, action)
	r.LookLater = r.Answered && action.Able.Lookup
	stands := s.record(ctx, r)
	s.observe(c, r.Class)
	return sent{r, stands}
}

func (s *Service) observe(c Change, class connector.Class) {
	settled := map[connector.Class]Status{
		connector.ClassApplied: StatusApplied, connector.ClassRefused: StatusNotApplied, connector.ClassDrifted: StatusNotApplied,
		connector.ClassUnknown: StatusUnknown,
	}
	if status, ok := settled[class]; ok {
		s.Observe.Settled(c.Preview.Tenant, c.Preview.Action, status)
	}
}

// attempt checks drift and lease, then sends.
func (s *Service) attempt(ctx context.Context, c Change, cl Claim, action connector.Registered) Result {
	r := Result{Key: cl.Key, Attempt: cl.Attempt, Kind: Send}
	reading, err := s.read(ctx, action, c.Preview.Plan.Target, cl.Clocks.SendFor)
	if err != nil {
		return r.notSent("the target could not be read before the send", err)
	}
	asked := time.Now() // before the question: an answer that was long on its way must not lengthen the lease
	check, err := s.Store.CheckLease(ctx, cl.Key, cl.Attempt, reading.Version, cl.Clocks.SettleFor)
	switch {
	case err != nil:
		return r.notSent("the lease could not be read", err)
	case !check.Current:
		return r.because(shortLease).notSent("the lease had passed to another worker", nil)
	case check.ReplacedHere:
		return r.because(staleRead).notSent("the target showed a state that an earlier change of ours had replaced", nil)
	case c.Preview.Plan.Moved(reading):
		return r.drifted(c.Preview.Plan, reading)
	case check.Left < cl.Clocks.SendFor+s.SendMargin:
		return r.because(shortLease).notSent("too little of the lease was left", nil)
	}
	deadline := asked.Add(min(cl.Clocks.SendFor, check.Left-s.SendMargin))
	return s.execute(ctx, c, cl, action, deadline, r)
}

// execute is the point of no return: from here on, only a proof is anything but unknown.
func (s *Service) execute(ctx context.Context, c Change, cl Claim, action connector.Registered, deadline time.Time, r Result) Result {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	// Asked of the clock and not of the context, whose timer a busy or paused process may run late.
	if !time.Now().Before(deadline) || ctx.Err() != nil {
		return r.because(shortLease).notSent("the time to send was over", nil)
	}
	started := time.Now()
	receipt, err := contained(s, func() (connector.Receipt, error) {
		return action.Connector.Execute(ctx, c.Preview.Plan.Clone(), s.call(c, cl.Item))
	})
	s.Observe.Sent(action.Name, connector.Classify(err), time.Since(started))
	return r.of(c.Preview.Plan, receipt, err)
}

// contained calls a connector and turns its panic into an error. After Execute has begun, a panic proves nothing.
func contained[T any](s *Service, call func() (T, error)) (out T, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.Log.Error("a connector panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = errors.New("the connector panicked")
		}
	}()
	return call()
}

// grace is what a question gets beyond its deadline to come back by itself.
const grace = time.Second

// prompt is contained for a question to the target, which has no effect: a connector that ignores its deadline is left alone with it,
// so that it holds up neither its action's other changes nor an operator. A send is never left alone: its late answer counts.
func prompt[T any](ctx context.Context, s *Service, call func() (T, error)) (T, error) {
	type answer struct {
		out T
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		out, err := contained(s, call)
		answered <- answer{out, err}
	}()
	select {
	case a := <-answered:
		return a.out, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-answered:
		return a.out, a.err
	case <-timer.C:
		s.Log.Error("a connector does not keep to its deadline")
		var none T
		return none, ctx.Err()
	}
}

func (s *Service) read(ctx context.Context, a connector.Registered, t connector.Target, within time.Duration) (connector.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return prompt(ctx, s, func() (connector.Reading, error) { return a.Connector.Read(ctx, t) })
}

// call is what the target is told. The names are for its log: authority comes from the service's own credentials.
func (s *Service) call(c Change, item int) connector.Call {
	p := c.Preview
	call := connector.Call{Key: IdempotencyKey(s.Secret, p.Tenant, p.ID, item), OnBehalfOf: p.Requester.HumanName(), PreviewID: p.ID.String()}
	if p.Requester.Kind != actor.Human {
		call.Agent = p.Requester.Subject
	}
	for _, v := range p.Votes {
		if v.Approve && v.Round == p.Round {
			call.ApprovedBy = append(call.ApprovedBy, v.Name)
		}
	}
	return call
}

// IdempotencyKey is constant for the life of a preview's item, so that even a restored database finds its effects at the
// target. It reveals nothing about the preview.
func IdempotencyKey(secret []byte, tenant string, id preview.ID, item int) string {
	mac := hmac.New(sha256.New, secret)
	for _, part := range []string{tenant, id.String(), strconv.Itoa(item)} {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// record writes a result, whatever became of the caller. It gives up only when the drain does: the reconciler then settles
// the outcome from what the target remembers, and nil is returned.
func (s *Service) record(ctx context.Context, r Result) *Recorded {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		stands, err := s.Store.RecordResult(context.WithoutCancel(ctx), r)
		if err == nil {
			return &stands
		}
		s.Log.Warn("recording an outcome failed; trying again", "preview_id", r.ID.String(), "error", err)
		if ctx.Err() != nil {
			s.Log.Error("an outcome was not recorded; it reads as unknown until it is looked up", "preview_id", r.ID.String(),
				"class", string(r.Class))
			return nil
		}
		wait(ctx, pause)
	}
}

func (r Result) because(why string) Result { r.Why = why; return r }

func (r Result) notSent(why string, err error) Result {
	r.Class, r.Reason = connector.ClassNotSent, why
	if err != nil {
		r.Evidence = map[string]any{"cause": causeOf(err)}
	}
	return r
}

// causeOf names the sort of failure without the text of a foreign error, which may hold addresses or secrets.
func causeOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "error"
}

func (r Result) drifted(p connector.Plan, now connector.Reading) Result {
	r.Class = connector.ClassDrifted
	r.Evidence = map[string]any{"columns": Columns(p, now.Values)}
	return r
}

// of turns what Execute returned into a result.
func (r Result) of(p connector.Plan, receipt connector.Receipt, err error) Result {
	r.Class = connector.Classify(err)
	r.Answered = r.Class != connector.ClassNotSent
	var refused *connector.RejectedError
	var drifted *connector.DriftedError
	switch {
	case err == nil:
		r.Evidence = p.Without(receipt.Evidence)
	case errors.As(err, &refused):
		r.Reason, r.Evidence = p.WithoutText(refused.Reason), map[string]any{"status": refused.Status}
	case errors.As(err, &drifted):
		if drifted.Now != nil {
			return r.drifted(p, *drifted.Now)
		}
	case r.Class == connector.ClassNotSent:
		return r.notSent("the target could not be reached", err)
	default:
		r.Evidence = map[string]any{"cause": causeOf(err)}
	}
	return r
}

// Column is one field of a drift in three columns.
type Column struct {
	Field     string          `json:"field"`
	AtPreview connector.Value `json:"at_preview"`
	Now       connector.Value `json:"now"`
	Requested connector.Value `json:"requested"`
	// Shows is there for a sensitive field, in the place of its values, which are kept nowhere but in the plan: what it is now.
	Shows Shows `json:"shows,omitempty"`
}

// Shows is how a sensitive field stands at the target.
type Shows string

// The ways: as it was at the preview, as was asked for, at something else, or not known.
const (
	ShowsPreview   Shows = "at_preview"
	ShowsRequested Shows = "requested"
	ShowsOther     Shows = "other"
	ShowsUnknown   Shows = "unknown"
)

func showsOf(c connector.Change, now connector.Value) Shows {
	switch {
	case !now.Known():
		return ShowsUnknown
	case now.Equal(c.Before):
		return ShowsPreview
	case now.Equal(c.After):
		return ShowsRequested
	}
	return ShowsOther
}

// Columns sets a plan beside the target as it is now.
func Columns(p connector.Plan, now map[string]connector.Value) []Column {
	columns := make([]Column, 0, len(p.Changes))
	for _, c := range p.Changes {
		if c.Sensitive {
			columns = append(columns, Column{Field: c.Field, Shows: showsOf(c, now[c.Field])})
			continue
		}
		columns = append(columns, Column{Field: c.Field, AtPreview: c.Before, Now: now[c.Field], Requested: c.After})
	}
	return columns
}
