package audit

import (
	"fmt"
	"strings"
)

// Finding is one thing that is wrong, and where.
type Finding struct {
	// Preview is the public ID of the change, empty for a control chain, a seal or the file itself.
	Preview string
	// Scope names a control chain, where Control is set; empty is the deployment.
	Scope   string
	Control bool
	// Seq is the event and Seal the seal that is meant, zero for none.
	Seq, Seal int64
	What      string
}

// String says it in one line.
func (f Finding) String() string {
	var at []string
	switch {
	case f.Preview != "":
		at = append(at, f.Preview)
	case f.Control && f.Scope == "":
		at = append(at, "controls of the deployment")
	case f.Control:
		at = append(at, "controls of "+f.Scope)
	}
	if f.Seq != 0 {
		at = append(at, fmt.Sprintf("event %d", f.Seq))
	}
	if f.Seal != 0 && f.Seq == 0 {
		at = append(at, fmt.Sprintf("seal %d", f.Seal))
	}
	if len(at) == 0 {
		return f.What
	}
	return strings.Join(at, ", ") + ": " + f.What
}

// Place is one event.
type Place struct {
	Preview string
	Seq     int64
}

// mostNamed bounds how many unsealed events are named.
const mostNamed = 20

// Report is what a verification found.
type Report struct {
	Findings                                        []Finding
	Previews, Events, ControlEvents, Seals, Retired int64
	// Tenant and Since say that only a part was exported.
	Tenant string
	Since  bool
	// Hidden counts the leaves of a part's seals that do not say what they cover: what they stand for was not looked at.
	Hidden int64
	// Unsealed counts events that no seal covers yet; the first of them are named. Nobody has signed them: whoever can write to the
	// database, or to the file, can add or remove such events.
	Unsealed      int64
	UnsealedNamed []Place
	// Overdue counts those of the unsealed that are older, by their own hashed time, than the last seal. A transaction that is open for
	// long holds seals back; without one, they were put in, or their seals were taken away.
	Overdue int64
	// Last is the last seal, nil if there is none.
	Last *Seal
	// Restores tells of declared restores: events of the lost time are not in the file.
	Restores int64
}

// Part reports whether only a part was exported.
func (r Report) Part() bool { return r.Tenant != "" || r.Since }

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Findings) == 0 }
