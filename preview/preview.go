// Package preview holds the immutable record of one proposed change and its life until it is claimed.
//
// A Preview is what was shown, what is approved and what will be sent: one canonical document under one digest. Nothing in
// this package sends anything. Start at Service.Prepare and at the transition table in state.go.
package preview

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/policy"
)

// ID names a preview. It is a name, not an authority: every call checks tenant and caller again.
type ID uuid.UUID

var idText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const idPrefix = "pv_"

// NewID makes an ID: time-ordered so that a million of them index well, with 74 random bits.
func NewID() ID { return ID(uuid.Must(uuid.NewV7FromReader(rand.Reader))) }

// String is the public form, pv_ and 26 characters.
func (id ID) String() string { return idPrefix + idText.EncodeToString(id[:]) }

// UUID is the stored form.
func (id ID) UUID() uuid.UUID { return uuid.UUID(id) }

// MarshalText writes the public form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// ParseID reads the public form. ok is false for anything else; callers answer it as they answer an unknown ID.
func ParseID(text string) (id ID, ok bool) {
	encoded, found := strings.CutPrefix(text, idPrefix)
	if !found || len(encoded) != 26 {
		return ID{}, false
	}
	raw, err := idText.DecodeString(encoded)
	if err != nil || len(raw) != len(id) || idText.EncodeToString(raw) != encoded {
		return ID{}, false
	}
	copy(id[:], raw)
	return id, true
}

// Ruling is the policy's verdict stored with a preview.
type Ruling = policy.Ruling

// Requirement is who must approve, or who is still missing.
type Requirement = policy.Requirement

// Exposure is what the changes that a cap counts come to, beside one of them.
type Exposure = policy.Exposure

// Charge is what a change takes from a cap.
type Charge = policy.Charge

// Exceeded is a cap that has no room for a change; stores return it as an error.
type Exceeded = policy.Exceeded

// Preview is one proposed change. Everything but the fields under "life" is immutable from the moment it is stored; a
// trigger in Postgres refuses to change it.
type Preview struct {
	ID            ID
	Tenant        string
	Action        string
	ActionVersion int
	Requester     actor.Actor
	// Document is the canonical JSON that the digest covers; Plan, Impact and Input are read from it.
	Document []byte
	Digest   canon.Digest
	Content
	CreatedAt time.Time

	// Life.
	State    State
	Ruling   Ruling
	Deadline time.Time
	// Revision goes up with each decision; it is the compare-and-set of votes. Like epochs, it is never the same again after a restore.
	Revision int64
	// Round goes up each time the change is sent back for approval; votes count only in their round.
	Round         int
	Justification string
	RequestedAt   time.Time
	ApprovedAt    time.Time
	// EndedBy and EndReason tell who ended the change before it was claimed, and why.
	EndedBy   string
	EndReason string
	// Confirmed is the word of the requester's own person, where the ruling asks for that instead of people; nil if it was not given.
	Confirmed *Confirmation
	Votes     []Vote
	// Removed are the people of the tenant whose word counts no more, as of the same moment.
	Removed []Removal
	// SeenAt is the database's time when this was read or written, zero where nobody asked for it. It is not stored.
	SeenAt time.Time
}

// Content is what the document holds.
type Content struct {
	Input  connector.Input  `json:"input"`
	Plan   connector.Plan   `json:"plan"`
	Impact connector.Impact `json:"impact"`
	// Reverts is the preview that this one undoes, empty if none.
	Reverts string `json:"reverts,omitempty"`
}

// Confirmation is the word of the person that a change was asked by or for. It is no vote.
type Confirmation struct {
	Person string       `json:"person"`
	Name   string       `json:"name"`
	Digest canon.Digest `json:"digest"`
	Round  int          `json:"round"`
	At     time.Time    `json:"at"`
}

// Vote is one person's decision on one digest.
type Vote struct {
	Person string `json:"person"`
	Name   string `json:"name"`
	// Groups are the groups that the person held when deciding.
	Groups   []string     `json:"groups"`
	Approve  bool         `json:"approve"`
	Reason   string       `json:"reason"`
	Digest   canon.Digest `json:"digest"`
	Round    int          `json:"round"`
	At       time.Time    `json:"at"`
	RulingBy string       `json:"policy_version"`
}
