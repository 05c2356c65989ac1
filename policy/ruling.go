package policy

import (
	"strconv"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
)

// Verdict is what the policy says of a preview.
type Verdict string

// The verdicts, from mild to strict.
const (
	Allow   Verdict = "allow"
	Require Verdict = "require"
	Deny    Verdict = "deny"
)

// RiskHigh marks a change that is decided with more care.
const RiskHigh = "high"

// Ruling is a verdict with its reasons. It is stored with the preview, so its JSON names are part of the schema.
type Ruling struct {
	Verdict Verdict `json:"verdict"`
	// Rule is the name of the deciding rule; Version names the exact policy text (sha256 of its canonical form).
	Rule    string `json:"rule"`
	Version string `json:"version"`
	// Texts are the rule's own words by language ("en", "ja"); empty means the catalogue's general words.
	Texts map[string]string `json:"texts,omitempty"`
	// Needs is an AND of groups; empty unless Verdict is Require.
	Needs Requirement `json:"needs,omitempty"`
	// Confirm says that the requester's own human may confirm the change instead of people, who are then not asked: Verdict is
	// Require and Needs is empty. It is never a vote.
	Confirm bool `json:"confirm,omitempty"`
	// Abstain says that a rejection takes one person away instead of ending the change.
	Abstain bool `json:"abstain,omitempty"`
	// Risk is RiskHigh where any rule that is met says so: decisions then need a fresh sign-in and a typed confirmation.
	Risk     string              `json:"risk,omitempty"`
	Warnings []connector.Warning `json:"warnings,omitempty"`
	// Saw are the values that the deciding rule compared, as text, for the approver and the audit.
	Saw map[string]string `json:"saw,omitempty"`
	// Charges are what the change takes from declared caps when it is approved; Exceeded is the cap that had no room for it.
	Charges  []Charge  `json:"charges,omitempty"`
	Exceeded *Exceeded `json:"exceeded,omitempty"`
}

// Requirement is an AND of seats to fill.
type Requirement []Seats

// Seats asks for Count distinct people, each in at least one of the groups.
type Seats struct {
	AnyOf []string `json:"any_of"`
	Count int      `json:"count"`
}

// Facts are all that a policy may look at. Nothing in a request can name its own rule.
type Facts struct {
	Action    string
	Input     connector.Input
	Plan      connector.Plan
	Impact    connector.Impact
	Requester actor.Actor
	// Now is the database's time. Rules about time fail closed without it; see Policy.UsesTime.
	Now time.Time
	// Exposure are the totals of the caps that count the change. Rules about them fail closed without; see Policy.UsesExposure.
	Exposure []Exposure
}

// String writes the requirement for people: "1 × ads-approvers, 2 × finance / legal".
func (r Requirement) String() string {
	parts := make([]string, 0, len(r))
	for _, seats := range r {
		parts = append(parts, strconv.Itoa(seats.Count)+" × "+strings.Join(seats.AnyOf, " / "))
	}
	return strings.Join(parts, ", ")
}
