// Package connectortest proves that a connector owes nothing to luck: it reads without changing, plans the same twice, and
// calls every outcome what it is.
//
// Run puts a small faulting link of its own between the connector and the target. The link cuts the send before, during and
// after the write, holds it past the deadline, delivers it twice, answers in the target's place as gateways do, and shows
// old reads. After each, the class of Execute's error is held up against the effects that the target itself counted: a
// connector may say "unknown" where it could know more, but it may never call an effect refused, drifted or not sent, and
// never claim one that is not there.
//
// It needs a target that speaks HTTP/1 without TLS on a loopback address, counts effects by idempotency key and can be put
// into a first state. It does not prove what the target promises (that its history is consistent, how long it keeps keys):
// it takes Capabilities at their word where the word cannot be tested from outside.
//
// Start at Run and Rig.
package connectortest

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/trial"
	"github.com/cutonce/cutonce/internal/actor"
)

// Subject is the connector under test.
type Subject struct {
	// New makes a target in its first state with a connector to it. It is called once for every case.
	New func(t *testing.T) Rig
}

// Rig is one target with the means to watch and to move it. Every member is needed unless it says otherwise.
type Rig struct {
	// Address is the target's host and port.
	Address string
	// At makes a connector that reaches the same target by way of another address.
	At func(t *testing.T, address string) connector.Connector
	// Actor may make the change; Action and Input are the change.
	Actor  actor.Actor
	Action string
	Input  connector.Input
	// Effects is how many effects the target counted under an idempotency key.
	Effects func(key string) int
	// State writes down everything at the target that a change could touch.
	State func() string
	// Move is someone else's change of the same thing.
	Move func(t *testing.T)
	// Refuse puts the target into a state in which it answers the prepared change with one of its documented refusals
	// other than "it moved". Nil for a target that documents none: then no answer may be classified as a refusal.
	Refuse func(t *testing.T)
	// InProgress makes the target answer the next send that the first request with its key is still being worked on. Nil
	// for a target that has no such answer.
	InProgress func(t *testing.T)
	// PermissionsElsewhere says that Authorize asks something other than the target, which therefore need not answer.
	PermissionsElsewhere bool
	// Finds are calls of every find tool.
	Finds map[string]connector.Input
	// Hollow are bodies that look like an answer of the target's look-up and are none: half of one, one about another key.
	Hollow []string
}

// Run runs the whole suite.
func Run(t *testing.T, s Subject) {
	t.Helper()
	for name, group := range map[string]func(*testing.T, Subject){
		"describe": testDescribe, "prepare": testPrepare, "send": testSend, "answers": testAnswers,
		"target": testTarget, "lookup": testLookup,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); group(t, s) })
	}
}

// bench is one case in the making: a rig, the link in front of it, and a plan.
type bench struct {
	Rig
	link *trial.Link
	conn connector.Connector
	able connector.Capabilities
	plan connector.Plan
	call connector.Call
}

const patience = 10 * time.Second

// begin makes a bench with a prepared plan. The plan goes through JSON as it does in the store.
func begin(t *testing.T, s Subject) *bench {
	t.Helper()
	b := &bench{Rig: s.New(t), call: connector.Call{
		Key: "connectortest-key-1", OnBehalfOf: "alice@example.com", Agent: "connectortest",
		ApprovedBy: []string{"bob@example.com", "carol@example.com"}, PreviewID: "pv_connectortest",
	}}
	link, err := trial.NewLink(trial.Upstream{Address: b.Address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	b.link = link
	b.conn = b.At(t, b.link.Address())
	b.able = b.conn.Describe().Able
	plan, _ := b.prepare(t)
	b.plan = stored(t, plan)
	return b
}

func (b *bench) prepare(t *testing.T) (connector.Plan, connector.Impact) {
	t.Helper()
	plan, impact, err := b.conn.Prepare(t.Context(), b.Actor, b.Action, b.Input)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return plan, impact
}

// execute sends within patience.
func (b *bench) execute(t *testing.T) (connector.Receipt, error) {
	t.Helper()
	return b.executeFor(t, patience)
}

func (b *bench) executeFor(t *testing.T, length time.Duration) (connector.Receipt, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	began := time.Now()
	receipt, err := b.conn.Execute(ctx, b.plan, b.call)
	if took := time.Since(began); took > length+patience/2 {
		t.Errorf("Execute took %v under a deadline of %v", took, length)
	}
	return receipt, err
}

func (b *bench) wantEffects(t *testing.T, want int) {
	t.Helper()
	if got := b.Effects(b.call.Key); got != want {
		t.Errorf("the target counted %d effects, want %d", got, want)
	}
}

// wantClass holds an error up against the classes that are right.
func wantClass(t *testing.T, err error, right ...connector.Class) {
	t.Helper()
	got := connector.Classify(err)
	for _, c := range right {
		if got == c {
			return
		}
	}
	t.Errorf("got class %q (%v), want one of %q", got, err, right)
}

// wantSettled looks the outcome up, where the target can, and wants the truth.
func (b *bench) wantSettled(t *testing.T, effects int) {
	t.Helper()
	finding, err := b.conn.Lookup(t.Context(), b.plan, b.call)
	want := connector.EffectAbsent
	if effects > 0 {
		want = connector.EffectFound
	}
	if !b.able.Lookup {
		want = connector.EffectUnsure
	}
	if got := settled(finding, err); got != want {
		t.Errorf("the look-up says %q (%v), want %q", got, err, want)
	}
}

// settled is what a look-up's answer counts as.
func settled(f connector.Finding, err error) connector.Found {
	if err != nil {
		return connector.EffectUnsure
	}
	return f.Found
}

// stored is a value after a trip through the store.
func stored[T any](t *testing.T, v T) T {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("storing: %v", err)
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("reading back: %v", err)
	}
	return out
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
