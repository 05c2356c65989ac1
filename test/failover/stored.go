package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// stored is a change as the new primary has it.
type stored struct {
	there  bool
	status string
	sends  int
	events []audit.Event
}

const sqlStored = `
select case when p.state = 'claimed' then (select e.state from executions e where e.preview_id = p.id) else p.state end,
  (select count(*) from attempts a where a.preview_id = p.id and a.kind = 'send' and a.result is distinct from 'not_sent')
from previews p where p.id = $1`

const sqlEvents = `select preview_id, seq, tenant_id, kind, actor, at, body, hash from audit_events where preview_id = $1 order by seq`

func read(ctx context.Context, conn *pgx.Conn, name string) (s stored, err error) {
	id, ok := preview.ParseID(name)
	if !ok {
		return s, fmt.Errorf("%q is no ID", name)
	}
	switch err := conn.QueryRow(ctx, sqlStored, id.UUID()).Scan(&s.status, &s.sends); {
	case errors.Is(err, pgx.ErrNoRows):
		return s, nil
	case err != nil:
		return s, err
	}
	s.there = true
	rows, err := conn.Query(ctx, sqlEvents, id.UUID())
	if err != nil {
		return s, err
	}
	s.events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e audit.Event, err error) {
		return e, row.Scan(&e.Preview, &e.Seq, &e.Tenant, &e.Kind, &e.Actor, &e.At, &e.Body, &e.Hash)
	})
	return s, err
}

// against names what contradicts the promises, and how much of it is something acknowledged that is gone.
func (s stored) against(c change, seen target.Tally) (wrong []string, lost int) {
	say := func(format string, args ...any) { wrong = append(wrong, c.id+": "+fmt.Sprintf(format, args...)) }
	if !s.there {
		say("it was acknowledged, and the new primary does not know it")
		return wrong, 1
	}
	kinds := []string{}
	for _, e := range s.events {
		kinds = append(kinds, e.Kind)
	}
	for _, told := range c.told {
		if !slices.Contains(kinds, told) && !(told == "applied" && slices.Contains(kinds, "contradicted")) {
			say("%s was acknowledged, and is not among its events %v", told, kinds)
			lost++
		}
	}
	if err := audit.Verify(s.events); err != nil {
		say("%v", err)
	}
	switch {
	case seen.Effects > 1 || seen.Received > 1 || s.sends > 1:
		say("the target received it %d times, with %d effects, after %d sends", seen.Received, seen.Effects, s.sends)
	case (s.status == "applied") != (seen.Effects == 1):
		say("%s, with %d effects", s.status, seen.Effects)
	case s.status != "applied" && s.status != "not_applied":
		say("%s: it never came to an end", s.status)
	case c.must != "" && s.status != c.must:
		say("%s, want %s", s.status, c.must)
	}
	return wrong, lost
}
