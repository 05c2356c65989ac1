package main

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/target"
)

// candidates are the connectors of this build. One more is one more entry here.
func candidates() []candidate {
	return []candidate{
		{
			action: adbudget.ActionName, platform: "ads", human: target.UserSato,
			make:   func(s config.Settings) (connector.Connector, error) { return adbudget.New(adsOf(s)) },
			target: func(s *config.Settings) *config.Target { return &s.Ads },
			simulate: func(token string, keys bool) (simulated, error) {
				return serveSimulated(newAds(1, platformOf(token, keys)))
			},
			input: connector.Input{
				"campaign_id": target.PlainJPY(0), "new_daily_budget_jpy": json.Number("12000"), "reason": "cutonce connector test",
			},
		},
		{
			action: rollback.ActionName, platform: "deploys", human: target.UserMori,
			make:   func(s config.Settings) (connector.Connector, error) { return rollback.New(deploysOf(s)) },
			target: func(s *config.Settings) *config.Target { return &s.Deploys },
			simulate: func(token string, keys bool) (simulated, error) {
				return serveSimulated(newDeploys(1, platformOf(token, keys)))
			},
			input: connector.Input{
				"service": target.ServiceCheckoutAPI, "environment": target.EnvProduction, "to_deployment_id": target.CheckoutAPIPrevious,
				"expect_current_deployment_id": target.CheckoutAPICurrent, "reason": "cutonce connector test",
			},
		},
	}
}

func platformOf(token string, keys bool) target.PlatformConfig {
	return target.PlatformConfig{Token: token, HonourKeys: keys, Clock: time.Now}
}

// simulated is a simulator in this process.
type simulated struct {
	address string
	effects func(key string) int
	stop    func()
}

func serveSimulated(platform http.Handler) (simulated, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return simulated{}, err
	}
	server := &http.Server{Handler: platform, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	counting := platform.(interface {
		CountersFor(key string) target.Tally
		Close() error
	})
	return simulated{
		address: listener.Addr().String(), effects: func(key string) int { return counting.CountersFor(key).Effects },
		stop: func() { _ = counting.Close(); _ = server.Close() },
	}, nil
}
