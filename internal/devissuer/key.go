package devissuer

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const keyFile = "dev-issuer.key"

// loadOrCreateKey returns the key of a directory. Two processes that start at once end with the same one.
func loadOrCreateKey(dir string, random io.Reader) (ed25519.PrivateKey, error) {
	path := filepath.Join(dir, keyFile)
	key, err := loadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the key's directory: %w", err)
	}
	if err := createKey(path, random); err != nil {
		return nil, err
	}
	return loadKey(path)
}

func loadKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the issuer's key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the issuer's key %s can be read by others; run: chmod 600 %s", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the issuer's key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no key; remove it to get a new one", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s holds no Ed25519 key; remove it to get a new one", path)
	}
	return key, nil
}

// createKey writes the key whole under another name and links it into place, so that a crash or a second process never
// leaves half a key, and an existing key is never replaced.
func createKey(path string, random io.Reader) error {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return fmt.Errorf("making the issuer's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return fmt.Errorf("making the issuer's key: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), keyFile+".*") // 0600
	if err != nil {
		return fmt.Errorf("writing the issuer's key: %w", err)
	}
	defer os.Remove(temp.Name())
	err = errors.Join(pem.Encode(temp, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the issuer's key: %w", err)
	}
	return nil
}

// thumbprint names a key by RFC 7638, so that a new key has a new name.
func thumbprint(key ed25519.PrivateKey) string {
	digest := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + publicX(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

func publicX(key ed25519.PrivateKey) string {
	return base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}
