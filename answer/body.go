// Package answer says what a change, or a refusal, reads like: one body for the JSON API, the MCP tools and the console, in
// the reader's language.
//
// It decides nothing. It turns the services' results into one shape (docs/errors.md): a status, one plain sentence, the next
// step with the literal tool name, and a code exactly when the call did not do what was asked. Start at Writer.Change and
// Writer.Fault.
package answer

import (
	"time"
)

// Body is what every call about a change answers. Code is set exactly when the answer is an error.
type Body struct {
	Status        string         `json:"status,omitempty"`
	Code          string         `json:"code,omitempty"`
	Kind          string         `json:"kind,omitempty"`
	Message       string         `json:"message"`
	Next          string         `json:"next"`
	NextTool      string         `json:"next_tool,omitempty"`
	NextArguments map[string]any `json:"next_arguments,omitempty"`
	RetryAfterS   int            `json:"retry_after_s,omitempty"`
	Retryable     *bool          `json:"retryable,omitempty"`
	Fields        []Field        `json:"fields,omitempty"`
	// Data is extra structure of a refusal (the change that holds the target, say).
	Data      map[string]any `json:"data,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
	PreviewID string         `json:"preview_id,omitempty"`
	Replayed  bool           `json:"replayed,omitempty"`
	Change    *Change        `json:"change,omitempty"`
}

// Field is one wrong place of an input.
type Field struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Change is a change as it stands. The fields from Digest on are there in the detailed format only.
type Change struct {
	PreviewID string    `json:"preview_id"`
	Action    string    `json:"action"`
	Status    string    `json:"status"`
	Target    Target    `json:"target"`
	Changes   []Row     `json:"changes"`
	Summary   string    `json:"summary"`
	Warnings  []Warning `json:"warnings"`
	// ExpiresAt is when the present status ends by its clock, absent where no clock runs.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Approval  *Approval  `json:"approval,omitempty"`
	Outcome   *Outcome   `json:"outcome,omitempty"`

	Digest        string         `json:"digest,omitempty"`
	ActionVersion int            `json:"action_version,omitempty"`
	CreatedAt     *time.Time     `json:"created_at,omitempty"`
	RequestedBy   *Requester     `json:"requested_by,omitempty"`
	Input         map[string]any `json:"input,omitempty"`
	Figures       []Figure       `json:"figures,omitempty"`
	Reversible    *bool          `json:"reversible,omitempty"`
	Reversal      string         `json:"reversal,omitempty"`
	Ruling        *Ruling        `json:"ruling,omitempty"`
	Reverts       string         `json:"reverts,omitempty"`
	Request       *Request       `json:"request,omitempty"`
	Attempts      []Attempt      `json:"attempts,omitempty"`
	Events        []Event        `json:"events,omitempty"`
	// Exposure is of an open change that caps count, and of one moment: caps are kept where a change is approved.
	Exposure []Exposure `json:"exposure,omitempty"`
}

// Target is the one thing changed. Name has its hidden characters made visible.
type Target struct {
	System string `json:"system"`
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	Name   string `json:"name"`
}

// Row is one field before and after.
type Row struct {
	Field  string `json:"field"`
	Label  string `json:"label"`
	Before *Value `json:"before"`
	After  *Value `json:"after"`
	// Sensitive says that the values are secret or personal, and Changed, which is there only then, whether they differ.
	Sensitive bool  `json:"sensitive,omitempty"`
	Changed   *bool `json:"changed,omitempty"`
}

// Value is an amount (decimal string and ISO 4217 code) or a text; null where the value is not known.
type Value struct {
	Amount   string `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
	Text     string `json:"text,omitempty"`
	// Shown is the value as people read it.
	Shown string `json:"shown"`
	// Masked says that there is a value and that it is hidden: Shown stands for it and tells nothing of it.
	Masked bool `json:"masked,omitempty"`
}

// Figure is one number of the impact.
type Figure struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Shown string `json:"shown"`
	Value any    `json:"value"`
}

// Warning is something unusual.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Requester is who asked, and for whom.
type Requester struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}

// Ruling is what the policy said.
type Ruling struct {
	Verdict       string `json:"verdict"`
	Rule          string `json:"rule"`
	PolicyVersion string `json:"policy_version"`
	// Risk is "high" where whoever approves must have signed in lately, and writes out the target's name.
	Risk string            `json:"risk,omitempty"`
	Saw  map[string]string `json:"saw,omitempty"`
}

// Approval is who must approve, and who has said what.
type Approval struct {
	Needs         []Seats `json:"needs"`
	Votes         []Vote  `json:"votes"`
	Justification string  `json:"justification,omitempty"`
	EndedBy       string  `json:"ended_by,omitempty"`
	EndReason     string  `json:"end_reason,omitempty"`
	// Confirm says that the requester's own person confirms, instead of people who vote; Confirmed that they have.
	Confirm   bool       `json:"confirm,omitempty"`
	Confirmed *Confirmed `json:"confirmed,omitempty"`
}

// Confirmed is the word of the person that a change was asked by or for.
type Confirmed struct {
	Name   string    `json:"name"`
	At     time.Time `json:"at"`
	Digest string    `json:"digest"`
}

// Seats asks for count people, each in one of the groups.
type Seats struct {
	AnyOf []string `json:"any_of"`
	Count int      `json:"count"`
}

// Vote is one person's decision.
type Vote struct {
	Name    string    `json:"name"`
	Approve bool      `json:"approve"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
	Digest  string    `json:"digest"`
	// Removed says that the vote counts no more, because its author was removed as an approver.
	Removed bool `json:"removed,omitempty"`
}

// Outcome is what is known of the effect.
type Outcome struct {
	Effect        string     `json:"effect"`
	Reason        string     `json:"reason,omitempty"`
	Evidence      string     `json:"evidence,omitempty"`
	Contradicted  bool       `json:"contradicted,omitempty"`
	Columns       []Column   `json:"columns,omitempty"`
	TargetSays    string     `json:"target_says,omitempty"`
	ResolvedBy    string     `json:"resolved_by,omitempty"`
	ResolvedWhy   string     `json:"resolved_why,omitempty"`
	NeedsOperator bool       `json:"needs_operator,omitempty"`
	NextProbeAt   *time.Time `json:"next_probe_at,omitempty"`
	SettlesAt     *time.Time `json:"settles_at,omitempty"`
	// Resolvers is there where more than one operator must say the same; Statement is the one that waits for another's.
	Resolvers int        `json:"resolvers,omitempty"`
	Statement *Statement `json:"statement,omitempty"`

	// The rest is there in the detailed format only; Key for people who review.
	Details    map[string]any `json:"details,omitempty"`
	Statements []Statement    `json:"statements,omitempty"`
	Key        string         `json:"key,omitempty"`
	StartedAt  *time.Time     `json:"started_at,omitempty"`
	LeaseUntil *time.Time     `json:"lease_until,omitempty"`
	Probes     int            `json:"probes,omitempty"`
}

// Statement is what one operator has said of an outcome. Until is when it no longer waits for another's.
type Statement struct {
	Name     string     `json:"name"`
	Outcome  string     `json:"outcome"`
	Reason   string     `json:"reason"`
	Evidence string     `json:"evidence"`
	At       time.Time  `json:"at"`
	Until    *time.Time `json:"until,omitempty"`
}

// Column is a field at preview, now, and as requested.
type Column struct {
	Field     string `json:"field"`
	Label     string `json:"label"`
	AtPreview *Value `json:"at_preview"`
	Now       *Value `json:"now"`
	Requested *Value `json:"requested"`
	// Shows is there where the values are masked: at_preview, requested, other or unknown is what the field is now.
	Shows string `json:"shows,omitempty"`
}

// Request is exactly what is sent, but for credentials and the key header.
type Request struct {
	Method       string `json:"method"`
	Path         string `json:"path"`
	Body         string `json:"body"`
	Precondition string `json:"precondition,omitempty"`
}

// Attempt is one outward call.
type Attempt struct {
	ID         string         `json:"id"`
	Kind       string         `json:"kind"`
	StartedAt  time.Time      `json:"started_at"`
	FinishedAt *time.Time     `json:"finished_at,omitempty"`
	Result     string         `json:"result,omitempty"`
	Evidence   map[string]any `json:"evidence,omitempty"`
}

// Event is one entry of the audit chain. Hash covers all of it and the event before.
type Event struct {
	Seq   int64     `json:"seq"`
	Kind  string    `json:"kind"`
	Actor string    `json:"actor"`
	At    time.Time `json:"at"`
	Body  string    `json:"body"`
	Hash  string    `json:"hash"`
}

// Why is the explanation of a change's status.
type Why struct {
	PreviewID string     `json:"preview_id"`
	Status    string     `json:"status"`
	Message   string     `json:"message"`
	Mover     string     `json:"mover"`
	Since     time.Time  `json:"since"`
	Until     *time.Time `json:"until,omitempty"`
	WaitsFor  string     `json:"waits_for,omitempty"`
	// Behind are the changes that wait for this one to let go of their target, for people who review.
	Behind []string `json:"behind,omitempty"`
	// Missing is who must still approve.
	Missing  []Seats    `json:"missing,omitempty"`
	Next     string     `json:"next"`
	NextTool string     `json:"next_tool,omitempty"`
	Approval *Approval  `json:"approval,omitempty"`
	Outcome  *Outcome   `json:"outcome,omitempty"`
	Exposure []Exposure `json:"exposure,omitempty"`
}

// Found is one page of a find tool.
type Found struct {
	Message    string           `json:"message"`
	Items      []map[string]any `json:"items"`
	NextCursor string           `json:"next_cursor,omitempty"`
	Total      *int             `json:"total,omitempty"`
	Warnings   []string         `json:"warnings,omitempty"`
	Next       string           `json:"next"`
}
