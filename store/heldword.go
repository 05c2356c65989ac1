package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/preview"
)

// ErrNotHeard says why an operator's word on a held change does not count, or not yet.
var ErrNotHeard = errors.New("not recorded")

// wordFor is how long the first of two words stands.
const wordFor = time.Hour

// wordWithin bounds the recording of a word.
const wordWithin = 30 * time.Second

const sqlHeldWord = `
select p.tenant_id, h.needs_operator, coalesce(h.look_until > clock_timestamp(), false), h.resolvers, coalesce(h.said_by, ''),
  coalesce(h.said_happened, false), coalesce(h.said_at, 'epoch'), clock_timestamp(),
  array_remove(array[p.requester ->> 'subject', p.requester ->> 'for', p.requester ->> 'owner'], null)
from previews p join restore_holds h on h.preview_id = p.id
where p.id = @id and h.state = 'held' for update of p, h`

// heldWord is what an operator's word on a held change is measured by.
type heldWord struct {
	tenant              string
	needsOperator, busy bool
	resolvers           int
	saidBy              string
	saidHappened        bool
	saidAt, now         time.Time
	involved            []string
}

func heldWordIn(ctx context.Context, tx pgx.Tx, id preview.ID) (h heldWord, err error) {
	err = tx.QueryRow(ctx, sqlHeldWord, pgx.NamedArgs{"id": id.UUID()}).Scan(&h.tenant, &h.needsOperator, &h.busy, &h.resolvers,
		&h.saidBy, &h.saidHappened, &h.saidAt, &h.now, &h.involved)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, fmt.Errorf("%w: it is not held", ErrNotHeard)
	}
	return h, err
}

// hear says whether a word settles the hold, or why it is not heard. The target's own answer comes first: a hold is handed to operators
// only once the target was asked for as long as a late effect was to be expected.
func (h heldWord) hear(name string, happened bool) (settles bool, err error) {
	standing := h.saidBy != "" && h.now.Sub(h.saidAt) < wordFor
	switch {
	case !h.needsOperator:
		return false, fmt.Errorf("%w: its target is being asked first, by cutonce serve", ErrNotHeard)
	case h.busy:
		return false, fmt.Errorf("%w: its target is being asked right now; say it again in a moment", ErrNotHeard)
	case h.involves(name):
		return false, fmt.Errorf("%w: it is %s's own change, and somebody else must say what became of it", ErrNotHeard, name)
	case h.resolvers < 2:
		return true, nil
	case !standing || strings.EqualFold(h.saidBy, name):
		return false, nil
	case h.saidHappened != happened:
		return false, fmt.Errorf("%w: %s has said the contrary", ErrNotHeard, h.saidBy)
	}
	return true, nil
}

// involves reports whether a name is the requester's, or of the human an agent acts for or belongs to, whichever issuer knows them.
func (h heldWord) involves(name string) bool {
	for _, who := range h.involved {
		if strings.EqualFold(bare(who), bare(name)) {
			return true
		}
	}
	return false
}

// bare is a person without the issuer.
func bare(person string) string { return person[strings.LastIndexByte(person, '#')+1:] }

// sqlFoundEnded records an operator's word that the effect is there of a change which has ended, or was recorded, otherwise.
const sqlFoundEnded = heldNow + `, ok as (
  select id, now from h where state in ('rejected', 'canceled', 'expired', 'claimed')
), x as (
  update restore_holds r set state = 'found_ended', next_look_at = null, look_until = null from ok where r.preview_id = ok.id
), u as (
  update previews p set ` + nextHead + `
  from ok where p.id = ok.id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
)` + chained

// sqlProposeHeld keeps the first of two words.
const sqlProposeHeld = heldNow + `, ok as (
  select id, now from h
), x as (
  update restore_holds r set said_by = @name, said_happened = @happened, said_at = ok.now from ok where r.preview_id = ok.id
), u as (
  update previews p set ` + nextHead + `
  from ok where p.id = ok.id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
)` + chained

// StateHeld records an operator's word on a held change, where its target was asked and cannot tell. Only a change that has ended, or
// was recorded as not applied, is held for that: an open one becomes an unknown outcome, and is resolved as such. ended is false where
// the action asks for two operators and this is the first one's word. Refusals are ErrNotHeard.
func (s *Store) StateHeld(ctx context.Context, id preview.ID, happened bool, name, reason string) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, wordWithin)
	defer cancel()
	err = s.worker.transact(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		h, err := heldWordIn(ctx, tx, id)
		if err != nil {
			return err
		}
		if ended, err = h.hear(name, happened); err != nil {
			return err
		}
		var moved bool
		sql, args := wordArgs(h, id, ended, happened, name, reason)
		if err := tx.QueryRow(ctx, sql, args).Scan(&moved); err != nil {
			return err
		}
		if !moved {
			return fmt.Errorf("%w: it has gone on meanwhile", ErrNotHeard)
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("what became of a held change: %w", passing(err))
	}
	return ended, nil
}

func wordArgs(h heldWord, id preview.ID, settles, happened bool, name, reason string) (string, pgx.NamedArgs) {
	sql, kind := sqlProposeHeld, "proposed"
	switch {
	case settles && happened:
		sql, kind = sqlFoundEnded, "effect_found"
	case settles:
		sql, kind = sqlClear, "cleared"
	}
	said := map[string]any{"applied": happened, "reason": reason, "result": "stated"}
	if settles && h.resolvers > 1 {
		said["with"] = h.saidBy
	}
	return sql, pgx.NamedArgs{
		"id": id.UUID(), "tenant": h.tenant, "settle_for": time.Duration(0), "kind": kind, "actor": "operator:" + name,
		"name": name, "happened": happened, "body": body(said),
	}
}
