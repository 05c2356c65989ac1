// Package trial tries a connector out against a live target, outside of any test: `cutonce connector test` is its command.
//
// The promise: nothing is sent unless the connector itself declares its target a sandbox (Capabilities.Sandbox). Without that
// word no check that would send is begun, its target is not even dialled, and nothing overrides this. Each check puts a
// faulting link between the connector and the target, makes one change, and holds what the connector called it up against
// what it should be called; what could not be shown is N-A with its reason and never counts as a pass. At the end it says in
// words which guarantee the connector has earned.
//
// It does not replace connectortest, which needs a target that counts and covers far more; and it takes the target's own
// promises (for how long it keeps keys, how soon a look-up is consistent) at their word where they cannot be tested from outside.
//
// Start at Run and Subject; checks.go holds the checks, link.go the link, which connectortest uses too.
package trial

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Subject is the connector on trial.
type Subject struct {
	Connector connector.Connector
	Action    string
	// Actor makes the change; Input is the change. Keys are recorded by the target, and so are the people.
	Actor actor.Actor
	Input connector.Input
	// Open gives a target from which the change can be made. It is called once for every check that sends.
	Open func(ctx context.Context) (Rig, error)
}

// Rig is one target, within reach.
type Rig struct {
	Upstream Upstream
	// At makes a connector that reaches the target by way of another host and port, without TLS.
	At func(address string) (connector.Connector, error)
	// Effects is how many effects the target counted under a key; nil where it does not count.
	Effects func(key string) int
	// Close lets go of it; nil if there is nothing to let go of.
	Close func()
}

// Status is how a check ended.
type Status string

// The ends of a check. NotApplicable never counts as a pass.
const (
	Pass          Status = "PASS"
	Fail          Status = "FAIL"
	NotApplicable Status = "N-A"
)

// Result is one check's end.
type Result struct {
	ID string `json:"id"`
	// Did is what was done to the connector.
	Did string `json:"did"`
	// Got is what the connector called it, Want what it should be called.
	Got    string `json:"got,omitempty"`
	Want   string `json:"want,omitempty"`
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"`
	Sends  bool   `json:"sends"`
	// unasked says that the target's look-up was not available.
	unasked bool
}

// Report is a whole trial.
type Report struct {
	Action    string        `json:"action"`
	System    string        `json:"system"`
	Results   []Result      `json:"results"`
	Guarantee []Earned      `json:"guarantee"`
	Notes     []string      `json:"notes,omitempty"`
	Able      []string      `json:"declared"`
	settleFor time.Duration // of Able
}

// Earned is one line of what the connector may be trusted with.
type Earned struct {
	What string `json:"what"`
	How  string `json:"how"`
}

// Count is how many checks ended so.
func (r Report) Count(s Status) int {
	n := 0
	for _, one := range r.Results {
		if one.Status == s {
			n++
		}
	}
	return n
}

// Code is the exit code: 1 if something failed, 0 if nothing failed and a check that sends has passed, 3 if nothing was shown.
func (r Report) Code() int {
	if r.Count(Fail) > 0 {
		return 1
	}
	if slices.ContainsFunc(r.Results, func(one Result) bool { return one.Sends && one.Status == Pass }) {
		return 0
	}
	return 3
}

// noSandbox is the reason of every check that would send to a target that nobody called a sandbox.
const noSandbox = "the target is not declared a sandbox, so nothing is sent to it"

// Run makes every check in turn and tells each result to seen as it comes.
func Run(ctx context.Context, s Subject, seen func(Result)) (Report, error) {
	d := s.Connector.Describe()
	r := Report{Action: s.Action, System: d.System, Able: declared(d.Able), settleFor: d.Able.SettleFor}
	add := func(one Result) { r.Results = append(r.Results, one); seen(one) }
	add(describe(s))
	for _, c := range checks() {
		one := Result{ID: c.id, Did: c.did, Sends: true, Status: NotApplicable, Reason: noSandbox}
		switch {
		case len(r.Results) > 1 && r.Results[1].unasked: // not even where nothing goes wrong: every other check would say the same
			one.Reason = "not tried, because the look-up cannot be asked"
		case d.Able.Sandbox:
			var notes []string
			one, notes = s.try(ctx, c)
			r.Notes = append(r.Notes, notes...)
		}
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		add(one)
	}
	r.Guarantee = earned(d.Able, r.Results)
	return r, nil
}

// declared is what the connector says of its target.
func declared(a connector.Capabilities) []string {
	var all []string
	for _, one := range []struct {
		is   bool
		text string
	}{
		{a.Sandbox, "sandbox"}, {a.Lookup, fmt.Sprintf("look-up by key, consistent after %s", a.SettleFor)},
		{a.Replay, fmt.Sprintf("keys remembered for %s", a.ReplayFor)}, {a.Precondition, "preconditions honoured"},
	} {
		if one.is {
			all = append(all, one.text)
		}
	}
	return all
}

// patience bounds a send that nothing holds up, and each step beside it.
const patience = 15 * time.Second

// bench is one check in the making: a rig, the link in front of it, and a plan.
type bench struct {
	Subject
	rig  Rig
	link *Link
	conn connector.Connector
	able connector.Capabilities
	plan connector.Plan
	call connector.Call
	// unasked is why the last look-up had no answer at all.
	unasked error
}

// try makes one check. A target that the check leaves changed is put back.
func (s Subject) try(ctx context.Context, c check) (r Result, notes []string) {
	r = Result{ID: c.id, Did: c.did, Sends: true}
	b, err := s.begin(ctx)
	if err != nil {
		r.Status, r.Reason = Fail, "the change could not be prepared: "+causeOf(err)
		if errors.Is(err, errNoTarget) || b.rig.Effects == nil {
			r.Status = NotApplicable // a live target may be in a state of its own
		}
		return r, nil
	}
	defer b.close()
	if why := c.needs(b.able); why != "" {
		r.Status, r.Reason = NotApplicable, why
		return r, nil
	}
	saw, want := c.run(ctx, b)
	r.Got, r.Want = saw.String(), want.String()
	r.Status, r.Reason = want.judge(saw)
	if r.Status == Fail && b.able.Lookup && b.unasked != nil {
		r.Reason, r.unasked = "the look-up cannot be asked, so nothing can be told of it: "+causeOf(b.unasked), true
	}
	if err := b.putBack(ctx); err != nil {
		notes = append(notes, fmt.Sprintf("after %s the target could not be put back (%s)", c.id, causeOf(err)))
	}
	return r, notes
}

var errNoTarget = errors.New("the target cannot be reached")

func (s Subject) begin(ctx context.Context) (b *bench, err error) {
	b = &bench{Subject: s, call: connector.Call{
		Key: "cutonce-trial-" + randomName(), OnBehalfOf: s.Actor.HumanName(), Agent: "cutonce-trial", PreviewID: "pv_trial",
	}}
	if b.rig, err = s.Open(ctx); err != nil {
		return b, fmt.Errorf("%w: %w", errNoTarget, err)
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.link, err = NewLink(b.rig.Upstream); err != nil {
		return b, fmt.Errorf("%w: %w", errNoTarget, err)
	}
	if b.conn, err = b.rig.At(b.link.Address()); err != nil {
		return b, err
	}
	b.able = b.conn.Describe().Able
	b.plan, err = b.prepare(ctx, b.Input)
	return b, err
}

// prepare plans a change and takes the plan through JSON, as the store does.
func (b *bench) prepare(ctx context.Context, in connector.Input) (connector.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var stored connector.Plan
	plan, _, err := b.conn.Prepare(ctx, b.Actor, b.Action, in)
	if err != nil {
		return stored, err
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return stored, err
	}
	return stored, json.Unmarshal(raw, &stored)
}

func (b *bench) close() {
	if b.link != nil {
		b.link.Close()
	}
	if closer, ok := b.conn.(interface{ Close() }); ok && b.conn != nil {
		closer.Close()
	}
	if b.rig.Close != nil {
		b.rig.Close()
	}
}

// putBack undoes what the check left behind, where the target outlives the check and the connector offers a way back.
func (b *bench) putBack(ctx context.Context) error {
	if b.rig.Effects != nil {
		return nil // a target of the trial's own, which ends with the check
	}
	b.link.Honest()
	if now, err := b.conn.Read(ctx, b.plan.Target); err == nil && now.Version == b.plan.Version {
		return nil // nothing has changed
	}
	reverser, ok := b.conn.(connector.Reverser)
	if !ok {
		return errors.New("the connector offers no way back")
	}
	input, err := reverser.Reverse(b.Action, b.plan)
	if err != nil {
		return err
	}
	plan, err := b.prepare(ctx, input)
	if err != nil {
		return err
	}
	call := b.call
	call.Key += "-back"
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = b.conn.Execute(ctx, plan, call)
	return err
}

// causeOf is an error for the connector's author, with the places of a faulty input.
func causeOf(err error) string {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return err.Error()
	}
	text := f.Error()
	for _, field := range f.Fields {
		text += fmt.Sprintf("; %s: %s %v", field.Path, field.Key, map[string]any(field.Args))
	}
	return text
}

func randomName() string {
	raw := make([]byte, 8)
	if _, err := rand.Read(raw); err != nil {
		panic(err)
	}
	return hex.EncodeToString(raw)
}
