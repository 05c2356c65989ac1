package preview

import (
	"time"

	"github.com/cutonce/cutonce/internal/actor"
)

// Removal says that a person was removed as an approver: they decide nothing in this tenant, and what they have approved or confirmed does
// not count, whatever groups their token names. It is stored, so its JSON names are part of the schema.
type Removal struct {
	// Person is the subject, whichever issuer and spelling: see actor.SamePerson.
	Person string    `json:"person"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// RemovalOf finds the removal of a person, nil if they were not removed.
func (p Preview) RemovalOf(person string) *Removal {
	for _, r := range p.Removed {
		if actor.SamePerson(r.Person, person) {
			return &r
		}
	}
	return nil
}

// Counts reports whether a vote is one of the present round, on what is stored, by somebody who was not removed.
func (p Preview) Counts(v Vote) bool {
	return v.Round == p.Round && v.Digest == p.Digest && p.RemovalOf(v.Person) == nil
}

// Lost are the names of those whose approval of the present round counts no more.
func (p Preview) Lost() []string {
	var names []string
	for _, v := range p.Votes {
		if v.Round == p.Round && v.Approve && !p.Counts(v) {
			names = append(names, v.Name)
		}
	}
	if p.Confirmed != nil && p.RemovalOf(p.Confirmed.Person) != nil {
		names = append(names, p.Confirmed.Name)
	}
	return names
}
