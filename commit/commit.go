// Package commit applies an approved preview exactly once and settles what is not known.
//
// The promise: for each preview's item there is at most one effect at the target, one durable answer, and never a guess. The
// claim is durable before the first byte leaves; a lapsed lease reads as unknown; unknown is settled by evidence and never by
// a second effect. It does not promise that a change happens: a target may refuse, drift, or be silent until an operator
// says what they saw. Start at Service.Apply, then send.go (the one place where something leaves), reconcile.go and
// resolve.go.
package commit

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/preview"
)

// Change is a preview with all that happened to it, read at one moment of the database's clock.
type Change struct {
	Preview    preview.Preview
	Executions []Execution
	Attempts   []Attempt
	Events     []Event
	Status     Status
	Now        time.Time
	// Replayed is set on the answer to an apply of what an earlier call had claimed.
	Replayed bool
	// Hold is set on a change from before a restore, until the target was asked about it.
	Hold *Hold
	// Exposure is what the caps that count an open change come to beside it, where it was read in detail.
	Exposure []preview.Exposure
}

// Execution is the one claim of a preview's item.
type Execution struct {
	Item           int
	State          State
	TargetKey      string
	CurrentAttempt uuid.UUID
	ClaimedBy      string
	StartedAt      time.Time
	LeaseUntil     time.Time
	// SettleAt is when "absent" begins to prove something: lease end + send deadline + settle time.
	SettleAt      time.Time
	FinishedAt    time.Time
	Reason        Reason
	Evidence      Evidence
	Detail        map[string]any
	Contradicted  bool
	Probes        int
	NextProbeAt   time.Time
	NeedsOperator bool
	ResolvedBy    string
	ResolvedWhy   string
	// Resolvers is how many operators must say the same; Statements is what they have said, where it is more than one.
	Resolvers  int
	Statements []Statement
	// Key is the idempotency key under which the target knows this item. It is set for people who review, in detail.
	Key string
}

// StateAt is the state as every reader must see it: applying whose lease has lapsed is unknown.
func (e Execution) StateAt(now time.Time) State {
	if e.State == Applying && !now.Before(e.LeaseUntil) {
		return Unknown
	}
	return e.State
}

// AttemptKind is what an attempt said to the target.
type AttemptKind string

// The kinds of attempt.
const (
	Send   AttemptKind = "send"
	Lookup AttemptKind = "lookup"
	Replay AttemptKind = "replay"
)

// Attempt is one outward call of an execution. Its ID, chosen before the call, is the fence of every write-back.
type Attempt struct {
	ID         uuid.UUID      `json:"id"`
	Item       int            `json:"item"`
	Kind       AttemptKind    `json:"kind"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt *time.Time     `json:"finished_at"`
	Result     string         `json:"result"`
	Evidence   map[string]any `json:"evidence"`
}

// Event is one entry of a preview's audit chain.
type Event struct {
	Seq   int64     `json:"seq"`
	Kind  string    `json:"kind"`
	Actor string    `json:"actor"`
	At    time.Time `json:"at"`
	Body  string    `json:"body"`
	Hash  string    `json:"hash"`
}

// Epochs are what the authorisation of an apply rests on. The claim compares them again, inside its transaction.
type Epochs struct {
	Freeze, Policy, Approvers int64
	// PolicyVersion is the active policy; a process that has loaded another one must not claim.
	PolicyVersion string
	// Frozen says that nothing may be claimed: by FrozenBy, or by a restore.
	Frozen   bool
	FrozenBy *Freeze
	// Restoring says that the deployment is frozen because its database was restored from a backup.
	Restoring bool
}

// Key names one item of one preview.
type Key struct {
	Tenant string
	ID     preview.ID
	Item   int
}

// Due is an execution whose next probe is due.
type Due struct {
	Key
	Action string
}

// Claim asks for the right to send.
type Claim struct {
	Key
	Attempt uuid.UUID
	By      actor.Actor
	Digest  canon.Digest
	// Revision is the preview's, whose votes were counted.
	Revision int64
	// Version is the target's version that the plan was made at.
	Version string
	Epochs  Epochs
	Clocks  connector.Clocks
	// Resolvers is how many operators an unknown outcome of this action takes; zero means one.
	Resolvers int
}

// LeaseCheck is the last look at the lease, just before the write.
type LeaseCheck struct {
	// Left is how much of the lease the database says is left.
	Left time.Duration
	// Current is false when the attempt is no longer the execution's own: nothing may be sent.
	Current bool
	// ReplacedHere is true when the version just read is one that our own last change of this target replaced: the read is
	// stale.
	ReplacedHere bool
}

// Result is what one attempt proved, to be recorded.
type Result struct {
	Key
	Attempt uuid.UUID
	Kind    AttemptKind
	Class   connector.Class
	// Answered is set once the target has said something to the send.
	Answered bool
	// LookLater asks for later looks at an outcome that the target's answer settled as not applied: it may have answered a second
	// delivery of the same request.
	LookLater bool
	// Found is the proof of a look-up.
	Found    connector.Found
	Evidence map[string]any
	Reason   string
	// Why is the sentence for the caller of a send that never left, a key of the catalogue; empty for the general one.
	Why string
	// RetryIn schedules the next probe of an outcome that stays unknown; HandOver flags it for operators.
	RetryIn  time.Duration
	HandOver bool
}

// Recorded is what stands in the transaction that recorded a result: all of a change that a send can move.
type Recorded struct {
	State      preview.State
	Executions []Execution
	Now        time.Time
}

// The store's answers to a claim that are not a claim. They are not faults: the service decides what each means.
var (
	// ErrNotClaimed: the preview was not approved, or its clock had ended, or its digest differs. Read the status.
	ErrNotClaimed = errors.New("the preview was not there to be claimed")
	// ErrEpochsMoved: freeze, policy, approvers or votes changed since they were read. Authorise again.
	ErrEpochsMoved = errors.New("the authorisation is out of date")
	// ErrTargetBusy: another execution holds the target.
	ErrTargetBusy = errors.New("the target is held by another change")
	// ErrInDoubt: it is not known whether the commit happened. Confirm before sending.
	ErrInDoubt = errors.New("the commit is in doubt")
)

// Store keeps executions. Each method is one transaction.
type Store interface {
	// Load reads a change and the epochs in one round trip. It returns the fault not_found for an unknown ID.
	Load(ctx context.Context, tenant string, id preview.ID, detail bool) (Change, Epochs, error)
	// Exposure reads what the caps of an open change come to, but for the change itself.
	Exposure(ctx context.Context, tenant string, apart preview.ID, charges []preview.Charge) ([]preview.Exposure, error)
	// RecallChange is a change that nobody had claimed when this process saw it last, with epochs that are no younger. It asks
	// nobody, and any part of it may be out of date: go by it only to a claim, which compares all of it.
	RecallChange(tenant string, id preview.ID) (c Change, e Epochs, ok bool)
	// ClaimApproved claims an approved preview. Only ErrNotClaimed, ErrEpochsMoved, ErrTargetBusy and ErrInDoubt are
	// expected. A nil error means that the claim is durable.
	ClaimApproved(ctx context.Context, c Claim) error
	// ConfirmClaim is the second synchronous write after a doubtful commit, guarded on attempt and lease. ErrNotClaimed
	// means that the claim did not happen.
	ConfirmClaim(ctx context.Context, k Key, attempt uuid.UUID) error
	// CheckLease is the last look before the write.
	CheckLease(ctx context.Context, k Key, attempt uuid.UUID, readVersion string, settle time.Duration) (LeaseCheck, error)
	// RecordResult writes an attempt's result and what follows from it, with its audit event. It is idempotent. Proof of the
	// effect always counts, even late; proof that nothing left counts unless a replay may have caused the effect since; everything
	// else counts only for the attempt that is still current.
	// What stands then is returned with it.
	RecordResult(ctx context.Context, r Result) (Recorded, error)
	// SendBack returns an approved preview to needs_approval because the rules became stricter.
	SendBack(ctx context.Context, tenant string, id preview.ID, ruling preview.Ruling, liveFor time.Duration) (moved bool, err error)
	// HolderOf names the change of this tenant that holds a target, nil if there is none, and says whether its outcome is
	// unknown.
	HolderOf(ctx context.Context, tenant, targetKey string) (holder *preview.ID, unknown bool, err error)
	// Behind names approved changes of this tenant for the same target as this one's, the oldest first.
	Behind(ctx context.Context, tenant string, id preview.ID, limit int) ([]preview.ID, error)
	// MarkLapsed turns lapsed leases into unknown and lapsed deadlines into expired, at most limit of each, in a
	// transaction for either.
	MarkLapsed(ctx context.Context, limit int) (int, error)
	// NextProbes lists executions whose next probe is due, at most limit of each action.
	NextProbes(ctx context.Context, limit int) ([]Due, error)
	// BeginProbe makes a probe the current attempt of an unknown execution. An execution that was found not applied by a look-up
	// or by an operator may be looked at again too, and keeps its attempt: only proof of the effect moves it. ok is false when
	// another worker has it or it is settled. A replay puts off the moment from which "absent" proves something, to settleFor
	// after holdFor.
	BeginProbe(ctx context.Context, k Key, attempt uuid.UUID, kind AttemptKind, holdFor, settleFor time.Duration) (ok bool, err error)
	// Resolve records an operator's statement. moved is false if the state did not allow it, or if somebody has said something
	// since Resolution.Seen was read.
	Resolve(ctx context.Context, r Resolution) (moved bool, err error)
	// Revealed records that somebody is shown the values of sensitive fields, in the change's own chain. recorded is false for an
	// unknown ID. Nothing may be shown unless it is true.
	Revealed(ctx context.Context, tenant string, id preview.ID, by actor.Actor, fields []string) (recorded bool, err error)
	// List lists changes of a tenant, the newest first.
	List(ctx context.Context, f Filter) ([]Change, string, error)
}
