package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// mostTrailLeaves bounds the leaves that are read to compute a seal's root anew. Only the first seals over an old database have more.
const mostTrailLeaves = sealBatch

// sqlTrail reads a chain, the end that its record tells and the newest leaf over it as they are at one moment.
const sqlTrail = `
select p.tenant_id, p.audit_seq, p.audit_head, e.seqs, e.kinds, e.actors, e.tenants, e.ats, e.bodies, e.hashes, l.seal, l.place, l.tenant_id, l.seq, l.head
from previews p
  cross join lateral (
    select array_agg(v.seq order by v.seq) as seqs, array_agg(v.kind order by v.seq) as kinds, array_agg(v.actor order by v.seq) as actors,
      array_agg(v.tenant_id order by v.seq) as tenants, array_agg(v.at order by v.seq) as ats, array_agg(v.body order by v.seq) as bodies,
      array_agg(v.hash order by v.seq) as hashes
    from audit_events v where v.preview_id = p.id) e
  left join lateral (
    select s.seal, s.place, s.tenant_id, s.seq, s.head from seal_leaves s where s.chain = p.id order by s.seal desc limit 1) l on true
where p.id = @id and p.tenant_id is not distinct from @tenant`

const sqlTrailLeaves = `select kind, chain, tenant_id, seq, head from seal_leaves where seal = @seal order by place limit @limit`

// trailRow is a row of sqlTrail.
type trailRow struct {
	tenant                 string
	seq                    int64
	head                   []byte
	seqs                   []int64
	kinds, actors, tenants []string
	ats                    []time.Time
	bodies, hashes         [][]byte
	seal, place, leafSeq   *int64
	leafTenant             *string
	leafHead               []byte
}

// Trail reads what Keys.Prove checks of one change of a tenant. Fault: not_found.
func (s *Store) Trail(ctx context.Context, tenant string, id preview.ID) (audit.Trail, error) {
	var r trailRow
	err := s.pool.read(ctx, sqlTrail, pgx.NamedArgs{"tenant": tenant, "id": id.UUID()}, &r.tenant, &r.seq, &r.head, &r.seqs, &r.kinds,
		&r.actors, &r.tenants, &r.ats, &r.bodies, &r.hashes, &r.seal, &r.place, &r.leafTenant, &r.leafSeq, &r.leafHead)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return audit.Trail{}, fault.New(fault.NotFound, nil)
	case err != nil:
		return audit.Trail{}, fmt.Errorf("reading a change's trail: %w", err)
	}
	t := r.trail(id)
	if r.seal == nil {
		return t, nil
	}
	t.Leaf = &audit.Leaf{Kind: audit.PreviewChain, Chain: id, Tenant: *r.leafTenant, Seq: *r.leafSeq, Head: r.leafHead}
	t.Place = *r.place
	if t.Seal, err = s.SealAt(ctx, *r.seal); err != nil || t.Seal == nil || t.Seal.Leaves > mostTrailLeaves {
		return t, err
	}
	t.Leaves, err = s.leafSums(ctx, *r.seal)
	return t, err
}

func (r trailRow) trail(id preview.ID) audit.Trail {
	t := audit.Trail{Seq: r.seq, Head: r.head}
	for i := range r.seqs {
		t.Events = append(t.Events, audit.Event{
			Preview: id, Seq: r.seqs[i], Tenant: r.tenants[i], Kind: r.kinds[i], Actor: r.actors[i], At: r.ats[i], Body: r.bodies[i], Hash: r.hashes[i],
		})
	}
	return t
}

// leafSums are the hashes of a seal's leaves. What they are of, which are other tenants' changes too, stays here.
func (s *Store) leafSums(ctx context.Context, seal int64) ([][sha256.Size]byte, error) {
	sums, err := collect(ctx, s.worker, sqlTrailLeaves, pgx.NamedArgs{"seal": seal, "limit": mostTrailLeaves + 1}, func(row pgx.CollectableRow) ([sha256.Size]byte, error) {
		var l audit.Leaf
		var chain uuid.UUID
		err := row.Scan(&l.Kind, &chain, &l.Tenant, &l.Seq, &l.Head)
		l.Chain = chain
		return l.Sum(), err
	})
	if err != nil {
		return nil, fmt.Errorf("reading a seal's leaves: %w", err)
	}
	return sums, nil
}
