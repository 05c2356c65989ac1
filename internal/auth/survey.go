package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Survey is what one issuer publishes now.
type Survey struct {
	// JWKSURL is where the keys are: the configured address, or the one that the issuer's metadata names.
	JWKSURL string
	// Usable names the keys that can verify a token here, Unusable those of the key set that cannot, each with the reason.
	Usable, Unusable []string
	// Date is the issuer's clock by its answer's header, between Asked and Answered by ours; zero if it tells none.
	Date, Asked, Answered time.Time
}

// Look asks one issuer of a configuration for its metadata and keys, once and without keeping anything. It is for a check before the
// start; tokens are judged by Verifier.
func Look(ctx context.Context, cfg Config, issuerURL string) (s Survey, err error) {
	if err := cfg.complete(); err != nil {
		return s, err
	}
	at := slices.IndexFunc(cfg.Issuers, func(i Issuer) bool { return i.URL == issuerURL })
	if at < 0 {
		return s, fmt.Errorf("%s is not a configured issuer", issuerURL)
	}
	client := *cfg.HTTP
	client.Transport = dated{next: client.Transport, now: cfg.Now, survey: &s}
	cfg.HTTP = &client
	keys, err := newKeySet(ctx, cfg.Issuers[at], cfg)
	if err != nil {
		return s, err
	}
	if s.JWKSURL = keys.jwksURL; s.JWKSURL == "" {
		if s.JWKSURL, err = keys.discover(ctx); err != nil {
			return s, fmt.Errorf("its metadata: %w", err)
		}
	}
	body, err := keys.get(ctx, s.JWKSURL)
	if err != nil {
		return s, fmt.Errorf("its keys: %w", err)
	}
	return s, s.judge(body, cfg.Algorithms)
}

// judge sorts the keys of a key set. A key that names no algorithm serves those of its kind.
func (s *Survey) judge(body []byte, algorithms []string) error {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return fmt.Errorf("its keys: what is at %s is no key set", s.JWKSURL)
	}
	for n, entry := range set.Keys {
		name, err := judgeKey(entry, algorithms)
		if name == "" {
			name = fmt.Sprintf("key %d", n+1)
		}
		if err != nil {
			s.Unusable = append(s.Unusable, name+": "+err.Error())
		} else {
			s.Usable = append(s.Usable, name)
		}
	}
	if len(set.Keys) > maxKeys {
		return fmt.Errorf("its keys: more than %d", maxKeys)
	}
	return nil
}

func judgeKey(entry json.RawMessage, algorithms []string) (name string, err error) {
	key, err := parseKey(entry)
	if err != nil {
		return "", errors.New("it is no public key that can be used")
	}
	m := key.Marshal()
	name = m.KID
	serves := []string{string(m.ALG)}
	if m.ALG == "" {
		serves = serving(key.Key())
	}
	switch {
	case m.USE != "" && m.USE != "sig":
		return name, errors.New("it is not for signatures")
	case !slices.ContainsFunc(serves, func(alg string) bool { return slices.Contains(algorithms, alg) }):
		return name, fmt.Errorf("its algorithm %s is not accepted", strings.Join(serves, "/"))
	}
	return name, nil
}

// serving are the algorithms that a public key can be used with.
func serving(public any) []string {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		return []string{fmt.Sprintf("ES%d", min(key.Curve.Params().BitSize, 512))}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return []string{"unknown"}
}

// dated notes an answer's Date header.
type dated struct {
	next   http.RoundTripper
	now    func() time.Time
	survey *Survey
}

// RoundTrip asks.
func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	next := d.next
	if next == nil {
		next = http.DefaultTransport
	}
	asked := d.now()
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		d.survey.Date, d.survey.Asked, d.survey.Answered = date, asked, d.now()
	}
	return response, nil
}
