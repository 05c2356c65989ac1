package rollback_test

import (
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector/rollback"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := rollback.Config{BaseURL: "https://deploys.example/api", Token: "t", System: "deploys.example/platform"}
	if _, err := rollback.New(good); err != nil {
		t.Fatalf("a good configuration: %v", err)
	}
	for name, spoil := range map[string]func(*rollback.Config){
		"no URL":                 func(c *rollback.Config) { c.BaseURL = "" },
		"a URL without a host":   func(c *rollback.Config) { c.BaseURL = "https:///api" },
		"another scheme":         func(c *rollback.Config) { c.BaseURL = "ftp://deploys.example" },
		"a credential in it":     func(c *rollback.Config) { c.BaseURL = "https://me:secret@deploys.example" },
		"a query in it":          func(c *rollback.Config) { c.BaseURL = "https://deploys.example?x=1" },
		"plain http outside":     func(c *rollback.Config) { c.BaseURL = "http://deploys.example" },
		"no token":               func(c *rollback.Config) { c.Token = "" },
		"a token with a newline": func(c *rollback.Config) { c.Token = "t\n" },
		"no system":              func(c *rollback.Config) { c.System = "" },
		"negative settle time":   func(c *rollback.Config) { c.SettleFor = -time.Second },
		"negative history":       func(c *rollback.Config) { c.HistoryUpTo = -1 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := rollback.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for _, address := range []string{"http://127.0.0.1:8791", "http://[::1]:8791", "http://localhost:8791"} {
		cfg := good
		cfg.BaseURL = address
		if _, err := rollback.New(cfg); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	allowed := good
	allowed.BaseURL, allowed.AllowPlainHTTP = "http://target:8791", true
	if _, err := rollback.New(allowed); err != nil {
		t.Errorf("plain http that was allowed: %v", err)
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	cfg := rollback.Config{BaseURL: "https://deploys.example", Token: "t", System: "deploys.example/platform"}
	c, err := rollback.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if able := c.Describe().Able; !able.Lookup || able.Replay || able.ReplayFor != 0 || able.SettleFor != time.Minute || !able.Precondition || able.Sandbox {
		t.Errorf("by default: got %+v", able)
	}
	cfg.HonoursKeys, cfg.NoLookup, cfg.KeyRetention, cfg.SettleFor, cfg.Sandbox = true, true, time.Hour, time.Second, true
	if c, err = rollback.New(cfg); err != nil {
		t.Fatal(err)
	}
	if able := c.Describe().Able; able.Lookup || !able.Replay || able.ReplayFor != time.Hour || able.SettleFor != time.Second || !able.Sandbox {
		t.Errorf("as configured: got %+v", able)
	}
	action := c.Describe().Actions[0]
	if action.Scopes[0] != "deploy:rollback" || action.ReadScopes[0] != "deploy:read" || c.Describe().Finds[0].Scopes[0] != "deploy:read" {
		t.Errorf("scopes: got %v, %v, %v", action.Scopes, action.ReadScopes, c.Describe().Finds[0].Scopes)
	}
}
