// Package adbudget changes the daily budgets of an ad platform's campaigns: the action budget_change and the tool
// campaigns_find.
//
// The promise: an amount is absolute, in the campaign's own currency, and exact from the caller's text to the platform's
// record; a campaign that could be mistaken for another is changed only by someone who names it in full; and an outcome is
// called refused, drifted or not sent only where the platform's documented answer, or the wire, proves it.
//
// Amounts are JSON numbers (IDs are strings). In KRW and JPY they are whole; in USD they have at most two decimals. They are
// read as decimal text and never pass through a binary fraction here; and even a client that holds numbers as doubles sends
// them unharmed, because the largest amount has eleven digits and a double keeps fifteen.
//
// It does not promise to know campaigns that its own credential cannot see, to compare a campaign's name with more than
// Config.CompareUpTo others (the preview says so when there are more), or to change anything but the daily budget. Zero is
// not an amount it sets: stopping a campaign is another action.
//
// Start at New; Prepare, Execute and Lookup are each in a file of that name. answer.go holds the one table of what the
// platform's answers prove.
package adbudget

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
)

// The names of what this connector offers.
const (
	ActionName = "budget_change"
	FindName   = "campaigns_find"
	// Kind is the kind of every target.
	Kind = "campaign"
	// FieldBudget is the one field that is changed.
	FieldBudget = "daily_budget"

	// ScopeRead and ScopeBudget are what the tools need.
	ScopeRead   = "ads:read"
	ScopeBudget = "ads:budget"
)

//go:embed texts/*.json schema/*.json
var files embed.FS

// Config says which platform, with whose credential, and what it can do for an outcome that is unknown.
type Config struct {
	// BaseURL is the platform's API. Plain http is taken only towards this machine itself, unless AllowPlainHTTP: the
	// credential travels with every call.
	BaseURL        string
	AllowPlainHTTP bool
	// Token is the service's own bearer credential.
	Token string
	// System names host and account, the same for every connector to that account: target locks depend on it.
	System string

	// HonoursKeys: the platform remembers idempotency keys for KeyRetention (24 h if zero).
	HonoursKeys  bool
	KeyRetention time.Duration
	// NoLookup: the platform keeps no change history by request key.
	NoLookup bool
	// SettleFor is how long after a send an empty history proves nothing (60 s if zero).
	SettleFor time.Duration
	// CompareUpTo is how many campaigns a name is compared with at most (2000 if zero).
	CompareUpTo int
	// Sandbox: tests may change this account.
	Sandbox bool
	// Clocks override the service's defaults for the action.
	Clocks connector.Clocks
	// ResolveBy is how many operators settle an outcome that nobody can look up: one (also if zero) or two.
	ResolveBy int

	// HTTP is for sends; reads use it too, with ReadTimeout (5 s if zero).
	HTTP        connector.HTTPConfig
	ReadTimeout time.Duration
}

// Connector is the ad platform as package connector sees it. It is safe for concurrent use.
type Connector struct {
	cfg      Config
	platform *platform
	texts    fs.FS
	action   connector.Action
	find     connector.Find
	likeness likeness
}

var (
	_ connector.Connector = (*Connector)(nil)
	_ connector.Reverser  = (*Connector)(nil)
)

// New checks the configuration. It calls nothing.
func New(cfg Config) (*Connector, error) {
	cfg = cfg.withDefaults()
	client, err := httptarget.New(httptarget.Config{
		BaseURL: cfg.BaseURL, AllowPlainHTTP: cfg.AllowPlainHTTP, Token: cfg.Token, HTTP: cfg.HTTP, ReadTimeout: cfg.ReadTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("ad platform: %w", err)
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("ad platform: %w", err)
	}
	c := &Connector{cfg: cfg, platform: &platform{client}}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("ad platform: %w", err)
	}
	return c, nil
}

func (c Config) withDefaults() Config {
	if c.KeyRetention == 0 {
		c.KeyRetention = 24 * time.Hour
	}
	if c.SettleFor == 0 {
		c.SettleFor = connector.DefaultClocks().SettleFor
	}
	if c.CompareUpTo == 0 {
		c.CompareUpTo = 2000
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 5 * time.Second
	}
	return c
}

// check looks at what only this connector knows; the target's own part is checked by httptarget.
func (c Config) check() error {
	switch {
	case c.System == "":
		return errors.New("the system (host and account) needs a name")
	case c.KeyRetention < 0 || c.SettleFor < 0 || c.CompareUpTo < 0 || c.ReadTimeout < 0:
		return errors.New("a limit cannot be negative")
	}
	return nil
}

func (c *Connector) load() error {
	texts, err := fs.Sub(files, "texts")
	if err != nil {
		return err
	}
	schemas := map[string][]byte{}
	for _, name := range []string{"budget_change", "campaigns_find", "campaign"} {
		if schemas[name], err = files.ReadFile("schema/" + name + ".json"); err != nil {
			return err
		}
	}
	c.texts = texts
	c.action = connector.Action{
		Name: ActionName, Version: 1, Scopes: []string{ScopeBudget}, ReadScopes: []string{ScopeRead},
		Input: schemas["budget_change"], Clocks: c.cfg.Clocks, ResolveBy: c.cfg.ResolveBy,
	}
	c.find = connector.Find{
		Name: FindName, Scopes: []string{ScopeRead}, Input: schemas["campaigns_find"], Item: schemas["campaign"],
	}
	return nil
}

// Describe says what the connector offers.
func (c *Connector) Describe() connector.Description {
	able := connector.Capabilities{
		Lookup:       !c.cfg.NoLookup,
		Replay:       c.cfg.HonoursKeys,
		Precondition: true,
		SettleFor:    c.cfg.SettleFor,
		Sandbox:      c.cfg.Sandbox,
	}
	if able.Replay {
		able.ReplayFor = c.cfg.KeyRetention
	}
	return connector.Description{
		System: c.cfg.System, Actions: []connector.Action{c.action}, Finds: []connector.Find{c.find},
		Able: able, Texts: c.texts,
	}
}

// Close lets go of idle connections.
func (c *Connector) Close() { c.platform.Close() }
