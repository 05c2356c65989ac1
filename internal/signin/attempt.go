package signin

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// attemptFor is how long a person may take at the provider.
const attemptFor = 10 * time.Minute

// attempt is one way to the provider and back. It travels in the state parameter.
type attempt struct {
	Browser  [32]byte `json:"b"`
	Nonce    string   `json:"n"`
	Verifier string   `json:"v"`
	Next     string   `json:"x"`
	Fresh    bool     `json:"f,omitempty"`
	// At is when it began, in seconds.
	At int64 `json:"t"`
}

// sealer encrypts attempts, so that neither the browser nor the provider learns the verifier or can change anything.
type sealer struct{ aead cipher.AEAD }

// purpose binds the ciphertext to what it is for.
var purpose = []byte("cutonce sign-in 1")

func newSealer(key []byte) (sealer, error) {
	if len(key) != 32 {
		return sealer{}, errors.New("signing people in: the key for attempts has 32 bytes")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("signing people in: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return sealer{}, fmt.Errorf("signing people in: %w", err)
	}
	return sealer{aead}, nil
}

func (s sealer) seal(a attempt) (string, error) {
	plain, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("writing a sign-in attempt: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, purpose)), nil
}

func (s sealer) open(state string) (a attempt, err error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil {
		return a, err
	}
	plain, err := s.aead.Open(nil, nil, sealed, purpose)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(plain, &a)
}

func (s *SignIn) random() (string, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(s.cfg.Rand, raw); err != nil {
		return "", fmt.Errorf("beginning to sign somebody in: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

func splitScopes(text string) []string { return strings.Fields(text) }

func exactMembers(raw []byte) (members map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return members, d.Decode(&members)
}
