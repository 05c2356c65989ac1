package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/preview"
)

const sqlRuled = `
select p.id, p.tenant_id, p.action, p.requester, p.document, p.digest, p.created_at, p.ruling from previews p
where p.created_at >= clock_timestamp() - @since::interval order by p.id`

// EachRuled reads what was prepared since then, with its content, requester and ruling, one by one in the order of preparing. It is
// one read-only transaction that blocks nobody; it ends at the first error that each returns.
func (s *Store) EachRuled(ctx context.Context, since time.Duration, each func(preview.Preview) error) error {
	err := s.worker.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlRuled, pgx.NamedArgs{"since": since})
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			p, err := ruled(rows)
			if err == nil {
				err = each(p)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return fmt.Errorf("reading what was ruled: %w", err)
	}
	return nil
}

func ruled(rows pgx.Rows) (preview.Preview, error) {
	var p preview.Preview
	var id uuid.UUID
	var requester, digest, ruling []byte
	if err := rows.Scan(&id, &p.Tenant, &p.Action, &requester, &p.Document, &digest, &p.CreatedAt, &ruling); err != nil {
		return p, err
	}
	p.ID = preview.ID(id)
	copy(p.Digest[:], digest)
	content, err := preview.ReadDocument(p.Document)
	p.Content = content
	return p, errors.Join(err, json.Unmarshal(requester, &p.Requester), json.Unmarshal(ruling, &p.Ruling), p.CheckDigest())
}
