package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/test/fleet"
)

// The clocks, scaled down so that a minute holds thousands of leases, and each bounds what the suite waits for.
const (
	lease = 1500 * time.Millisecond
	sweep = 200 * time.Millisecond
	// longestCall is longer than the service holds any call.
	longestCall = 10 * time.Second
)

func clocks() map[string]string {
	return map[string]string{
		"PREVIEW_TTL": "3s", "APPROVAL": "6s", "APPLY_WINDOW": "6s", "SEND": "500ms", "LEASE": lease.String(), "SEND_MARGIN": "100ms",
		"SETTLE": "500ms", "SWEEP": sweep.String(), "PROBE_BASE": "100ms", "APPLY_WAIT": "2s", "SEAL": "500ms",
	}
}

// world is the fleet and the people who use it.
type world struct {
	seed     uint64
	fleet    *fleet.Fleet
	database string
	// settings are each replica's; its address stays the same over restarts.
	settings [replicas]fleet.Replica
	// links are what each replica reaches the world through.
	links     [replicas]links
	processes [replicas]*fleet.Process
	callers   map[string]fleet.Caller
	campaigns campaigns
	journal   *journal
	cycles    atomic.Int64
	// doubled are the campaigns at which some request was to be delivered twice, and doubles how many such orders were given.
	doubled sync.Map
	doubles atomic.Int64
}

type links struct{ database, target *wire.Proxy }

type campaigns struct {
	own    [clients][ownCampaigns]string
	shared [sharedCampaigns]string
}

func (c campaigns) of(client, n int) string {
	if n < ownCampaigns {
		return c.own[client][n]
	}
	return c.shared[n-ownCampaigns]
}

// looksUp tells what the target of a seed can do for an unknown outcome: most can look up by key; some only remember keys, so that
// replays and operators settle it.
func looksUp(seed uint64) bool { return stream(seed, 1<<20, 0).IntN(4) > 0 }

// open starts everything. close ends it, also after an error.
func (w *world) open(ctx context.Context, binary string) (err error) {
	c := fleet.Config{Binary: binary, Clocks: clocks(), Postgres: pglocal.Config{MaxConnections: 120}}
	var env []string
	if !looksUp(w.seed) {
		c.Target = []string{"--honour-keys"}
		env = []string{"CUTONCE_ADS_HONOURS_KEYS=true", "CUTONCE_ADS_NO_LOOKUP=true"}
	}
	if w.fleet, err = fleet.Start(ctx, c); err != nil {
		return err
	}
	if w.database, err = w.fleet.Database(ctx); err != nil {
		return err
	}
	for i := range replicas {
		r := fleet.Replica{Env: append([]string{"CUTONCE_SEAL_WITNESS=" + w.witness(i)}, env...)}
		if w.links[i].database, r.Database, err = wire.Through(w.database); err != nil {
			return err
		}
		if w.links[i].target, r.Target, err = wire.Through(w.fleet.Ads.BaseURL); err != nil {
			return err
		}
		if w.processes[i], err = w.fleet.Serve(ctx, r); err != nil {
			return fmt.Errorf("starting replica %d: %w", i, err)
		}
		w.settings[i] = w.processes[i].Replica
	}
	return errors.Join(w.people(), w.targets(ctx))
}

func (w *world) close() {
	if w.fleet != nil {
		w.fleet.Close()
	}
	for _, l := range w.links {
		for _, proxy := range []*wire.Proxy{l.database, l.target} {
			if proxy != nil {
				proxy.Close()
			}
		}
	}
}

func (w *world) people() (err error) {
	w.callers = map[string]fleet.Caller{}
	for _, who := range []string{"agent", approvers[0], approvers[1], "oper"} {
		if w.callers[who], err = w.fleet.As(who, w.processes[0]); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) targets(ctx context.Context) (err error) {
	for i := range w.campaigns.shared {
		if w.campaigns.shared[i], err = w.fleet.Campaign(ctx); err != nil {
			return err
		}
	}
	for c := range clients {
		for i := range ownCampaigns {
			if w.campaigns.own[c][i], err = w.fleet.Campaign(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// at is somebody at a replica, which may be gone.
func (w *world) at(who string, replica int) fleet.Caller {
	c := w.callers[who]
	c.URL = "http://" + w.settings[replica].Listen
	return c
}

// nameOf is an ID as callers write it.
func nameOf(id [16]byte) string { return preview.ID(id).String() }
