package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/test/fleet"
)

// attack is one attack.
type attack struct {
	name string
	// what is tried, and what the service does about it.
	what, defence string
	run           func(*world)
}

// public is the service's address as people know it; TLS would end in front of it.
const public = "https://cutonce.example"

// neighbour is a tenant whose people sign in at the same provider.
const neighbour = "initech"

// stage is the service under attack and what it stands between.
type stage struct {
	f        *fleet.Fleet
	database string
	db       *pgxpool.Pool
	// p is the service. Its platform is reached by way of the recorder.
	p *fleet.Process
	// home is the issuer of the tenant acme, where people sign in as well; partner is one that may speak for globex alone.
	home, partner *provider
	recorder      *recorder
	// elsewhere is a server of the attacker's, which nobody must call.
	elsewhere *elsewhere
	client    *http.Client

	mu sync.Mutex
	// said are the answers so far, to be searched for secrets; tokens are those that were used.
	said   []string
	tokens []string
	closes []func()
}

func open(ctx context.Context, f *fleet.Fleet) (*stage, error) {
	s := &stage{f: f, client: &http.Client{
		Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if err := s.openOthers(); err != nil {
		return s, err
	}
	var err error
	if s.database, err = f.Database(ctx); err != nil {
		return s, err
	}
	if s.db, err = pgxpool.New(ctx, s.database); err != nil {
		return s, fmt.Errorf("connecting to the database: %w", err)
	}
	s.closes = append(s.closes, s.db.Close)
	s.p, err = f.Serve(ctx, s.replica())
	return s, err
}

// openOthers starts everything around the service.
func (s *stage) openOthers() (err error) {
	var problems []error
	s.home, err = newProvider(fleet.Tenant)
	problems = append(problems, err)
	s.partner, err = newProvider("globex")
	problems = append(problems, err)
	s.recorder, err = newRecorder(s.f.Ads.BaseURL)
	problems = append(problems, err)
	s.elsewhere, err = newElsewhere()
	if err := errors.Join(append(problems, err)...); err != nil {
		return err
	}
	s.closes = append(s.closes, s.home.Close, s.partner.Close, s.recorder.Close, s.elsewhere.Close)
	return nil
}

// replica is the service as it is run in production, but for TLS.
func (s *stage) replica() fleet.Replica {
	return fleet.Replica{Database: s.database, Target: s.recorder.URL, Env: []string{
		"CUTONCE_PUBLIC_URL=" + public, "CUTONCE_LOG_LEVEL=DEBUG",
		"CUTONCE_ISSUER2_URL=" + s.home.URL, "CUTONCE_ISSUER2_AGENT_CLIENTS=" + bot, "CUTONCE_ISSUER2_HUMAN_CLIENTS=" + console,
		"CUTONCE_ISSUER2_TENANTS=" + fleet.Tenant + "," + neighbour,
		"CUTONCE_ISSUER3_URL=" + s.partner.URL, "CUTONCE_ISSUER3_AGENT_CLIENTS=" + bot, "CUTONCE_ISSUER3_HUMAN_CLIENTS=" + console,
		"CUTONCE_ISSUER3_TENANTS=globex",
		"CUTONCE_SIGNIN_ISSUER=" + s.home.URL, "CUTONCE_SIGNIN_CLIENT_ID=" + console, "CUTONCE_SIGNIN_CLIENT_SECRET=" + consoleSecret,
	}}
}

func (s *stage) close() {
	for _, do := range s.closes {
		do()
	}
}

// patience bounds one attack.
const patience = 2 * time.Minute

func (s *stage) one(ctx context.Context, a attack) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := &world{stage: s, ctx: ctx, p: s.p, db: s.db}
	began := time.Now()
	done := make(chan struct{})
	go func() { // a goroutine of its own, because a failure ends it (see world.fail)
		defer close(done)
		defer w.close()
		a.run(w)
		w.still()
		w.held = true
	}()
	<-done
	verdict := "REFUSED"
	if !w.held {
		verdict = "SUCCEEDED"
	}
	fmt.Printf("%-3s %-9s %5.1fs  %s\n", a.name, verdict, time.Since(began).Seconds(), a.what)
	if !w.held {
		fmt.Printf("    %s\n    --- the service's last words:\n%s\n", w.failure, tail(w.p.Log(), 8))
	}
	return w.held
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}
