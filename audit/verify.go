package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// shortestRetention is the schema's floor under retention: what was sealed later than this before it was retired was not retired
// but deleted.
const shortestRetention = 30 * 24 * time.Hour

// Verifier checks exports without the database.
type Verifier struct {
	// Keys are trusted.
	Keys Keys
	// Witness is the last seal that was seen outside the database, nil if there is none.
	Witness *Seal
	// Name gives a preview's public ID.
	Name func([16]byte) string
}

// Verify checks an export. Its error is a file that is not an export, or is not readable; everything that is wrong with a
// readable one is in the report.
func (c Verifier) Verify(r io.Reader) (Report, error) {
	v := &verification{Verifier: c, leaves: map[name][]cover{}}
	decoder := json.NewDecoder(r)
	for {
		var record Record
		err := decoder.Decode(&record)
		if errors.Is(err, io.EOF) {
			return v.finish()
		}
		if err != nil {
			return Report{}, fmt.Errorf("line %d is not readable: %w", v.lines+1, err)
		}
		if err := v.take(record); err != nil {
			return Report{}, err
		}
		v.lines++
	}
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
	hashes  [][sha256.Size]byte
	leaves  map[name][]cover

	// The chain that is being read.
	open  bool
	at    name
	links []link
	head  *Leaf
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
		v.report.Tenant, v.report.Since = r.Tenant, r.Since != 0
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
		return fmt.Errorf("line %d is a %q, which this version does not know", v.lines+1, r.Record)
	}
	return nil
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
	v.hashes, v.sealing = v.hashes[:0], false
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
	v.links = append(v.links, link{Event: r.event(), xid: number(r.XID)})
}

func (v *verification) takeHead(r Record) {
	v.toChain(r, r.Record == recordControlHead)
	v.head = &Leaf{Seq: r.Seq, Head: unhex(r.Hash), Tenant: r.Tenant}
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

// takeTombstone lets a retired preview be gone. One that was sealed shortly before was not retired.
func (v *verification) takeTombstone(r Record) {
	v.closeSeal()
	v.closeChain()
	v.report.Retired++
	var chain [16]byte
	copy(chain[:], unhex(r.Chain))
	n := nameOf(false, chain, "")
	for _, c := range v.leaves[n] {
		f := Finding{Preview: v.Name(chain), Seq: c.seq, Seal: c.seal}
		switch {
		case c.seq > r.Seq:
			f.What = fmt.Sprintf("its tombstone says that the chain ended at event %d, and seal %d covers event %d", r.Seq, c.seal, c.seq)
		case c.seq == r.Seq && !bytes.Equal(c.head[:], unhex(r.Hash)):
			f.What = fmt.Sprintf("its tombstone has another hash than seal %d", c.seal)
		case time.UnixMicro(r.At).Sub(c.at) < shortestRetention:
			f.What = fmt.Sprintf("it was removed too soon after seal %d to have been retired", c.seal)
		default:
			continue
		}
		v.found(f)
		break // one reason says enough
	}
	delete(v.leaves, n)
}

func missing(what string, from, to int64) string {
	if from == to {
		return fmt.Sprintf("%s %d is missing", what, from)
	}
	return fmt.Sprintf("%ss %d to %d are missing", what, from, to)
}
