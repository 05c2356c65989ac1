package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Digest is a SHA-256: the name of exact bytes. Its text form is 64 lowercase hexadecimal digits, and no other
// spelling is read, so that two digests are equal when their texts are.
type Digest [sha256.Size]byte

// ErrDigest is returned for text that is no digest.
var ErrDigest = errors.New("canon: a digest is 64 lowercase hexadecimal digits")

// Sum is the digest of exactly these bytes; give it canonical ones.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// SumOf is the digest of v's canonical form.
func SumOf(v any) (Digest, error) {
	b, err := Marshal(v)
	if err != nil {
		return Digest{}, err
	}
	return Sum(b), nil
}

// ParseDigest reads the text form.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	err := d.UnmarshalText([]byte(s))
	return d, err
}

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText writes the text form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form; on an error d is unchanged.
func (d *Digest) UnmarshalText(text []byte) error {
	var out Digest
	if len(text) != hex.EncodedLen(len(out)) {
		return ErrDigest
	}
	if _, err := hex.Decode(out[:], text); err != nil || out.String() != string(text) {
		return ErrDigest
	}
	*d = out
	return nil
}
