// Package rollback rolls deployments back on a deployment platform: the action deployment_rollback and the tool
// deployments_find.
//
// The promise: a rollback goes to exactly the deployment that was shown, from exactly the one that was active then; what it
// undoes, and whose work that is, is told before anybody agrees to it; a database migration in between is never passed over,
// and where the history cannot be read whole, that is said rather than counted as none; and the platform's own permissions
// of the human behind the call are asked for each look, preview and apply.
//
// It does not promise that the older build runs with the data that a newer one has written, nor that a migration is undone:
// a rollback changes which build runs and nothing else. It trusts the platform's marks for migrations.
//
// A rollback is itself a deployment on the platform, with an ID of its own. Wherever one is meant, this connector names the
// deployment whose build it runs: rolling back to dep-105 leaves the environment at "dep-105", and undoing that is the same
// action with the later deployment as its destination.
//
// Start at New; Prepare, Execute and Lookup are each in a file of that name. answer.go holds the one table of what the
// platform's answers prove.
package rollback

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
	ActionName = "deployment_rollback"
	FindName   = "deployments_find"
	// Kind is the kind of every target; its ID is "service/environment".
	Kind = "environment"

	// The fields that change: whose build runs, and what that build is.
	FieldDeployment = "deployment"
	FieldVersion    = "version"
	FieldCommit     = "commit"

	// ScopeRead and ScopeRollback are what the tools need.
	ScopeRead     = "deploy:read"
	ScopeRollback = "deploy:rollback"
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
	// NoLookup: the platform cannot find a rollback by its request key.
	NoLookup bool
	// SettleFor is how long after a send an empty answer of that look-up proves nothing (60 s if zero).
	SettleFor time.Duration
	// HistoryUpTo is how many deployments of an environment are read at most to tell what lies in between (1000 if zero).
	HistoryUpTo int
	// ResolveBy is how many operators settle an outcome that nobody can look up: one (also if zero) or two.
	ResolveBy int
	// Sandbox: tests may roll deployments back here.
	Sandbox bool
	// Clocks override the service's defaults for the action.
	Clocks connector.Clocks

	// HTTP is for sends; reads use it too, with ReadTimeout (5 s if zero).
	HTTP        connector.HTTPConfig
	ReadTimeout time.Duration
}

// Connector is the deployment platform as package connector sees it. It is safe for concurrent use.
type Connector struct {
	cfg      Config
	platform *platform
	texts    fs.FS
	action   connector.Action
	find     connector.Find
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
		return nil, fmt.Errorf("deployment platform: %w", err)
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("deployment platform: %w", err)
	}
	c := &Connector{cfg: cfg, platform: &platform{client}}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("deployment platform: %w", err)
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
	if c.HistoryUpTo == 0 {
		c.HistoryUpTo = 1000
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
	case c.KeyRetention < 0 || c.SettleFor < 0 || c.HistoryUpTo < 0 || c.ReadTimeout < 0:
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
	for _, name := range []string{"deployment_rollback", "deployments_find", "deployment"} {
		if schemas[name], err = files.ReadFile("schema/" + name + ".json"); err != nil {
			return err
		}
	}
	c.texts = texts
	c.action = connector.Action{
		Name: ActionName, Version: 1, Scopes: []string{ScopeRollback}, ReadScopes: []string{ScopeRead},
		Input: schemas["deployment_rollback"], Clocks: c.cfg.Clocks, ResolveBy: c.cfg.ResolveBy,
	}
	c.find = connector.Find{
		Name: FindName, Scopes: []string{ScopeRead}, Input: schemas["deployments_find"], Item: schemas["deployment"],
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
