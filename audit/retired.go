package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"
)

const (
	// shortestRetention is the schema's floor under retention: what was sealed later than this before it was retired was not retired
	// but deleted.
	shortestRetention = 30 * 24 * time.Hour
	// clockSkew is how far two honest clocks may differ: the database's before and after a failover, or the verifier's.
	clockSkew = time.Hour

	retiredKind = "retired"
)

// batch is one transaction of retention: the control event that digests it, and its tombstones, which share the event's time.
type batch struct {
	count  int64
	digest hash.Hash
	// event is zero where there is none; says is its body.
	event int64
	says  string
	first name
}

func (v *verification) batch(at int64) *batch {
	b := v.batches[at]
	if b == nil {
		b = &batch{digest: sha256.New()}
		v.batches[at] = b
	}
	return b
}

// noteRetirements remembers what the deployment's own chain says of retirements. An event that tells a time after the seal that covers
// it was written ahead, so that what it retires would seem old enough.
func (v *verification) noteRetirements(covers []cover) {
	if !v.at.control || v.at.scope != "" {
		return
	}
	for _, l := range v.links {
		if l.Kind != retiredKind {
			continue
		}
		b := v.batch(l.At.UnixMicro())
		if b.event != 0 {
			v.wrong(l.Seq, "it tells the same time as the retirement of event %d", b.event)
		}
		b.event, b.says = l.Seq, string(l.Body)
		for _, c := range covers {
			if c.seq >= l.Seq && l.At.After(c.at.Add(clockSkew)) {
				v.wrong(l.Seq, "it tells a time after seal %d, which covers it", c.seal)
				break
			}
		}
	}
}

// takeTombstone lets a retired preview be gone. One that was sealed shortly before was not retired; whether it was retired at all is
// what its batch tells at the end.
func (v *verification) takeTombstone(r Record) {
	v.closeSeal()
	v.closeChain()
	v.checkName(r)
	v.report.Retired++
	var chain [16]byte
	copy(chain[:], unhex(r.Chain))
	n := nameOf(false, chain, "")
	wrong := func(format string, args ...any) { v.found(v.place(n, r.Seq, fmt.Sprintf(format, args...))) }
	if v.report.Retired > 1 && bytes.Compare(chain[:], v.buried[:]) <= 0 {
		wrong("its tombstone stands out of order, or twice")
	}
	v.buried = chain
	if at := time.UnixMicro(r.At); at.After(v.exported) {
		wrong("its tombstone says that it was retired at %s, after the export", at.UTC().Format(time.RFC3339))
	}
	b := v.batch(r.At)
	if b.count++; b.count == 1 {
		b.first = n
	}
	b.digest.Write(binary.BigEndian.AppendUint64(chain[:], uint64(r.Seq)))
	b.digest.Write(unhex(r.Hash))
	v.checkBuried(n, r)
}

// checkBuried compares a tombstone with the seals.
func (v *verification) checkBuried(n name, r Record) {
	for _, c := range v.leaves[n] {
		f := Finding{Preview: v.Name(n.chain), Seq: c.seq, Seal: c.seal}
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

// checkBatches compares the tombstones with the control events that digest them. An export of one tenant has that tenant's
// tombstones only: there it is asked whether the event is there, and in a whole one what it says.
func (v *verification) checkBatches() {
	for _, at := range slices.SortedFunc(maps.Keys(v.batches), cmp.Compare[int64]) {
		b := v.batches[at]
		says := fmt.Sprintf(`{"changes":%d,"digest":"%s"}`, b.count, hex.EncodeToString(b.digest.Sum(nil)))
		switch {
		case b.event == 0:
			v.found(v.place(b.first, 0, fmt.Sprintf("no retirement was recorded at the time of its tombstone, which %d share", b.count)))
		case b.says != says && v.report.Tenant == "":
			v.found(v.place(name{control: true}, b.event, fmt.Sprintf("the %d tombstones of its time are not those that it retired", b.count)))
		}
	}
}
