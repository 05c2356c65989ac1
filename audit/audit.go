// Package audit seals the chains of events that changes and controls carry, and checks them from an export alone, without the
// database.
//
// The promise: a Verifier notices, in an export of everything, that something a seal covers was altered, removed, put in, reordered or cut
// off, and a change that is gone as a whole, and names each by its number. What no seal covers it counts: nobody has signed it. It does not
// notice what somebody adds who can write to the database as the service can, nor that the newest seals are gone together with all they
// cover, unless it is given a witness, nor what else a part of the trail leaves out. Nor does it say what events mean.
//
// An event's hash covers the one before it (Event.Sum); a Seal covers the ends of all chains that have changed, and the seal before
// it. Start at Verifier and Sealer; store keeps what both work on.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// Event is one stored audit event, in the bytes that were hashed.
type Event struct {
	Preview [16]byte
	Seq     int64
	Tenant  string
	Kind    string
	Actor   string
	// At is exact to the microsecond, as Postgres stores it; its time zone does not matter.
	At   time.Time
	Body []byte
	Hash []byte
}

// Genesis is the head before the first event.
var Genesis [sha256.Size]byte

// Sum is the hash of an event over the head before it, as the schema's event_hash computes it. Fields of varying length go in
// as their own hashes, so that no two events share an encoding.
func (e Event) Sum(head []byte) [sha256.Size]byte {
	message := append(append([]byte{}, head...), e.Preview[:]...)
	message = binary.BigEndian.AppendUint64(message, uint64(e.Seq))
	message = binary.BigEndian.AppendUint64(message, uint64(e.At.UnixMicro()))
	for _, field := range [][]byte{[]byte(e.Kind), []byte(e.Actor), []byte(e.Tenant), e.Body} {
		sum := sha256.Sum256(field)
		message = append(message, sum[:]...)
	}
	return sha256.Sum256(message)
}

// BrokenError says where a chain breaks.
type BrokenError struct {
	// Seq is the sequence number that was expected at the place that breaks.
	Seq int64
	// Found is the sequence number that is there.
	Found int64
	Why   string
}

// Error names the place.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the chain breaks at event %d: %s", e.Seq, e.Why)
}

// Verify checks the events of one preview in their order, from the first on. Its error is a *BrokenError.
func Verify(events []Event) error {
	head := Genesis[:]
	for i, e := range events {
		want := int64(i) + 1
		sum := e.Sum(head)
		switch {
		case e.Seq != want:
			return &BrokenError{Seq: want, Found: e.Seq, Why: fmt.Sprintf("event %d stands there", e.Seq)}
		case e.Preview != events[0].Preview:
			return &BrokenError{Seq: want, Found: e.Seq, Why: "it belongs to another preview"}
		case e.Tenant != events[0].Tenant:
			return &BrokenError{Seq: want, Found: e.Seq, Why: "it belongs to another tenant"}
		case !bytes.Equal(sum[:], e.Hash):
			return &BrokenError{Seq: want, Found: e.Seq, Why: "its hash does not cover what it says"}
		}
		head = e.Hash
	}
	return nil
}
