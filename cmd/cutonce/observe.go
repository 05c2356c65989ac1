package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/metrics"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// observer tells the metrics what commit did.
type observer struct{ m *metrics.Metrics }

// Sent records a send.
func (o observer) Sent(action string, class connector.Class, took time.Duration) {
	o.m.Sent(action, string(class), took)
}

// Settled counts an outcome.
func (o observer) Settled(tenant, action string, status commit.Status) {
	o.m.Count(tenant, action, string(status))
}

// countedPreviews counts what is prepared, where it is known whether it is new.
type countedPreviews struct {
	preview.Store
	m *metrics.Metrics
}

// Create stores a preview and counts it.
func (s countedPreviews) Create(ctx context.Context, n preview.New) (preview.Preview, bool, error) {
	p, created, err := s.Store.Create(ctx, n)
	if created {
		s.m.Count(p.Tenant, p.Action, "prepared")
		s.m.Count(p.Tenant, p.Action, string(p.State))
	}
	tooManyOpen(s.m, n.Preview.Tenant, err)
	return p, created, err
}

// countedApprovals counts what people decide.
type countedApprovals struct {
	approvals.Store
	m *metrics.Metrics
}

// RecordDecision records a decision and counts what it led to.
func (s countedApprovals) RecordDecision(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error) {
	p, moved, err := s.Store.RecordDecision(ctx, d)
	if moved && d.Next != d.From {
		s.m.Count(d.Tenant, d.Action, string(d.Next))
	}
	return p, moved, err
}

func backlogOf(s *store.Store) metrics.Reader {
	return func(ctx context.Context) (metrics.Backlog, error) {
		b, err1 := s.Backlog(ctx)
		e, err2 := s.Evidence(ctx)
		waiting, err3 := s.Waiting(ctx)
		return metrics.Backlog{
			SealLag: e.SealLag, Restoring: e.Restoring, Held: e.Held, FoundEnded: e.FoundEnded,
			Pending: b.Pending, Unknown: b.Unknown, NeedsOperator: b.NeedsOperator, Contradictions: b.Contradictions,
			Waiting:    waitingOf(waiting),
			PendingAge: seconds(b.PendingAge), UnknownAge: seconds(b.UnknownAge),
		}, errors.Join(err1, err2, err3)
	}
}

func waitingOf(all map[string]store.Waiting) map[string]metrics.Waiting {
	waiting := make(map[string]metrics.Waiting, len(all))
	for tenant, w := range all {
		waiting[tenant] = metrics.Waiting(w)
	}
	return waiting
}

// tenantsOf are those that the configured issuers are kept to.
func tenantsOf(s config.Settings) (tenants []string) {
	for _, i := range []config.Issuer{s.Issuer, s.Issuer2, s.Issuer3} {
		for _, tenant := range append([]string{i.Tenant}, i.Tenants...) {
			if tenant != "" && !slices.Contains(tenants, tenant) {
				tenants = append(tenants, tenant)
			}
		}
	}
	return tenants
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func poolOf(s *store.Store) func() metrics.Pool {
	return func() metrics.Pool {
		p := s.Stat()
		return metrics.Pool{
			Max: p.MaxConns(), Total: p.TotalConns(), Idle: p.IdleConns(), Acquired: p.AcquiredConns(),
			Waited: p.EmptyAcquireCount(), WaitedFor: p.AcquireDuration(),
		}
	}
}
