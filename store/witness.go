package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
)

// sqlWitnessed compares a witness with the seals. What a restore has brought back is as new as the last seal before the witness, by
// its number and by a minute: the seals since may be the restored database's own, and clocks differ.
const sqlWitnessed = `
select exists (select from seals where number = @number and hash = @hash),
  k.witness_number is not distinct from @number and k.witness_hash is not distinct from @hash, k.restoring,
  coalesce((select max(at) from seals where number < @number and at < @at::timestamptz - interval '1 minute'), 'epoch'::timestamptz)
from controls k where k.tenant_id = ''`

// sqlBarrier writes something, so that the commit is acknowledged only where everything that was seen before it is durable too, on
// a synchronous standby as well.
const sqlBarrier = `select pg_logical_emit_message(true, 'cutonce.witness', '')`

// witnessedFor bounds the comparison with a witness.
const witnessedFor = 30 * time.Second

// Witnessed is what the database says of a witness. See audit.Seals.
func (s *Store) Witnessed(ctx context.Context, witness *audit.Seal) (st audit.Standing, err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessedFor)
	defer cancel()
	err = s.durably(ctx, func(tx pgx.Tx) (bool, error) {
		if st.Last, err = sealIf(tx.QueryRow(ctx, sqlLastSeal)); err != nil || st.Last == nil && witness == nil {
			return false, err
		}
		if witness != nil {
			if st, _, err = standing(tx.QueryRow(ctx, sqlWitnessed, witnessArgs(*witness)), st); err != nil {
				return false, err
			}
		}
		if witness != nil && (st.Last == nil || bytes.Equal(st.Last.Hash, witness.Hash)) {
			return false, nil // nothing to be witnessed
		}
		_, err := tx.Exec(ctx, sqlBarrier)
		return true, err
	})
	if err != nil {
		return audit.Standing{}, err
	}
	return st, nil
}

func standing(row pgx.Row, st audit.Standing) (_ audit.Standing, kept time.Time, err error) {
	if err := row.Scan(&st.Known, &st.Covered, &st.Restoring, &kept); err != nil {
		return st, kept, fmt.Errorf("looking for the witnessed seal: %w", err)
	}
	return st, kept, nil
}

func witnessArgs(w audit.Seal) pgx.NamedArgs {
	return pgx.NamedArgs{"number": w.Number, "hash": w.Hash, "at": w.At}
}

// durably runs one transaction on one snapshot. Where it has written something that must last, it returns nil only if the server
// acknowledged that without a warning.
func (s *Store) durably(ctx context.Context, do func(pgx.Tx) (wrote bool, err error)) error {
	conn, err := s.worker.pool.Acquire(ctx)
	if err != nil {
		return passing(fmt.Errorf("getting a connection: %w", err))
	}
	defer conn.Release()
	delete(conn.Conn().PgConn().CustomData(), warned)
	var wrote bool
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) (err error) {
		if err := asWorker(ctx, tx, sqlAsWorkerDurably); err != nil {
			return err
		}
		wrote, err = do(tx)
		return err
	})
	switch {
	case err != nil:
		return passing(err)
	case wrote && conn.Conn().PgConn().CustomData()[warned] != nil:
		return fmt.Errorf("%w: the server warned", commit.ErrInDoubt)
	}
	return nil
}

// CheckWitness declares a restore if the database does not know what was witnessed outside it, unless a declaration covers that very
// witness.
func (s *Store) CheckWitness(ctx context.Context, witness audit.Seal) (declared bool, held int, err error) {
	var st audit.Standing
	var kept time.Time
	err = s.durably(ctx, func(tx pgx.Tx) (bool, error) {
		st, kept, err = standing(tx.QueryRow(ctx, sqlWitnessed, witnessArgs(witness)), st)
		return false, err
	})
	if err != nil || st.Known || st.Covered {
		return false, 0, err
	}
	return s.DeclareRestore(ctx, Restore{
		To: kept, By: service, Witness: &witness,
		Reason: fmt.Sprintf("the witness has seen seal %d of %s, which this database does not know", witness.Number, witness.At.UTC().Format(time.RFC3339)),
	})
}
