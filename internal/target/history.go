package target

import (
	"fmt"
	"net/http"
	"time"
)

// Source says through which door a change came.
type Source string

// The sources.
const (
	SourceAPI     Source = "api"
	SourceConsole Source = "console" // someone else, outside the API
)

// Entry is one change in the platform's own log.
type Entry struct {
	ChangeID   string
	At         time.Time
	Resource   string
	Before     string
	After      string
	Unit       string // the currency of an amount
	ETag       string // of the resource after the change
	Key        string
	OnBehalfOf string // the human, as the caller named them
	ApprovedBy string
	Agent      string
	Source     Source
}

// note completes an entry, appends it to the log and counts it as an effect. The caller holds mu and has just made
// the change.
func (p *Platform) note(e Entry) Entry {
	e.ChangeID = fmt.Sprintf("chg-%06d", len(p.history)+1)
	e.At = p.clock().UTC()
	p.history = append(p.history, e)
	if e.Source == SourceAPI {
		p.byKey[e.Key] = append(p.byKey[e.Key], len(p.history)-1)
		p.counts.add(e.Key, e.Resource, Tally{Effects: 1})
		p.mark(StageEffect, call{op: OpChange, resource: e.Resource, key: e.Key})
	}
	p.logger.Info("effect", "change", e.ChangeID, "resource", e.Resource, "before", e.Before, "after", e.After,
		"key", e.Key, "on_behalf_of", e.OnBehalfOf, "source", e.Source)
	return e
}

// Entries are the whole log, oldest first.
func (p *Platform) Entries() []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Entry{}, p.history...)
}

// changesOf are the entries that a request key made. The caller holds mu.
func (p *Platform) changesOf(key string) []Entry {
	found := []Entry{}
	for _, i := range p.byKey[key] {
		found = append(found, p.history[i])
	}
	return found
}

// whoOf reads the headers that name the people and the agent behind a change.
func whoOf(r *http.Request) Entry {
	return Entry{
		Key:        r.Header.Get("Idempotency-Key"),
		OnBehalfOf: r.Header.Get("X-On-Behalf-Of"),
		ApprovedBy: r.Header.Get("X-Approved-By"),
		Agent:      r.Header.Get("X-Agent"),
		Source:     SourceAPI,
	}
}
