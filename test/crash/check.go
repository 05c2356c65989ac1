package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// end is what every row ends with: whoever recovers reads the same of every change, and the invariants hold of all that there is
// in its database, at the platform and in what callers were told.
func (w *world) end() {
	if !w.recovered {
		w.recover()
	}
	w.free()
	w.readBack()
	w.nothingLost()
	w.nothingStuck()
	w.atMostOnce()
	w.chainsHold()
}

// readBack compares every change with what it ended as.
func (w *world) readBack() {
	for _, c := range w.changes {
		if c.retired {
			continue
		}
		if !c.ended {
			w.fail("change %s was left without an end", c.id)
		}
		before := *c
		w.reads(c)
		want(w, "read back", *c, before)
	}
}

// nothingLost: what a caller was told of exists.
func (w *world) nothingLost() {
	for _, c := range w.changes {
		if w.number(`select count(*) from previews where id = $1`, uuidOf(w, c.id)) != 1 && !c.retired {
			w.lostPreviews++
		}
	}
	want(w, "lost previews", w.lostPreviews, 0)
}

// nothingStuck: nothing is applying past its lease and the sweep after it.
func (w *world) nothingStuck() {
	n := w.number(`select count(*) from executions where state = 'applying' and lease_until < clock_timestamp() - $1::interval`,
		sweep+soonEnough)
	want(w, "applying past lease and sweep", n, 0)
}

// free: another target is not held up by anything.
func (w *world) free() {
	c := w.prepared(small)
	c.beside = true
	w.apply(c)
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
}

// atMostOnce compares the platform's own count with the records, for every preview that there is.
func (w *world) atMostOnce() {
	rows, err := w.db.Query(w.ctx, `
		select p.id, coalesce(e.state, ''), coalesce(e.reason, ''), coalesce(e.contradicted, false),
			(select count(*) from attempts a where a.preview_id = p.id and a.kind <> 'lookup' and a.result is distinct from 'not_sent')
		from previews p left join executions e on e.preview_id = p.id`)
	w.must(err)
	records, err := pgx.CollectRows(rows, pgx.RowToStructByPos[record])
	w.must(err)
	for _, r := range records {
		w.counted(r)
	}
}

// record is what we have on record of an execution.
type record struct {
	ID           uuid.UUID
	State        commit.State
	Reason       commit.Reason
	Contradicted bool
	Sends        int
}

func (w *world) counted(r record) {
	id := preview.ID(r.ID).String()
	tally := w.tally(id)
	if tally.Effects > 1 {
		w.overshoot++
		w.fail("change %s took effect %d times", id, tally.Effects)
	}
	if tally.Received > r.Sends && !w.forgetful {
		w.fail("change %s: %d requests arrived at the platform, %d sends are on record", id, tally.Received, r.Sends)
	}
	if r.Sends > 1 {
		w.fail("change %s was sent %d times", id, r.Sends)
	}
	want(w, "applied means one effect, for "+id, tally.Effects == 1, r.State == commit.Applied)
}

// chainsHold verifies the chain of every preview from its rows alone, and that it tells the preview's life to its end.
func (w *world) chainsHold() {
	rows, err := w.db.Query(w.ctx, `
		select preview_id, seq, tenant_id, kind, actor, at, body, hash from audit_events order by preview_id, seq`)
	w.must(err)
	events, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (e audit.Event, err error) {
		err = r.Scan(&e.Preview, &e.Seq, &e.Tenant, &e.Kind, &e.Actor, &e.At, &e.Body, &e.Hash)
		return e, err
	})
	w.must(err)
	chains := map[[16]byte][]audit.Event{}
	for _, e := range events {
		chains[e.Preview] = append(chains[e.Preview], e)
	}
	for id, chain := range chains {
		w.chainHolds(uuid.UUID(id), chain)
	}
	want(w, "previews with a chain", len(chains), w.number(`select count(*) from previews`))
}

func (w *world) chainHolds(id uuid.UUID, chain []audit.Event) {
	if err := audit.Verify(chain); err != nil {
		w.fail("preview %s: %v", id, err)
	}
	var head []byte
	var state string
	var contradicted bool
	w.must(w.db.QueryRow(w.ctx, `
		select p.audit_head, case when p.state = 'claimed' then e.state else p.state end, coalesce(e.contradicted, false)
		from previews p left join executions e on e.preview_id = p.id where p.id = $1`, id).Scan(&head, &state, &contradicted))
	if !bytes.Equal(head, chain[len(chain)-1].Hash) {
		w.fail("preview %s: the chain does not end at the preview's head", id)
	}
	var kinds, ends []string
	for _, e := range chain {
		kinds = append(kinds, e.Kind)
		if slices.Contains(terminal, e.Kind) {
			ends = append(ends, e.Kind)
		}
	}
	if !slices.Contains(tells(state, contradicted), endsOf(ends)) {
		w.fail("preview %s is %s (contradicted %t) and its events are %v: want one event that ends it", id, state, contradicted, kinds)
	}
}

// terminal are the kinds of events that end a change.
var terminal = []string{"applied", "not_applied", "resolved", "contradicted", "rejected", "canceled", "expired"}

func endsOf(kinds []string) string { return strings.Join(kinds, " ") }

// tells lists the ends that events may tell of where the records say so.
func tells(state string, contradicted bool) []string {
	switch {
	case contradicted:
		return []string{"not_applied contradicted", "resolved contradicted"}
	case state == "applied", state == "not_applied":
		return []string{state, "resolved"}
	case state == "rejected", state == "canceled", state == "expired":
		return []string{state}
	}
	return []string{""}
}
