package auth

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/cutonce/cutonce/internal/fault"
)

const minRSABits = 2048

// keySet is one issuer's published keys. It has no goroutine: the call that finds them old fetches them, at most one
// at a time and never more often than Config.KeysMinInterval, so that a flood of made-up key IDs costs the issuer nothing.
type keySet struct {
	jwkset.Storage // the keys as last fetched; KeyRead is ours

	ctx     context.Context
	cfg     Config
	issuer  string
	client  *http.Client
	keyfunc keyfunc.Keyfunc

	mu         sync.Mutex
	jwksURL    string
	generation uint64 // changes whenever the keys do
	body       []byte // the document last fetched, to see whether it changed
	fetchedAt  time.Time
	triedAt    time.Time
	failing    bool          // the last fetch failed
	inFlight   chan struct{} // closed when the fetch that runs now has ended; nil if none runs
}

func newKeySet(ctx context.Context, i Issuer, cfg Config) (*keySet, error) {
	k := &keySet{Storage: jwkset.NewMemoryStorage(), ctx: ctx, cfg: cfg, issuer: i.URL, client: cfg.HTTP, jwksURL: i.JWKSURL}
	var err error
	k.keyfunc, err = keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: k, UseWhitelist: []jwkset.USE{jwkset.UseSig, ""}})
	return k, err
}

// key finds the public key for a token by its kid; without one, every key of the token's algorithm is tried.
func (k *keySet) key(ctx context.Context, t *jwt.Token) (any, error) {
	key, err := k.keyfunc.KeyfuncCtx(ctx)(t)
	if err == nil {
		return key, nil
	}
	var f *fault.Fault
	if errors.As(err, &f) {
		return nil, f
	}
	return nil, refuse("key", nil)
}

// KeyRead is what keyfunc asks for a kid. An unknown one may be a rotation that we have not seen yet.
func (k *keySet) KeyRead(ctx context.Context, kid string) (jwkset.JWK, error) {
	key, err := k.Storage.KeyRead(ctx, kid)
	if err == nil {
		return key, nil
	}
	await(ctx, k.refresh())
	return k.Storage.KeyRead(ctx, kid)
}

// current makes sure that the keys are recent enough to be used, and says which generation they are. Keys past half their
// time are renewed while they are still in use; past all of it, the call waits, so that a removed key does not slip through
// after a quiet hour; but not if the issuer has just failed to answer, or its outage would become ours.
func (k *keySet) current(ctx context.Context) (uint64, error) {
	age, known, failing := k.age()
	switch {
	case !known || age >= k.cfg.KeysMaxAge || age >= k.cfg.KeysRefresh && !failing:
		await(ctx, k.refresh())
	case age >= k.cfg.KeysRefresh/2:
		k.refresh()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fetchedAt.IsZero() || k.cfg.Now().Sub(k.fetchedAt) >= k.cfg.KeysMaxAge {
		return 0, k.unreachable()
	}
	return k.generation, nil
}

func (k *keySet) age() (age time.Duration, known, failing bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cfg.Now().Sub(k.fetchedAt), !k.fetchedAt.IsZero(), k.failing
}

// unreachable is no "unauthenticated": the token may be good, and a new one would not help.
func (k *keySet) unreachable() error {
	f := fault.New(fault.Internal, nil).WithKey("fault.internal.issuer").WithNext(fault.NextRetryLater).After(k.cfg.KeysMinInterval)
	f.Retryable = true // nothing was done for a caller whom we could not identify
	return f.Because(fmt.Errorf("%s: %w", k.issuer, ErrIssuerUnreachable))
}

// refresh begins to fetch the keys, or joins the fetch that runs. It returns a channel that is closed when that has ended,
// and nil if the issuer was asked too recently. The fetch outlives a caller that hangs up, since others wait for it.
func (k *keySet) refresh() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inFlight != nil {
		return k.inFlight
	}
	now := k.cfg.Now()
	if !k.triedAt.IsZero() && now.Sub(k.triedAt) < k.cfg.KeysMinInterval {
		return nil
	}
	k.inFlight, k.triedAt = make(chan struct{}), now
	go k.fetchAndStore(k.inFlight)
	return k.inFlight
}

func await(ctx context.Context, done <-chan struct{}) {
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (k *keySet) fetchAndStore(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(k.ctx, fetchTimeout)
	defer cancel()
	body, keys, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inFlight, k.failing = nil, err != nil
	if err != nil {
		k.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "issuer keys not refreshed", slog.String("issuer", k.issuer), slog.Any("error", err))
		return
	}
	k.fetchedAt = k.triedAt
	if bytes.Equal(body, k.body) {
		return
	}
	k.body = body
	k.generation++
	_ = k.Storage.KeyReplaceAll(ctx, keys) // in memory: it has no way to fail
}

func (k *keySet) fetch(ctx context.Context) ([]byte, []jwkset.JWK, error) {
	if k.jwksURL == "" {
		found, err := k.discover(ctx)
		if err != nil {
			return nil, nil, err
		}
		k.jwksURL = found // only the one fetch in flight touches it
	}
	body, err := k.get(ctx, k.jwksURL)
	if err != nil {
		return nil, nil, err
	}
	keys, err := parseKeys(body)
	return body, keys, err
}

// discover asks the issuer's metadata where its keys are (OpenID Connect Discovery, then RFC 8414). The document must name
// this very issuer, or one issuer could lend its keys to another.
func (k *keySet) discover(ctx context.Context) (string, error) {
	var failures []error
	for _, at := range metadataURLs(k.issuer) {
		body, err := k.get(ctx, at)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		var doc struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		if err := json.Unmarshal(body, &doc); err != nil || doc.Issuer != k.issuer {
			failures = append(failures, fmt.Errorf("%s is not the metadata of this issuer", at))
			continue
		}
		return doc.JWKSURI, trustworthy(doc.JWKSURI)
	}
	return "", errors.Join(failures...)
}

func metadataURLs(issuer string) []string {
	base := strings.TrimSuffix(issuer, "/")
	scheme, rest, _ := strings.Cut(base, "://")
	host, path, _ := strings.Cut(rest, "/")
	if path != "" {
		path = "/" + path
	}
	return []string{
		base + "/.well-known/openid-configuration",
		scheme + "://" + host + "/.well-known/oauth-authorization-server" + path,
	}
}

func (k *keySet) get(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", at, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxKeySetBytes+1))
	if err == nil && len(body) > maxKeySetBytes {
		err = fmt.Errorf("%s is larger than %d bytes", at, maxKeySetBytes)
	}
	return body, err
}

// parseKeys keeps the public keys that can verify a signature. One key that we cannot read must not cost the others.
func parseKeys(body []byte) ([]jwkset.JWK, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("reading the key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set holds more than %d keys", maxKeys)
	}
	var keys []jwkset.JWK
	for _, entry := range set.Keys {
		if key, err := parseKey(entry); err == nil {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set holds no usable key")
	}
	return keys, nil
}

// parseKey reads the bare public key and nothing else of the entry: no private part, and no certificate URL that the
// library would go and fetch.
func parseKey(entry json.RawMessage) (key jwkset.JWK, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("an entry of the key set could not be read: %v", p)
		}
	}()
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(entry, &m); err != nil {
		return jwkset.JWK{}, err
	}
	if m.KTY == jwkset.KtyOct {
		return jwkset.JWK{}, errors.New("a symmetric key cannot be published")
	}
	public := jwkset.JWKMarshal{KTY: m.KTY, USE: m.USE, ALG: m.ALG, KID: m.KID, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E}
	key, err = jwkset.NewJWKFromMarshal(public, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return jwkset.JWK{}, err
	}
	if pub, ok := key.Key().(*rsa.PublicKey); ok && pub.N.BitLen() < minRSABits {
		return jwkset.JWK{}, fmt.Errorf("an RSA key of %d bits is too short", pub.N.BitLen())
	}
	return key, nil
}
