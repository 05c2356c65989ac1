// Package connector is the port between cutonce and the systems that it changes.
//
// A Connector reads, plans, executes and looks up at one target system with the service's own credentials. It owes exact
// classification: it must prove "nothing left" (NotSent) or "the target refused" (Rejected, Drifted); every other error of
// Execute is an unknown outcome. It never retries, never stores anything, and never decides whether a change may happen.
//
// To wrap an action of your own, implement Connector and pass it to NewRegistry; connectortest proves the classification.
package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
)

// Connector is one target system. All methods may be called concurrently.
type Connector interface {
	// Describe says what the connector offers. It is read once, at start.
	Describe() Description

	// Authorize asks the target's or the company's own permission system whether the human behind the call may do this.
	// It is asked at prepare and again at apply. An error denies (with target_unavailable).
	Authorize(ctx context.Context, who actor.Actor, verb Verb, target Target) (Permission, error)

	// Find runs one of the read-only tools.
	Find(ctx context.Context, who actor.Actor, tool string, input Input) (Page, error)

	// Prepare reads the target and computes what the change would do. It must not change anything, and the same input
	// against the same target state must give the same Plan and Impact. Business refusals are faults. Once the target was
	// read, Plan.Target is set even beside a fault: the service asks Authorize about it before it shows what the fault says.
	Prepare(ctx context.Context, who actor.Actor, action string, input Input) (Plan, Impact, error)

	// Read reads the target now, for the drift check.
	Read(ctx context.Context, target Target) (Reading, error)

	// Execute sends exactly plan.Request once. A nil error means that the target confirmed the effect. See Classify for
	// what the errors mean.
	Execute(ctx context.Context, plan Plan, call Call) (Receipt, error)

	// Lookup asks whether the effect marked with call.Key is there. Found and Absent need our own mark at the target;
	// comparing values is Unsure. An error counts as Unsure.
	Lookup(ctx context.Context, plan Plan, call Call) (Finding, error)
}

// Reverser is implemented by connectors whose changes can be undone: it returns the input of the new preview that would
// put the target back to plan's before.
type Reverser interface {
	Reverse(action string, plan Plan) (map[string]any, error)
}

// Description is what a connector offers.
type Description struct {
	// System names the target system: host and account, so that two connectors to one system share target locks.
	System  string
	Actions []Action
	Finds   []Find
	Able    Capabilities
	// Texts holds en.json and ja.json with every key that this connector uses.
	Texts fs.FS
}

// Capabilities say what the target can do for an outcome that is unknown. Claiming too much here breaks the promise;
// connectortest checks what it can.
type Capabilities struct {
	// Lookup: an effect can be found by our key, and a look-up is consistent with earlier writes (after SettleFor), so that
	// "absent" proves something.
	Lookup bool
	// Replay: the target remembers idempotency keys for ReplayFor after the first send, and answers the same key with the
	// first answer.
	Replay    bool
	ReplayFor time.Duration
	// Precondition: the target refuses a request whose version is not the current one.
	Precondition bool
	// SettleFor is how long after a send "absent" proves nothing.
	SettleFor time.Duration
	// Sandbox: the target may be changed by tests.
	Sandbox bool
}

// Action is a kind of change that agents may ask for. Name, texts, schema and meaning are one contract under Version.
type Action struct {
	// Name gives the tools their names: NAME_preview and NAME_apply. Its texts are action.NAME.title, .preview and .apply.
	Name    string
	Version int
	// Scopes are what preview and apply need; ReadScopes are what the first challenge asks for.
	Scopes, ReadScopes []string
	// Input is a closed JSON Schema (draft 2020-12, additionalProperties false) with absolute values only.
	Input json.RawMessage
	// Clocks override the service's defaults where they are not zero.
	Clocks Clocks
	// ResolveBy is how many operators must say the same before their word settles an outcome that no look-up could: one (also
	// where it is zero) or two.
	ResolveBy int
}

// Find is a read-only tool. Its texts are find.NAME.title and .description.
type Find struct {
	Name   string
	Scopes []string
	Input  json.RawMessage
	// Item is the JSON Schema of one found item.
	Item json.RawMessage
}

// Clocks are the durations of a change's life (docs/configuration.md, Clocks). The database's clock applies them.
type Clocks struct {
	PreviewTTL  time.Duration `json:"preview_ttl,omitempty"`
	ApprovalFor time.Duration `json:"approval_for,omitempty"`
	ApplyWindow time.Duration `json:"apply_window,omitempty"`
	SendFor     time.Duration `json:"send_for,omitempty"`
	LeaseFor    time.Duration `json:"lease_for,omitempty"`
	SettleFor   time.Duration `json:"settle_for,omitempty"`
}

// DefaultClocks are the documented defaults.
func DefaultClocks() Clocks {
	return Clocks{
		PreviewTTL:  10 * time.Minute,
		ApprovalFor: 24 * time.Hour,
		ApplyWindow: 30 * time.Minute,
		SendFor:     15 * time.Second,
		LeaseFor:    30 * time.Second,
		SettleFor:   60 * time.Second,
	}
}

// Or fills what is zero from the defaults.
func (c Clocks) Or(d Clocks) Clocks {
	for _, p := range []struct {
		have *time.Duration
		want time.Duration
	}{
		{&c.PreviewTTL, d.PreviewTTL}, {&c.ApprovalFor, d.ApprovalFor}, {&c.ApplyWindow, d.ApplyWindow},
		{&c.SendFor, d.SendFor}, {&c.LeaseFor, d.LeaseFor}, {&c.SettleFor, d.SettleFor},
	} {
		if *p.have == 0 {
			*p.have = p.want
		}
	}
	return c
}

// Input is a validated tool input: decoded JSON with numbers as json.Number.
type Input map[string]any

// UnmarshalJSON keeps stored numbers exact.
func (in *Input) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(in))
}

// Text returns a string field, empty if absent.
func (in Input) Text(name string) string {
	s, _ := in[name].(string)
	return s
}

// Verb is what a caller wants to do with a target.
type Verb string

// The verbs of Authorize.
const (
	VerbPrepare Verb = "prepare"
	VerbApply   Verb = "apply"
)

// Permission is the answer of the target's own permission system.
type Permission struct {
	Allowed bool
	// Reason is the system's own words, shown with hidden characters made visible.
	Reason string
}

// Call is what the target is told about one send or look-up.
type Call struct {
	// Key is the idempotency key: constant for the life of a preview's item.
	Key string
	// OnBehalfOf is the human behind the change, as the target's log shall name them.
	OnBehalfOf string
	// Agent is the calling agent's name, if it was one.
	Agent string
	// ApprovedBy names the people whose approval this rests on.
	ApprovedBy []string
	// PreviewID is for the target's log.
	PreviewID string
}

// Receipt is what the target answered to a confirmed effect. Evidence is stored and shown to operators: no secrets.
type Receipt struct {
	Evidence map[string]any
	// Version is the target's version after the effect, empty if the target has none.
	Version string
}

// Reading is the target as it is now.
type Reading struct {
	Target  Target
	Version string
	Values  map[string]Value
}

// Found says what a look-up proved.
type Found string

// What a look-up can prove.
const (
	EffectFound  Found = "found"
	EffectAbsent Found = "absent"
	EffectUnsure Found = "unsure"
)

// Finding is the answer of a look-up, with the values of the target now where it could be read.
type Finding struct {
	Found    Found
	Evidence map[string]any
	Now      map[string]Value
}

// Page is one page of found items.
type Page struct {
	Items      []map[string]any
	NextCursor string
	// Total is the number of all matches, -1 if unknown.
	Total int
	// Warnings tell the agent about look-alikes among the items.
	Warnings []Message
}
