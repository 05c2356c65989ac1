package store

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrOtherSecret: the database's changes were sent under another secret.
var ErrOtherSecret = errors.New("the database's changes were sent under another secret")

// sqlAdoptSecret takes a secret where none is known, or another one where nothing is left that would be looked up by its key.
const sqlAdoptSecret = `
with ok as materialized (
  select clock_timestamp() as now, 'secret_adopted' as kind from controls c
  where c.tenant_id = '' and c.secret_mark is distinct from @mark and (c.secret_mark is null or @replace
    and not exists (select from executions where state in ('applying', 'unknown') or next_probe_at is not null)
    and not exists (select from restore_holds where state in ('held', 'handed_over')))
), u as (
  update controls k set secret_mark = @mark, ` + nextControl + `
  from ok where k.tenant_id = ''
  returning ` + controlEnd + `
)` + controlChained

const sqlSecretMark = `select secret_mark from controls where tenant_id = ''`

// AdoptSecret makes sure that this process makes keys from the same secret as all before it. replace takes another secret, which is
// right only where nothing waits for a look-up; ErrOtherSecret says that it is not, or was not asked for.
func (s *Store) AdoptSecret(ctx context.Context, secret []byte, replace bool) error {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("cutonce: the mark of a secret"))
	mark := mac.Sum(nil)
	args := pgx.NamedArgs{"mark": mark, "replace": replace, "actor": service, "body": body(map[string]any{})}
	if err := s.controlBy(ctx, s.worker, sqlAdoptSecret, args, nil); err != nil {
		return fmt.Errorf("noting the secret: %w", err)
	}
	var known []byte
	if err := s.worker.read(ctx, sqlSecretMark, pgx.NamedArgs{}, &known); err != nil {
		return fmt.Errorf("reading the secret's mark: %w", err)
	}
	if !bytes.Equal(known, mark) {
		return ErrOtherSecret
	}
	return nil
}
