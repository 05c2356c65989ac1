package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"time"
)

// Verifier checks exports without the database.
type Verifier struct {
	// Keys are trusted.
	Keys Keys
	// Witness is the last seal that was seen outside the database, nil if there is none.
	Witness *Seal
	// Name gives a preview's public ID.
	Name func([16]byte) string
	// Part says that a part of the trail was asked for. Of a part it cannot be shown that nothing was left out, so that a file which
	// says that it is one is accepted only where one was asked for.
	Part bool
	// Now is the time of the verification, by which an export from the future is told; zero asks nothing.
	Now time.Time
}

// Verify checks an export. Its error is a file that is not an export, or is not readable; everything that is wrong with a
// readable one is in the report.
func (c Verifier) Verify(r io.Reader) (Report, error) {
	v := &verification{Verifier: c, leaves: map[name][]cover{}, batches: map[int64]*batch{}, scopes: map[string]bool{}}
	err := readLines(r, func(record Record) error {
		if err := v.take(record); err != nil {
			return err
		}
		v.lines++
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	return v.finish()
}

// name is a chain's: a preview's ID, or a control's scope.
type name struct {
	chain   [16]byte
	scope   string
	control bool
}

// cover is what one seal says of a chain.
type cover struct {
	seal int64
	seq  int64
	at   time.Time
	head [sha256.Size]byte
}

// verification goes through an export once. It remembers the leaves, and of each chain nothing once it is closed.
type verification struct {
	Verifier
	report Report
	lines  int64
	ended  bool

	// sealing is set while the leaves of the last seal are read; hashes are theirs.
	sealing bool
	// bare counts those of which only the hash was exported.
	hashes [][sha256.Size]byte
	bare   int64
	leaves map[name][]cover

	// The chain that is being read.
	open  bool
	at    name
	links []link
	head  *Leaf

	// The last chain with events, by which a second copy of one is told; previews' chains come in the order of their IDs.
	before [16]byte
	scopes map[string]bool

	exported time.Time
	// batches are the retirements by their times, and buried the last tombstone.
	batches map[int64]*batch
	buried  [16]byte
}

type link struct {
	Event
	xid uint64
}

func (v *verification) take(r Record) error {
	if v.lines == 0 {
		if r.Record != recordHeader || r.Format != Format {
			return fmt.Errorf("this is no export in the form %q", Format)
		}
		v.takeHeader(r)
		return nil
	}
	if v.ended {
		v.found(Finding{What: "something stands behind the end of the export"})
	}
	switch r.Record {
	case recordSeal:
		v.takeSeal(r.seal())
	case recordLeaf:
		v.takeLeaf(r)
	case recordEvent, recordControl:
		v.takeEvent(r)
	case recordHead, recordControlHead:
		v.takeHead(r)
	case recordTombstone:
		v.takeTombstone(r)
	case recordEnd:
		v.ended = true
		if r.Lines != v.lines {
			v.found(Finding{What: fmt.Sprintf("the export has %d lines and says that it has %d", v.lines, r.Lines)})
		}
	default:
		return fmt.Errorf("a %s belongs to the beginning", r.Record)
	}
	return nil
}

func (v *verification) takeHeader(r Record) {
	v.report.Tenant, v.report.Since, v.exported = r.Tenant, r.Since != 0, time.UnixMicro(r.ExportedAt)
	if v.report.Part() && !v.Part {
		v.found(Finding{What: "the file says that it holds a part of the trail only, and the whole was asked for"})
	}
	if !v.Now.IsZero() && v.exported.After(v.Now.Add(clockSkew)) {
		v.found(Finding{What: fmt.Sprintf("the export says that it was made in the future, at %s", v.exported.UTC().Format(time.RFC3339))})
	}
}

func (v *verification) found(f Finding) { v.report.Findings = append(v.report.Findings, f) }

func (v *verification) takeSeal(s Seal) {
	v.closeSeal()
	v.report.Seals++
	wrong := func(format string, args ...any) { v.found(Finding{Seal: s.Number, What: fmt.Sprintf(format, args...)}) }
	wantNumber, wantPrev := int64(1), Genesis[:]
	if last := v.report.Last; last != nil {
		wantNumber, wantPrev = last.Number+1, last.Hash
	}
	switch {
	case s.Number > wantNumber:
		v.found(Finding{Seal: wantNumber, What: missing("seal", wantNumber, s.Number-1)})
	case s.Number < wantNumber:
		wrong("it stands where seal %d belongs", wantNumber)
	case !bytes.Equal(s.Prev, wantPrev):
		wrong("it does not stand on the seal before it")
	}
	if err := v.Keys.Check(s); err != nil {
		wrong("%v", err)
	}
	if w := v.Witness; w != nil && w.Number == s.Number && !bytes.Equal(w.Hash, s.Hash) {
		wrong("the witness has seen another one: the database was rewritten, or restored from a backup")
	}
	v.report.Last, v.sealing = &s, true
}

// closeSeal compares the leaves that were read with what the seal has signed.
func (v *verification) closeSeal() {
	if !v.sealing {
		return
	}
	s := v.report.Last
	if root := Root(v.hashes); int64(len(v.hashes)) != s.Leaves || !bytes.Equal(root[:], s.Root) {
		v.found(Finding{Seal: s.Number, What: "its leaves are not those that it has signed"})
	}
	if v.bare > 0 && !v.report.Part() {
		v.found(Finding{Seal: s.Number, What: fmt.Sprintf("%d of its leaves do not say what they cover, in an export of everything: "+
			"a change, or its end, was taken out of the file", v.bare)})
	}
	v.report.Hidden += v.bare
	v.hashes, v.bare, v.sealing = v.hashes[:0], 0, false
}

func (v *verification) takeLeaf(r Record) {
	s := v.report.Last
	if !v.sealing || r.Seal != s.Number || r.Place != int64(len(v.hashes)) {
		v.found(Finding{Seal: r.Seal, What: fmt.Sprintf("its leaf %d is not in its place", r.Place)})
	}
	var sum [sha256.Size]byte
	if r.Kind == "" {
		copy(sum[:], unhex(r.Root))
		v.hashes = append(v.hashes, sum)
		v.bare++
		return
	}
	l := Leaf{Kind: r.Kind, Tenant: r.Tenant, Seq: r.Seq, Head: unhex(r.Hash)}
	copy(l.Chain[:], unhex(r.Chain))
	v.hashes = append(v.hashes, l.Sum())
	c := cover{seal: r.Seal, seq: r.Seq}
	if s != nil {
		c.at = s.At
	}
	copy(c.head[:], l.Head)
	v.checkName(r)
	n := nameOf(r.Kind == ControlChain, l.Chain, l.Tenant)
	v.leaves[n] = append(v.leaves[n], c)
}

func nameOf(control bool, chain [16]byte, scope string) name {
	if control {
		return name{scope: scope, control: true}
	}
	return name{chain: chain}
}

func (v *verification) takeEvent(r Record) {
	v.toChain(r, r.Record == recordControl)
	v.checkName(r)
	v.links = append(v.links, link{Event: r.event(), xid: number(r.XID)})
}

func (v *verification) takeHead(r Record) {
	v.toChain(r, r.Record == recordControlHead)
	v.checkName(r)
	v.head = &Leaf{Seq: r.Seq, Head: unhex(r.Hash), Tenant: r.Tenant}
}

// checkName compares the public name, for people, with the chain, which is what was hashed.
func (v *verification) checkName(r Record) {
	chain := unhex(r.Chain)
	switch {
	case r.Chain == "" && r.Preview == "" && (r.Record == recordControl || r.Record == recordControlHead || r.Kind == ControlChain):
	case len(chain) != 16 || r.Preview != v.Name([16]byte(chain)):
		v.found(Finding{Preview: r.Preview, Seq: r.Seq, What: fmt.Sprintf("the %s bears this name and belongs to another change", r.Record)})
	}
}

// toChain closes the chain before if another one begins.
func (v *verification) toChain(r Record, control bool) {
	v.closeSeal()
	var chain [16]byte
	copy(chain[:], unhex(r.Chain))
	n := nameOf(control, chain, r.Tenant)
	if v.open && n == v.at {
		return
	}
	v.closeChain()
	v.open, v.at = true, n
}

func missing(what string, from, to int64) string {
	if from == to {
		return fmt.Sprintf("%s %d is missing", what, from)
	}
	return fmt.Sprintf("%ss %d to %d are missing", what, from, to)
}
