package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
)

// Record is one change as our tables have it.
type Record struct {
	ID       [16]byte
	Name     string // the ID as callers write it
	Key      string // the idempotency key of its prepare
	State    string
	Deadline time.Time
	Seq      int64
	Head     []byte
	Votes    int // approvals on record
	// Execution is nil before the first claim.
	Execution *Execution
	Attempts  []Attempt
	Events    []audit.Event
}

// Execution is its row.
type Execution struct {
	State, Reason, Evidence string
	Contradicted            bool
	NeedsOperator           bool
	LeaseUntil              time.Time
}

// Attempt is one outward call.
type Attempt struct{ Kind, Result string }

// Status is the public status that the rows amount to, clocks aside.
func (r Record) Status() string {
	if r.State != "claimed" {
		return r.State
	}
	if r.Execution == nil {
		return "claimed without an execution"
	}
	return r.Execution.State
}

// Sends counts attempts by which the target may have heard of the change.
func (r Record) Sends() (sends, replays int) {
	for _, a := range r.Attempts {
		switch {
		case a.Kind == "send" && a.Result != "not_sent":
			sends++
		case a.Kind == "replay":
			replays++
		}
	}
	return sends, replays
}

const sqlRecords = `
select p.id, coalesce(p.idempotency_key, ''), p.state, p.deadline, p.audit_seq, p.audit_head,
  (select count(*) from decisions d where d.preview_id = p.id and d.approve and d.round = p.round),
  (select json_build_object('State', e.state, 'Reason', e.reason, 'Evidence', e.evidence, 'Contradicted', e.contradicted,
     'NeedsOperator', e.needs_operator, 'LeaseUntil', e.lease_until) from executions e where e.preview_id = p.id),
  (select coalesce(json_agg(json_build_object('Kind', a.kind, 'Result', coalesce(a.result, '')) order by a.started_at), '[]')
     from attempts a where a.preview_id = p.id)
from previews p order by p.id`

const sqlEvents = `select preview_id, seq, tenant_id, kind, actor, at, body, hash from audit_events order by preview_id, seq`

// readRecords reads every change there is.
func readRecords(ctx context.Context, database string) ([]*Record, error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sqlRecords)
	if err != nil {
		return nil, err
	}
	records, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("reading the changes: %w", err)
	}
	byID := map[[16]byte]*Record{}
	for _, r := range records {
		byID[r.ID] = r
	}
	rows, err = conn.Query(ctx, sqlEvents)
	if err != nil {
		return nil, err
	}
	var e audit.Event
	_, err = pgx.ForEachRow(rows, []any{&e.Preview, &e.Seq, &e.Tenant, &e.Kind, &e.Actor, &e.At, &e.Body, &e.Hash}, func() error {
		one := e
		one.Body, one.Hash = append([]byte{}, e.Body...), append([]byte{}, e.Hash...)
		r := byID[e.Preview]
		if r == nil {
			return fmt.Errorf("an event of %x, which does not exist", e.Preview)
		}
		r.Events = append(r.Events, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the events: %w", err)
	}
	return records, nil
}

func scanRecord(row pgx.CollectableRow) (*Record, error) {
	r := &Record{}
	var execution, attempts []byte
	err := row.Scan(&r.ID, &r.Key, &r.State, &r.Deadline, &r.Seq, &r.Head, &r.Votes, &execution, &attempts)
	if err != nil {
		return nil, err
	}
	r.Name = nameOf(r.ID)
	if execution != nil {
		if err := json.Unmarshal(execution, &r.Execution); err != nil {
			return nil, err
		}
	}
	return r, json.Unmarshal(attempts, &r.Attempts)
}
