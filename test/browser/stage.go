package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

// stage is everything that runs: the fleet's Postgres and ad platform, a deployment platform, the identity provider, two services on
// one database behind fronts of their own, and the browser.
type stage struct {
	f        *fleet.Fleet
	database string
	provider *provider
	deploys  target.Control
	// usual and hasty are the doors of two replicas; what is asked for at the hasty one must be decided soon.
	usual, hasty *door
	chrome       *chrome
	axe          string
	// failures is where pictures of failed checks go, if anywhere.
	failures string

	// whole is the life of everything, tours the walks past all screens; screens are what is seen there, once it is furnished.
	whole   context.Context
	tours   []*tour
	furnish sync.Once
	screens []screen

	mu         sync.Mutex
	violations int
	scenes     atomic.Int64
	made       atomic.Int64
	closes     []func()
}

// door is one replica and the front through which browsers reach it.
type door struct {
	*front
	process *fleet.Process
}

// hasteFor is how long there is to decide what was asked for at the hasty replica: long enough for a busy machine to show the page
// before it is over.
const hasteFor = 25 * time.Second

// open starts all of it. close ends it, also after an error.
func open(ctx context.Context, binary string) (*stage, error) {
	if _, err := findBrowser(); err != nil {
		return nil, err
	}
	f, err := fleet.Start(ctx, fleet.Config{Binary: binary, Clocks: map[string]string{
		"SEND": "3s", "LEASE": "6s", "SEND_MARGIN": "500ms", "SETTLE": "2s", "SWEEP": "300ms", "PROBE_BASE": "200ms", "APPLY_WAIT": "5s", "SEAL": "500ms",
	}})
	s := &stage{f: f, whole: ctx, tours: tours()}
	if f != nil {
		s.closes = append(s.closes, f.Close)
	}
	if err != nil {
		return s, err
	}
	if s.provider, err = newProvider(); err != nil {
		return s, err
	}
	s.closes = append(s.closes, s.provider.Close)
	if err := s.startDeploys(ctx); err != nil {
		return s, err
	}
	if err := s.startServices(ctx); err != nil {
		return s, err
	}
	s.chrome, err = startChrome(ctx, s.usual.publicKey())
	if s.chrome != nil {
		s.closes = append(s.closes, s.chrome.close)
	}
	return s, err
}

func (s *stage) close() {
	for i := len(s.closes) - 1; i >= 0; i-- {
		s.closes[i]()
	}
	s.closes = nil
}

func (s *stage) startDeploys(ctx context.Context) error {
	address, err := fleet.FreeAddress()
	if err != nil {
		return err
	}
	s.deploys = target.Control{BaseURL: "http://" + address, Token: s.f.Ads.Token}
	process, err := child.Start(child.Config{
		Path: s.f.Binary, Args: []string{"target", "deploys", "--listen", address, "--quiet", "--until-stdin-closes"},
		Env: []string{"CUTONCE_TARGET_TOKEN=" + s.deploys.Token},
	})
	if err != nil {
		return err
	}
	s.closes = append(s.closes, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = process.Stop(ctx)
	})
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return fleet.Until(ctx, "the deployment platform", func() bool {
		response, err := http.Get(s.deploys.BaseURL + "/healthz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func (s *stage) startServices(ctx context.Context) (err error) {
	rules := filepath.Join(s.f.Dir, "browser-policy")
	if err := errors.Join(os.Mkdir(rules, 0o755), os.WriteFile(filepath.Join(rules, "policy.yaml"), []byte(policyOfTheSuite), 0o644)); err != nil {
		return err
	}
	if s.database, err = s.f.Database(ctx); err != nil {
		return err
	}
	if s.usual, err = s.serve(ctx, s.database, rules); err != nil {
		return err
	}
	s.hasty, err = s.serve(ctx, s.database, rules, "CUTONCE_CLOCK_APPROVAL="+hasteFor.String())
	return err
}

// limitless takes the service's limits away, for a service of a check's own.
var limitless = []string{"CUTONCE_LIMIT_ACTOR=0", "CUTONCE_LIMIT_TENANT=0", "CUTONCE_LIMIT_ACTION=0", "CUTONCE_LIMIT_OPEN=0"}

// crowded is the door of a service with a database of its own, whose limits let one agent ask for a thousand changes at once.
func (s *stage) crowded(ctx context.Context) (*door, error) {
	database, err := s.f.Database(ctx)
	if err != nil {
		return nil, err
	}
	return s.serve(ctx, database, filepath.Join(s.f.Dir, "browser-policy"), limitless...)
}

// serve starts a replica as in production, behind TLS.
func (s *stage) serve(ctx context.Context, database, rules string, more ...string) (*door, error) {
	d := &door{front: newFront()}
	s.closes = append(s.closes, func() {
		d.CloseClientConnections()
		d.Close()
	})
	var err error
	d.process, err = s.f.Launch(fleet.Replica{Database: database, Env: append([]string{
		"CUTONCE_PUBLIC_URL=" + d.URL, "CUTONCE_POLICY_DIR=" + rules,
		"CUTONCE_ISSUER2_URL=" + s.provider.URL, "CUTONCE_ISSUER2_AGENT_CLIENTS=" + bot, "CUTONCE_ISSUER2_HUMAN_CLIENTS=" + consoleClient,
		"CUTONCE_SIGNIN_ISSUER=" + s.provider.URL, "CUTONCE_SIGNIN_CLIENT_ID=" + consoleClient, "CUTONCE_SIGNIN_CLIENT_SECRET=" + consoleSecret,
		"CUTONCE_DEPLOYS_URL=" + s.deploys.BaseURL, "CUTONCE_DEPLOYS_TOKEN=" + s.deploys.Token, "CUTONCE_DEPLOYS_SYSTEM=deploys.example/fleet",
	}, more...)})
	if err != nil {
		return d, err
	}
	if err := d.lead(d.process.URL); err != nil {
		return d, err
	}
	if err := d.process.Ready(ctx); err != nil {
		return d, fmt.Errorf("the service does not get ready: %w\n%s", err, d.process.Log())
	}
	return d, nil
}

// policyOfTheSuite has a rule for each thing that a page must show. Amounts are in yen: campaigns start with fleet.Budget a day.
const policyOfTheSuite = `version: 1
zone: Asia/Tokyo
default:
  require: [{any_of: [ads-approvers], count: 1}]
caps:
  - name: campaign_day
    actions: [budget_change]
    field: daily_budget
    per: target
    window: day
    limit: {JPY: 5000000, KRW: 5000000, USD: "5000.00"}
rules:
  - name: small-change
    actions: [budget_change]
    when: change.daily_budget <= percent(50)
    then: allow
  - name: large-raise
    actions: [budget_change]
    when: change.daily_budget > percent(50) && change.daily_budget <= percent(300)
    then: {require: [{any_of: [ads-approvers], count: 1}]}
    message: {en: An approver looks at a large raise., ja: 大幅な増額は承認者が確認します。}
  - name: two-people
    actions: [budget_change]
    when: change.daily_budget > percent(300) && change.daily_budget <= percent(500)
    then: {require: [{any_of: [ads-approvers], count: 2}]}
    message: {en: Two approvers look at a very large raise., ja: 特に大幅な増額は承認者2人が確認します。}
  - name: enormous-raise
    actions: [budget_change]
    when: change.daily_budget > percent(500) && change.daily_budget <= percent(5000)
    then: {require: [{any_of: [ads-approvers], count: 1}]}
    risk: high
    message: {en: An enormous raise needs care., ja: 極めて大幅な増額には注意が必要です。}
  - name: absurd-raise
    actions: [budget_change]
    when: change.daily_budget > percent(5000)
    then: deny
    message: {en: Nobody can approve this., ja: これは誰も承認できません。}
  - name: from-zero
    actions: [budget_change]
    when: before.daily_budget.is_zero
    then: {require: [{any_of: [ads-approvers], count: 1}]}
  - name: rollback
    actions: [deployment_rollback]
    when: "true"
    then: {require: [{any_of: [release-managers], count: 1}]}
`
