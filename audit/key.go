package audit

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// keyLabel separates the signing key from everything else that is made from the deployment's secret.
const keyLabel = "cutonce seal key 1"

// ReadKey reads a private key from PEM (PKCS#8, Ed25519), as openssl genpkey -algorithm ed25519 makes it.
func ReadKey(text []byte) (Key, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return Key{}, errors.New("not a PEM file: make one with openssl genpkey -algorithm ed25519")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return Key{}, errors.New("not an Ed25519 private key in PKCS#8: make one with openssl genpkey -algorithm ed25519")
	}
	return Key{private}, nil
}

// DeriveKey makes the key from the deployment's secret. Whoever holds the secret can then sign: keep the two apart with a key of
// its own where those who operate the service shall not be able to.
func DeriveKey(secret []byte) (Key, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, keyLabel, ed25519.SeedSize)
	if err != nil {
		return Key{}, fmt.Errorf("deriving the seal key: %w", err)
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// KeyID is the short name of a public key.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// WritePublic writes a public key in one word.
func WritePublic(public ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(public) }

// ReadPublic reads a public key: the word that WritePublic writes, or PEM.
func ReadPublic(text string) (ed25519.PublicKey, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if public, ok := parsed.(ed25519.PublicKey); ok && err == nil {
			return public, nil
		}
		return nil, errors.New("not an Ed25519 public key")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("not an Ed25519 public key in base64, as cutonce audit key prints it")
	}
	return raw, nil
}
