package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/metrics"
	"github.com/cutonce/cutonce/notify/outbox"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// blueprint is what a service is built from.
type blueprint struct {
	settings config.Settings
	// rules are the policy files.
	rules fs.FS
	log   *slog.Logger
	// dev is the development issuer's door, nil in production.
	dev *devDoor
}

// service is everything that one process serves, built and not yet running.
type service struct {
	blueprint
	actions   *connector.Registry
	texts     *catalog.Catalog
	store     *store.Store
	verifier  *auth.Verifier
	previews  *preview.Service
	approvals *approvals.Service
	commits   *commit.Service
	metrics   *metrics.Metrics
	limiter   limits
	sealer    audit.Sealer
	// outbox tells people, nil where no file says whom.
	outbox  *outbox.Outbox
	closers []func()
}

// build makes the parts in the order in which they need each other. When it returns an error, nothing is left open.
func build(ctx context.Context, b blueprint) (_ *service, err error) {
	s := &service{blueprint: b}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	rules, err := s.loadActions()
	if err != nil {
		return nil, err
	}
	if err := s.openStore(ctx); err != nil {
		return nil, err
	}
	if err := s.prepareSealing(ctx); err != nil {
		return nil, err
	}
	source, err := policySource(b.rules)
	if err != nil {
		return nil, err
	}
	if err := s.activate(ctx, rules.Version(), source); err != nil {
		return nil, err
	}
	b.log.Info("policy active", "version", rules.Version())
	// Keys are fetched for as long as requests are answered, which is longer than ctx lives.
	keys, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.closers = append(s.closers, stop)
	if s.verifier, err = auth.New(keys, verifierOf(b.settings, b.log)); err != nil {
		return nil, err
	}
	if err := s.makeServices(rules); err != nil {
		return nil, err
	}
	return s, s.prepareNotify(ctx)
}

// loadActions makes the connectors and the texts, and compiles the policy about them. It asks nobody for anything.
func (s *service) loadActions() (*policy.Policy, error) {
	connectors, err := s.connectors()
	if err != nil {
		return nil, err
	}
	if s.actions, err = connector.NewRegistry(connectors...); err != nil {
		return nil, err
	}
	if s.texts, err = catalog.New(s.actions.Texts()...); err != nil {
		return nil, err
	}
	rules, err := policy.Load(s.rules)
	if err != nil && s.settings.PolicyDir != "" {
		return nil, fmt.Errorf("the policy in %s (CUTONCE_POLICY_DIR): %w", s.settings.PolicyDir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the policy: %w", err)
	}
	if err := rules.CheckActions(knownActions); err != nil {
		return nil, fmt.Errorf("the policy: %w", err)
	}
	return rules, nil
}

// activate puts the policy in force. In development, whoever edits the file decides.
func (s *service) activate(ctx context.Context, version, source string) error {
	if s.dev != nil || s.settings.PolicyReinstate {
		return s.store.ReinstatePolicy(ctx, version, source)
	}
	err := s.store.ActivatePolicy(ctx, version, source)
	if errors.Is(err, store.ErrSuperseded) {
		return fmt.Errorf("the policy %s… was in force before and another has superseded it: start with the current files, or set "+
			"CUTONCE_POLICY_REINSTATE=true to put this one back in force", version[:12])
	}
	return err
}

// adoptSecret refuses a secret under which the effects of earlier changes would not be found. In development a new one may follow an
// old one, as far as nothing waits.
func (s *service) adoptSecret(ctx context.Context) error {
	err := s.store.AdoptSecret(ctx, []byte(s.settings.Secret), s.settings.SecretReplace || s.dev != nil)
	if errors.Is(err, store.ErrOtherSecret) {
		return errors.New("CUTONCE_SECRET is not the one that this database's changes were sent under: with another one their effects would " +
			"not be found at the targets, and be called absent. Start with the old secret. If it is lost, settle what is unknown " +
			"(cutonce changes list --status unknown), then set CUTONCE_SECRET_REPLACE=true for one start")
	}
	return err
}

// knownActions are those that this build can serve. A rule about one whose platform is not configured is no misspelling.
var knownActions = []string{adbudget.ActionName, rollback.ActionName}

// connectors are those whose platform is configured.
func (s *service) connectors() ([]connector.Connector, error) {
	var all []connector.Connector
	if s.settings.Ads.URL != "" {
		ads, err := adbudget.New(adsOf(s.settings))
		if err != nil {
			return nil, fmt.Errorf("the ad platform's connector: %w", err)
		}
		s.closers = append(s.closers, ads.Close)
		all = append(all, ads)
	}
	if s.settings.Deploys.URL != "" {
		deploys, err := rollback.New(deploysOf(s.settings))
		if err != nil {
			return nil, fmt.Errorf("the deployment platform's connector: %w", err)
		}
		s.closers = append(s.closers, deploys.Close)
		all = append(all, deploys)
	}
	return all, nil
}

// openStore connects to a database that is migrated and durable, or says why it will not.
func (s *service) openStore(ctx context.Context) error {
	if s.settings.Migrate {
		if err := bringUp(ctx, s.settings); err != nil {
			return err
		}
	} else if pending, err := store.Pending(ctx, string(s.settings.DatabaseURL)); err != nil || pending {
		return errors.Join(errors.New("the database's schema is behind this version: run cutonce migrate, or leave CUTONCE_MIGRATE on"), err)
	}
	var err error
	if s.store, err = store.Open(ctx, reached(s.settings)); err != nil {
		return err
	}
	if s.store.Pooled() {
		s.log.Info("a connection pooler stands before the database: statements are not kept prepared (CUTONCE_DATABASE_POOLER)")
	}
	s.closers = append(s.closers, s.store.Close)
	if err := s.adoptSecret(ctx); err != nil {
		return err
	}
	durable, settings, err := s.store.Durability(ctx)
	switch {
	case err != nil:
		return err
	case durable:
		return nil
	case s.settings.AllowUnsafe == config.Unsafe:
		s.log.Warn("the database may forget what it has acknowledged: an effect could happen twice after a power cut", "database", settings)
		return nil
	}
	return fmt.Errorf("the database may forget what it has acknowledged (%s), so that an effect could happen twice after a power cut: "+
		"turn these settings on, or set CUTONCE_ALLOW_UNSAFE_DATABASE=%s where nothing matters", settings, config.Unsafe)
}

func (s *service) makeServices(rules *policy.Policy) error {
	clocks := clocksOf(s.settings.Clock)
	s.metrics = metrics.New(metrics.Config{Version: version, Tenants: tenantsOf(s.settings), Backlog: backlogOf(s.store), Pool: poolOf(s.store), Now: time.Now})
	s.limiter = limits{auth.NewLimiter(limitsOf(s.settings.Limit)), s.metrics}
	var err error
	s.previews, err = preview.NewService(preview.Deps{
		Store: stoppingPreviews(countedPreviews{s.store, s.metrics}), Actions: s.actions, Policy: rules, Clocks: clocks, Log: s.log,
		Limit: s.limiter.Prepare, MaxOpen: s.settings.Limit.Open,
	})
	if err != nil {
		return err
	}
	s.approvals = approvals.NewService(approvals.Deps{
		Store: stoppingApprovals(countedApprovals{s.store, s.metrics}), Actions: s.actions, Policy: rules, Clocks: clocks,
		FreshFor: s.settings.SignIn.FreshFor,
	})
	s.commits = commit.NewService(commit.Deps{
		Store: stoppingCommits(s.store), Actions: s.actions, Holds: s.store, Freezes: s.store, Journal: s.store, Recheck: s.approvals, PolicyVersion: rules.Version(), Secret: []byte(s.settings.Secret),
		Clocks: clocks, SendMargin: s.settings.Clock.SendMargin, ProbeBase: s.settings.Clock.ProbeBase, Log: s.log,
		Observe: observer{s.metrics},
	})
	return nil
}

// close lets go of what build opened, the last first.
func (s *service) close() {
	for n := len(s.closers) - 1; n >= 0; n-- {
		s.closers[n]()
	}
	s.closers = nil
}
