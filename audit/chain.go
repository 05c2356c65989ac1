package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// closeChain checks the chain that was read: link by link, then against the seals, then against the end that its own record tells.
func (v *verification) closeChain() {
	if !v.open {
		return
	}
	covers := v.leaves[v.at]
	delete(v.leaves, v.at)
	v.count()
	v.checkPlace()
	v.noteRetirements(covers)
	last := v.checkLinks(covers)
	sealed := v.checkSealed(covers, last)
	v.checkHead(max(sealed, last.Seq), last)
	v.countUnsealed(sealed)
	v.open, v.links, v.head = false, v.links[:0], nil
}

func (v *verification) count() {
	if v.at.control {
		v.report.ControlEvents += int64(len(v.links))
		for _, l := range v.links {
			if l.Kind == "restore_declared" {
				v.report.Restores++
			}
		}
		return
	}
	v.report.Previews++
	v.report.Events += int64(len(v.links))
}

// checkPlace notices a chain that was there before. Without this, its second copy would count as not sealed yet.
func (v *verification) checkPlace() {
	switch {
	case len(v.links) == 0:
	case v.at.control:
		if v.scopes[v.at.scope] {
			v.wrong(0, "its chain is there twice")
		}
		v.scopes[v.at.scope] = true
	default:
		if v.report.Previews > 1 && bytes.Compare(v.at.chain[:], v.before[:]) <= 0 {
			v.wrong(0, "its chain stands out of order, or twice")
		}
		v.before = v.at.chain
	}
}

func (v *verification) wrong(seq int64, format string, args ...any) {
	v.found(v.place(v.at, seq, fmt.Sprintf(format, args...)))
}

func (v *verification) place(n name, seq int64, what string) Finding {
	f := Finding{Seq: seq, What: what, Control: n.control, Scope: n.scope}
	if !n.control {
		f.Preview = v.Name(n.chain)
	}
	return f
}

// checkLinks recomputes every hash and returns the last event. After a break it goes on from what stands there, so that each
// tampered event is named and those behind it are not.
func (v *verification) checkLinks(covers []cover) Event {
	for i, l := range v.links[min(1, len(v.links)):] {
		if before := v.links[i]; l.Seq < before.Seq {
			v.wrong(l.Seq, "it stands behind event %d", before.Seq)
		}
	}
	slices.SortStableFunc(v.links, func(a, b link) int { return cmp.Compare(a.Seq, b.Seq) })
	var last Event
	head := Genesis[:]
	for _, l := range v.links {
		sum := l.Sum(head)
		switch {
		case l.Seq <= last.Seq:
			v.wrong(l.Seq, "it is there twice: one was put in")
			continue
		case l.Seq > last.Seq+1:
			v.wrong(last.Seq+1, "%s", missing("event", last.Seq+1, l.Seq-1))
		case last.Seq != 0 && l.Tenant != last.Tenant:
			v.wrong(l.Seq, "it belongs to another tenant than the events before it")
		case !bytes.Equal(sum[:], l.Hash):
			v.wrong(l.Seq, "it, or the hash of the event before it, was altered: its own hash does not cover both")
		}
		for _, c := range covers {
			if c.seq == l.Seq && !bytes.Equal(c.head[:], l.Hash) {
				v.wrong(l.Seq, "it is not the event that seal %d covers", c.seal)
				break // later seals cover the same
			}
		}
		last, head = l.Event, l.Hash
	}
	return last
}

// checkSealed notices what is missing at the end, and returns the last event that a seal covers.
func (v *verification) checkSealed(covers []cover, last Event) (sealed int64) {
	var by int64
	for _, c := range covers {
		if c.seq > sealed {
			sealed, by = c.seq, c.seal
		}
	}
	if sealed > last.Seq {
		v.wrong(last.Seq+1, "%s: seal %d covers event %d", missing("event", last.Seq+1, sealed), by, sealed)
	}
	return sealed
}

// checkHead compares the chain with the end that its own record tells. Up to known, what is missing has been said.
func (v *verification) checkHead(known int64, last Event) {
	switch {
	case v.head == nil && !v.at.control:
		v.wrong(0, "its events are there and its record is not")
	case v.head == nil:
		v.wrong(0, "its control is not there")
	case v.head.Seq > known:
		v.wrong(known+1, "%s: its record ends at event %d", missing("event", known+1, v.head.Seq), v.head.Seq)
	case v.head.Seq < last.Seq:
		for seq := v.head.Seq + 1; seq <= last.Seq; seq++ {
			v.wrong(seq, "it was appended: its record ends at event %d", v.head.Seq)
		}
	case v.head.Seq == last.Seq && !bytes.Equal(v.head.Head, last.Hash):
		v.wrong(last.Seq, "its record ends with another hash")
	}
}

// countUnsealed counts what no seal covers, which only the numbers that are hashed decide. The transaction of an event is not hashed:
// it can convict, where it lies before what the last seal covers, and never acquits.
func (v *verification) countUnsealed(sealed int64) {
	s := v.report.Last
	for _, l := range v.links {
		if l.Seq <= sealed {
			continue
		}
		if s != nil && s.Window == 1 && s.CaughtUp && l.xid < s.To {
			v.wrong(l.Seq, "it was put in behind seal %d, which covers all of its time", s.Number)
		}
		if s != nil && l.At.Before(s.At) {
			v.report.Overdue++
		}
		v.report.Unsealed++
		if !v.at.control && len(v.report.UnsealedNamed) < mostNamed {
			v.report.UnsealedNamed = append(v.report.UnsealedNamed, Place{Preview: v.Name(v.at.chain), Seq: l.Seq})
		}
	}
}

// finish says what only the end of the file tells.
func (v *verification) finish() (Report, error) {
	if v.lines == 0 {
		return Report{}, fmt.Errorf("the file is empty")
	}
	v.closeSeal()
	v.closeChain()
	if !v.ended {
		v.found(Finding{What: "the export ends early: it was cut off"})
	}
	if w := v.Witness; w != nil {
		v.checkWitness(*w)
	}
	v.checkBatches()
	gone := make([]name, 0, len(v.leaves))
	for n := range v.leaves {
		gone = append(gone, n)
	}
	slices.SortFunc(gone, func(a, b name) int {
		return cmp.Or(bytes.Compare(a.chain[:], b.chain[:]), cmp.Compare(a.scope, b.scope))
	})
	for _, n := range gone {
		last := v.leaves[n][len(v.leaves[n])-1]
		v.found(v.place(n, last.seq, fmt.Sprintf("all of it is gone: seal %d covers it up to event %d", last.seal, last.seq)))
	}
	return v.report, nil
}

func (v *verification) checkWitness(w Seal) {
	if err := v.Keys.Check(w); err != nil {
		v.found(Finding{What: fmt.Sprintf("the witness: %v", err)})
		return
	}
	last := int64(0)
	if v.report.Last != nil {
		last = v.report.Last.Number
	}
	if w.Number > last {
		v.found(Finding{Seal: last + 1, What: missing("seal", last+1, w.Number) + ": the witness has seen them; the database was cut " +
			"short, or restored from a backup"})
	}
}
