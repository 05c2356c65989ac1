package rollback_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/connectortest"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
)

const token = "simulator-token"

// mori is a release manager whom the simulator knows, acting through an agent.
var mori = person(target.UserMori)

func person(name string) actor.Actor {
	return actor.Actor{Tenant: "t1", Kind: actor.Agent, Issuer: "https://issuer.example", Subject: "agent-7", For: name}
}

// startDeploys runs a simulator of its own for one test.
func startDeploys(t *testing.T, honourKeys bool) (*target.Deploys, *httptest.Server) {
	t.Helper()
	d := target.NewDeploys(target.DeploysConfig{PlatformConfig: target.PlatformConfig{Token: token, HonourKeys: honourKeys}, Seed: 1})
	server := httptest.NewServer(d)
	t.Cleanup(func() { _ = d.Close(); server.Close() })
	return d, server
}

func connect(t *testing.T, cfg rollback.Config) *rollback.Connector {
	t.Helper()
	if cfg.Token == "" {
		cfg.Token = token
	}
	cfg.System = "deploys.example/platform"
	c, err := rollback.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestConnectorSuite(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]rollback.Config{
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

func rig(t *testing.T, cfg rollback.Config) connectortest.Rig {
	t.Helper()
	d, server := startDeploys(t, cfg.HonoursKeys)
	return connectortest.Rig{
		Address: strings.TrimPrefix(server.URL, "http://"),
		At: func(t *testing.T, address string) connector.Connector {
			at := cfg
			at.BaseURL = "http://" + address
			return connect(t, at)
		},
		Actor: mori, Action: rollback.ActionName, Input: with(nil),
		Effects: func(key string) int { return d.CountersFor(key).Effects },
		State:   func() string { return fmt.Sprint(d.Deployments(), d.Entries(), d.Counters().Total) },
		Move:    func(t *testing.T) { deploy(t, d, target.NewDeployment{}) },
		Refuse:  func(t *testing.T) { spoil(t, d, target.CheckoutAPIPrevious) },
		InProgress: func(t *testing.T) {
			if err := d.AddFault(target.Once(target.OpChange, "", target.Step{Action: target.StatusBefore, Status: 409})); err != nil {
				t.Fatal(err)
			}
		},
		Finds: map[string]connector.Input{rollback.FindName: {"service": target.ServiceCheckoutAPI, "environment": target.EnvProduction}},
		Hollow: []string{
			`{"rollbacks":null}`, `{"rollbacks":{}}`, `{"rollbacks":[`, `{"rollbacks":[{}]}`, `{"rollbacks":[]}{}`, `{"rollbacks":[{"key":"other"}]}`,
			`{"Rollbacks":[]}`,
		},
	}
}

// deploy is someone else's deployment of checkout-api in production, unless n says otherwise.
func deploy(t *testing.T, d *target.Deploys, n target.NewDeployment) target.Deployment {
	t.Helper()
	if n.Service == "" {
		n.Service, n.Environment = target.ServiceCheckoutAPI, target.EnvProduction
	}
	if n.Version == "" {
		n.Version = "v2026.12.1"
	}
	n.Author = "abe@platform.example"
	made, err := d.Deploy(n)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// spoil makes a deployment one that cannot be activated.
func spoil(t *testing.T, d *target.Deploys, id string) {
	t.Helper()
	if _, err := d.SetDeploymentStatus(id, target.StatusFailed); err != nil {
		t.Fatal(err)
	}
}
