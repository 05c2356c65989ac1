package adbudget_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/connectortest"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
)

const token = "simulator-token"

// sato is a person whom the simulator knows, acting through an agent.
var sato = actor.Actor{Tenant: "t1", Kind: actor.Agent, Issuer: "https://issuer.example", Subject: "agent-7", For: target.UserSato}

// startAds runs a simulator of its own for one test.
func startAds(t *testing.T, honourKeys bool) (*target.Ads, *httptest.Server) {
	t.Helper()
	ads := target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: token, HonourKeys: honourKeys}, Seed: 1})
	server := httptest.NewServer(ads)
	t.Cleanup(func() { _ = ads.Close(); server.Close() })
	return ads, server
}

func connect(t *testing.T, cfg adbudget.Config) *adbudget.Connector {
	t.Helper()
	if cfg.Token == "" {
		cfg.Token = token
	}
	cfg.System = "ads.example/agency"
	c, err := adbudget.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestConnectorSuite(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]adbudget.Config{
		"keys and history":   {HonoursKeys: true},
		"history only":       {},
		"keys only":          {HonoursKeys: true, NoLookup: true},
		"neither of the two": {NoLookup: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connectortest.Run(t, connectortest.Subject{New: func(t *testing.T) connectortest.Rig { return rig(t, cfg) }})
		})
	}
}

func rig(t *testing.T, cfg adbudget.Config) connectortest.Rig {
	t.Helper()
	ads, server := startAds(t, cfg.HonoursKeys)
	id := target.PlainJPY(0)
	fault := func(t *testing.T, f target.Fault) {
		t.Helper()
		if err := ads.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	return connectortest.Rig{
		Address: strings.TrimPrefix(server.URL, "http://"),
		At: func(t *testing.T, address string) connector.Connector {
			at := cfg
			at.BaseURL = "http://" + address
			return connect(t, at)
		},
		Actor: sato, Action: adbudget.ActionName,
		Input:   connector.Input{"campaign_id": id, "new_daily_budget_jpy": number("12000"), "reason": "the suite"},
		Effects: func(key string) int { return ads.CountersFor(key).Effects },
		State:   func() string { return fmt.Sprint(ads.Campaigns(), ads.Entries(), ads.Counters().Total) },
		Move: func(t *testing.T) {
			if err := ads.SetBudget(id, "11000"); err != nil {
				t.Fatal(err)
			}
		},
		Refuse: func(t *testing.T) {
			if _, err := ads.Edit(id, target.CampaignEdit{Status: target.StatusRemoved}); err != nil {
				t.Fatal(err)
			}
		},
		InProgress: func(t *testing.T) {
			fault(t, target.Once(target.OpChange, id, target.Step{Action: target.StatusBefore, Status: 409}))
		},
		Finds:  map[string]connector.Input{adbudget.FindName: {"query": "メロン"}},
		Hollow: []string{`{"changes":null}`, `{"changes":{}}`, `{"changes":[`, `{"changes":[{}]}`, `{"changes":[]}{}`, `{"changes":[{"key":"other"}]}`},
	}
}
