package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
)

// Trail is one change's chain as it is stored, with the newest seal that covers it.
type Trail struct {
	Events []Event
	// Seq and Head are the end that the change's own record tells.
	Seq  int64
	Head []byte
	// Leaf is the end of the chain at Seal, in its Place among the seal's leaves; both are nil where no seal covers the chain yet.
	Leaf  *Leaf
	Seal  *Seal
	Place int64
	// Leaves are the hashes of all of the seal's leaves, in their order; nil where they were too many to be read.
	Leaves [][sha256.Size]byte
}

// Flaw is what is wrong with a trail.
type Flaw string

// The flaws.
const (
	// FlawMissing: an event that must be there is not.
	FlawMissing Flaw = "missing"
	// FlawForeign: an event belongs to another change, or to another tenant.
	FlawForeign Flaw = "foreign"
	// FlawHash: an event's hash does not cover what it says and the event before it.
	FlawHash Flaw = "hash"
	// FlawEnd: the change's own record ends otherwise than its chain.
	FlawEnd Flaw = "end"
	// FlawSealed: an event is not the one that was sealed.
	FlawSealed Flaw = "sealed"
	// FlawLeaves: the seal has signed other leaves than those that are stored.
	FlawLeaves Flaw = "leaves"
	// FlawSignature: the seal itself is not whole, or its signature is forged.
	FlawSignature Flaw = "signature"
)

// Proof is what a trail shows.
type Proof struct {
	Events int64
	// Flaw is the first thing that is wrong, empty if nothing is; At is the event where it shows, 0 if that is none.
	Flaw Flaw
	At   int64
	// Seal is the newest seal over the chain, nil if there is none yet. It covers the events up to Sealed.
	Seal   *Seal
	Sealed int64
	// Unsealed counts the events behind it.
	Unsealed int64
	// Recomputed says that the seal's root was computed anew from its leaves; Vouched, that its signature was checked, which takes
	// the key: an older one may not be here.
	Recomputed, Vouched bool
}

// Prove checks one trail: every link, the end that the record tells, and what the seal has signed. It notices what was altered,
// removed or put in among what is sealed. It says nothing of other changes, nor whether the seals themselves are complete: Verifier
// does, from an export of everything.
func (k Keys) Prove(t Trail) Proof {
	p := Proof{Events: int64(len(t.Events)), Seal: t.Seal}
	p.Flaw, p.At = links(t)
	if t.Seal == nil || t.Leaf == nil {
		p.Unsealed = p.Events
		return p
	}
	p.Sealed, p.Unsealed = t.Leaf.Seq, max(0, p.Events-t.Leaf.Seq)
	if p.Flaw == "" {
		p.Flaw, p.At = k.sealed(t)
	}
	_, known := k[t.Seal.KeyID]
	p.Recomputed, p.Vouched = p.Flaw == "" && t.Leaves != nil, p.Flaw == "" && known
	return p
}

func links(t Trail) (Flaw, int64) {
	head := Genesis[:]
	for i, e := range t.Events {
		seq := int64(i) + 1
		sum := e.Sum(head)
		switch {
		case e.Seq != seq:
			return FlawMissing, seq
		case e.Preview != t.Events[0].Preview || e.Tenant != t.Events[0].Tenant:
			return FlawForeign, seq
		case !bytes.Equal(sum[:], e.Hash):
			return FlawHash, seq
		}
		head = e.Hash
	}
	switch last := int64(len(t.Events)); {
	case t.Seq > last:
		return FlawMissing, last + 1
	case t.Seq < last || !bytes.Equal(head, t.Head):
		return FlawEnd, last
	}
	return "", 0
}

// forged tells what is wrong with a seal from a key that is not here.
func forged(err error) bool { return err != nil && !errors.Is(err, errNotGiven) }

// sealed compares a chain that is whole with the seal over it.
func (k Keys) sealed(t Trail) (Flaw, int64) {
	seq := t.Leaf.Seq
	switch {
	case seq > int64(len(t.Events)) || seq < 1:
		return FlawMissing, int64(len(t.Events)) + 1
	case !bytes.Equal(t.Events[seq-1].Hash, t.Leaf.Head):
		return FlawSealed, seq
	case forged(k.Check(*t.Seal)):
		return FlawSignature, 0
	case t.Leaves == nil:
		return "", 0
	}
	own := t.Leaf.Sum()
	root := Root(t.Leaves)
	at := t.Place
	if int64(len(t.Leaves)) != t.Seal.Leaves || at < 0 || at >= t.Seal.Leaves || t.Leaves[at] != own || !bytes.Equal(root[:], t.Seal.Root) {
		return FlawLeaves, 0
	}
	return "", 0
}
