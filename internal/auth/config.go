package auth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const (
	maxLeeway      = 5 * time.Minute
	fetchTimeout   = 5 * time.Second
	maxKeySetBytes = 1 << 20
	maxKeys        = 100
)

// complete fills the defaults and refuses what cannot be meant.
func (c *Config) complete() error {
	if c.Now == nil {
		return errors.New("no clock is given")
	}
	if len(c.Issuers) == 0 {
		return errors.New("no issuer is given")
	}
	if len(c.Audiences) == 0 || slices.Contains(c.Audiences, "") {
		return errors.New("an audience is needed: without one, a token for any other service would be accepted")
	}
	c.Algorithms = slices.Clone(c.Algorithms)
	if len(c.Algorithms) == 0 {
		c.Algorithms = slices.Clone(DefaultAlgorithms)
	}
	for _, alg := range c.Algorithms {
		if !slices.Contains(allowed, alg) {
			return fmt.Errorf("algorithm %q may not be used; choose from %v", alg, allowed)
		}
	}
	c.Leeway = cmp.Or(c.Leeway, 30*time.Second)
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		return fmt.Errorf("the leeway must lie between 0 and %s", maxLeeway)
	}
	c.MaxTokenBytes = cmp.Or(c.MaxTokenBytes, 16<<10)
	c.KeysRefresh = cmp.Or(c.KeysRefresh, 5*time.Minute)
	c.KeysMaxAge = max(cmp.Or(c.KeysMaxAge, time.Hour), c.KeysRefresh)
	c.KeysMinInterval = cmp.Or(c.KeysMinInterval, 10*time.Second)
	c.CacheFor = cmp.Or(c.CacheFor, time.Minute)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.HTTP = keyClient(c.HTTP)
	c.Issuers = slices.Clone(c.Issuers)
	for i := range c.Issuers {
		if err := c.Issuers[i].complete(); err != nil {
			return err
		}
	}
	return nil
}

func (i *Issuer) complete() error {
	for _, raw := range []string{i.URL, i.JWKSURL} {
		if raw == "" && raw != i.URL {
			continue
		}
		if err := trustworthy(raw); err != nil {
			return fmt.Errorf("issuer %q: %w", shown(i.URL), err)
		}
	}
	i.Claims.Tenant = cmp.Or(i.Claims.Tenant, "tenant")
	i.Claims.Groups = cmp.Or(i.Claims.Groups, "groups")
	i.Claims.Roles = cmp.Or(i.Claims.Roles, "roles")
	i.Claims.Owner = cmp.Or(i.Claims.Owner, "owner")
	return nil
}

// trustworthy accepts https, and http on loopback: keys that travel in the clear could be replaced on the way. A fragment
// would make two people's names equal (actor.PersonID).
func trustworthy(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q is not a usable URL", shown(raw))
	}
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return fmt.Errorf("%q must be an https URL (http is for loopback only)", shown(raw))
	}
	return nil
}

// shown is a URL as it may be written down: without a password that somebody has put into it.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(not readable)"
	}
	return u.Redacted()
}

// keyClient never follows a redirect: the keys' address is the operator's choice, not the answer's.
func keyClient(base *http.Client) *http.Client {
	client := http.Client{}
	if base != nil {
		client = *base
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Timeout = cmp.Or(client.Timeout, fetchTimeout)
	return &client
}
