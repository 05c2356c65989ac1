package adbudget_test

import (
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector/adbudget"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := adbudget.Config{BaseURL: "https://ads.example/api", Token: "t", System: "ads.example/agency"}
	if _, err := adbudget.New(good); err != nil {
		t.Fatalf("a good configuration: %v", err)
	}
	for name, spoil := range map[string]func(*adbudget.Config){
		"no URL":                 func(c *adbudget.Config) { c.BaseURL = "" },
		"a URL without a host":   func(c *adbudget.Config) { c.BaseURL = "https:///api" },
		"another scheme":         func(c *adbudget.Config) { c.BaseURL = "ftp://ads.example" },
		"a credential in it":     func(c *adbudget.Config) { c.BaseURL = "https://me:secret@ads.example" },
		"a query in it":          func(c *adbudget.Config) { c.BaseURL = "https://ads.example?x=1" },
		"plain http outside":     func(c *adbudget.Config) { c.BaseURL = "http://ads.example" },
		"no token":               func(c *adbudget.Config) { c.Token = "" },
		"a token with a newline": func(c *adbudget.Config) { c.Token = "t\n" },
		"no system":              func(c *adbudget.Config) { c.System = "" },
		"negative settle time":   func(c *adbudget.Config) { c.SettleFor = -time.Second },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := adbudget.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for _, address := range []string{"http://127.0.0.1:8790", "http://[::1]:8790", "http://localhost:8790"} {
		cfg := good
		cfg.BaseURL = address
		if _, err := adbudget.New(cfg); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	allowed := good
	allowed.BaseURL, allowed.AllowPlainHTTP = "http://target:8790", true
	if _, err := adbudget.New(allowed); err != nil {
		t.Errorf("plain http that was allowed: %v", err)
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	cfg := adbudget.Config{BaseURL: "https://ads.example", Token: "t", System: "ads.example/agency"}
	describe := func(change func(*adbudget.Config)) (lookup, replay bool, keptFor, settle time.Duration) {
		given := cfg
		change(&given)
		c, err := adbudget.New(given)
		if err != nil {
			t.Fatal(err)
		}
		able := c.Describe().Able
		return able.Lookup, able.Replay, able.ReplayFor, able.SettleFor
	}
	if lookup, replay, kept, settle := describe(func(*adbudget.Config) {}); !lookup || replay || kept != 0 || settle != time.Minute {
		t.Errorf("by default: got look-up %t, replay %t for %v, settle %v", lookup, replay, kept, settle)
	}
	lookup, replay, kept, settle := describe(func(c *adbudget.Config) {
		c.HonoursKeys, c.NoLookup, c.KeyRetention, c.SettleFor = true, true, time.Hour, time.Second
	})
	if lookup || !replay || kept != time.Hour || settle != time.Second {
		t.Errorf("as configured: got look-up %t, replay %t for %v, settle %v", lookup, replay, kept, settle)
	}
}
