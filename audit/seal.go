package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The kinds of chain that a seal covers.
const (
	PreviewChain = "preview"
	ControlChain = "control"
)

// Leaf is the end of one chain at a seal. A control chain has a Chain of zeros and is told by its Tenant, the scope.
type Leaf struct {
	Kind   string
	Chain  [16]byte
	Tenant string
	Seq    int64
	Head   []byte
}

// Seal is a signed Merkle root over the chains that changed, chained to the seal before it.
type Seal struct {
	Number int64
	// Window counts the clusters that the database has lived in: From and To, transaction numbers, mean something in System only.
	Window   int64
	System   uint64
	From, To uint64
	// CaughtUp is false while the first seals of a window still cover what earlier ones did not.
	CaughtUp bool
	At       time.Time
	Leaves   int64
	Prev     []byte
	Root     []byte
	// Hash names the seal: the next one carries it as its Prev.
	Hash      []byte
	KeyID     string
	Signature []byte
}

// The first bytes of what is hashed, so that a leaf is never read as a node and a seal never as something else (RFC 6962, 2.1).
const (
	leafPrefix = 0x00
	nodePrefix = 0x01
	sealPrefix = "cutonce seal 1\n"
)

// Sum is the hash of a leaf in the tree.
func (l Leaf) Sum() [sha256.Size]byte {
	kind, tenant := sha256.Sum256([]byte(l.Kind)), sha256.Sum256([]byte(l.Tenant))
	message := append([]byte{leafPrefix}, kind[:]...)
	message = append(append(message, l.Chain[:]...), tenant[:]...)
	message = binary.BigEndian.AppendUint64(message, uint64(l.Seq))
	return sha256.Sum256(append(message, l.Head...))
}

// Root is the Merkle tree hash over leaf hashes in their order (RFC 6962, 2.1).
func Root(leaves [][sha256.Size]byte) [sha256.Size]byte {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := 1
	for k*2 < len(leaves) {
		k *= 2
	}
	left, right := Root(leaves[:k]), Root(leaves[k:])
	return sha256.Sum256(append(append([]byte{nodePrefix}, left[:]...), right[:]...))
}

// message is what is hashed and signed of a seal.
func (s Seal) message() []byte {
	m := []byte(sealPrefix)
	for _, n := range []uint64{
		uint64(s.Number), uint64(s.Window), s.System, s.From, s.To, uint64(s.At.UnixMicro()), uint64(s.Leaves),
	} {
		m = binary.BigEndian.AppendUint64(m, n)
	}
	caught := byte(0)
	if s.CaughtUp {
		caught = 1
	}
	return append(append(append(m, caught), s.Prev...), s.Root...)
}

// Key signs seals.
type Key struct {
	private ed25519.PrivateKey
}

// ID names the key in seals.
func (k Key) ID() string { return KeyID(k.Public()) }

// Public is what verifiers need.
func (k Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Trusted is the key's public half, for whoever checks seals beside the one who makes them.
func (k Key) Trusted() Keys { return Keys{k.ID(): k.Public()} }

// Sign completes a seal over leaves.
func (k Key) Sign(s Seal, leaves []Leaf) Seal {
	hashes := make([][sha256.Size]byte, len(leaves))
	for i, l := range leaves {
		hashes[i] = l.Sum()
	}
	root := Root(hashes)
	s.Root, s.Leaves, s.KeyID = root[:], int64(len(leaves)), k.ID()
	message := s.message()
	hash := sha256.Sum256(message)
	s.Hash, s.Signature = hash[:], ed25519.Sign(k.private, message)
	return s
}

var errNotGiven = errors.New("which is not among those given")

// Vouch says what is wrong with a witness that is said to be ours. One that names another key cannot be verified here; it is
// believed, because believing it can only freeze.
func (k Key) Vouch(s Seal) error {
	if err := k.Trusted().Check(s); !errors.Is(err, errNotGiven) {
		return err
	}
	return nil
}

// Keys are the public keys that a verifier trusts, by their IDs.
type Keys map[string]ed25519.PublicKey

// Check says what is wrong with a seal by itself: its hash, its key or its signature.
func (k Keys) Check(s Seal) error {
	message := s.message()
	hash := sha256.Sum256(message)
	public, known := k[s.KeyID]
	switch {
	case len(s.Prev) != sha256.Size || len(s.Root) != sha256.Size:
		return errors.New("it is not whole")
	case !bytes.Equal(hash[:], s.Hash):
		return errors.New("its hash does not cover what it says")
	case !known:
		return fmt.Errorf("it names the key %s, %w", s.KeyID, errNotGiven)
	case !ed25519.Verify(public, message, s.Signature):
		return errors.New("its signature is forged")
	}
	return nil
}
