package store_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

// verifyAtEnd runs after every test of the rig: each chain is recomputed in Go from the stored rows, and the target's own
// counters are compared with what the service says.
func (r *rig) verifyAtEnd() {
	if r.forged || r.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rows, err := r.pool.Query(ctx, `select id, audit_seq, audit_head from previews`)
	if err != nil {
		r.t.Fatal(err)
	}
	heads, err := pgx.CollectRows(rows, pgx.RowToStructByPos[head])
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range heads {
		r.verifyChain(ctx, h)
		r.verifyEffects(ctx, preview.ID(h.ID))
	}
}

type head struct {
	ID   [16]byte
	Seq  int64
	Head []byte
}

func (r *rig) verifyChain(ctx context.Context, h head) {
	events := r.eventsOf(ctx, preview.ID(h.ID))
	if err := audit.Verify(events); err != nil {
		r.t.Errorf("%s: %v", preview.ID(h.ID), err)
		return
	}
	if last := events[len(events)-1]; last.Seq != h.Seq || !bytes.Equal(last.Hash, h.Head) {
		r.t.Errorf("%s: the preview's head is at %d, the chain ends at %d", preview.ID(h.ID), h.Seq, last.Seq)
	}
}

// verifyEffects holds the invariants of exactly once against the target's counters.
func (r *rig) verifyEffects(ctx context.Context, id preview.ID) {
	var tenant string
	if err := r.pool.QueryRow(ctx, `select tenant_id from previews where id = $1`, id.UUID()).Scan(&tenant); err != nil {
		r.t.Fatal(err)
	}
	c, _, err := r.direct.Load(ctx, tenant, id, false)
	if err != nil {
		r.t.Fatal(err)
	}
	n := 0
	for _, target := range append([]connector.Connector{r.target}, r.others...) {
		l := target.(*ledger)
		l.mu.Lock()
		n += l.effects[commit.IdempotencyKey(secret, tenant, id, 0)]
		l.mu.Unlock()
	}
	stated := len(c.Executions) > 0 && c.Executions[0].Evidence == commit.ByStatement
	switch {
	case n > 1:
		r.t.Errorf("%s: got %d effects, want at most one", id, n)
	case c.Status == commit.StatusApplied && n != 1 && !stated:
		r.t.Errorf("%s is applied with %d effects, want 1", id, n)
	case c.Status != commit.StatusApplied && c.Status != commit.StatusUnknown && n != 0 && !stated:
		r.t.Errorf("%s is %s with %d effects, want 0", id, c.Status, n)
	}
}

func (r *rig) eventsOf(ctx context.Context, id preview.ID) []audit.Event {
	r.t.Helper()
	rows, err := r.pool.Query(ctx, `
		select preview_id, seq, tenant_id, kind, actor, at, body, hash from audit_events where preview_id = $1 order by seq`, id.UUID())
	if err != nil {
		r.t.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Event])
	if err != nil {
		r.t.Fatal(err)
	}
	return events
}

// kinds are the kinds of a preview's events, in order.
func (r *rig) kinds(id preview.ID) []string {
	r.t.Helper()
	var kinds []string
	for _, e := range r.eventsOf(r.t.Context(), id) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func countOf(kinds []string, kind string) int {
	n := 0
	for _, k := range kinds {
		if k == kind {
			n++
		}
	}
	return n
}

func TestAnAlteredRowBreaksTheChainWhereItStands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	if _, err := r.apply(p); err != nil {
		t.Fatal(err)
	}
	r.forged = true
	r.exec(`alter table audit_events disable trigger user`)
	r.exec(`update audit_events set actor = 'human:somebody' where preview_id = $1 and seq = 2`, p.ID.UUID())
	err := audit.Verify(r.eventsOf(t.Context(), p.ID))
	broken, ok := err.(*audit.BrokenError)
	if !ok || broken.Seq != 2 {
		t.Errorf("got %v, want a break at 2", err)
	}
}
