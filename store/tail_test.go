package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/preview"
)

// follow reads the feed by pages until there is no more.
func (r *rig) follow(after preview.Place, limit int) ([]preview.Moved, preview.Place) {
	r.t.Helper()
	var all []preview.Moved
	for {
		moved, place, err := r.store.Tail(r.t.Context(), after, limit)
		if err != nil {
			r.t.Fatal(err)
		}
		all, after = append(all, moved...), place
		if len(moved) < limit {
			return all, after
		}
	}
}

// followUntil reads until n events have come. Another test's transaction on the same server holds the feed back while it is under way.
func (r *rig) followUntil(after preview.Place, limit, n int) ([]preview.Moved, preview.Place) {
	r.t.Helper()
	var all []preview.Moved
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var moved []preview.Moved
		moved, after = r.follow(after, limit)
		if all = append(all, moved...); len(all) >= n || time.Now().After(deadline) {
			return all, after
		}
	}
}

func (r *rig) tailEnd() preview.Place {
	r.t.Helper()
	place, err := r.store.TailEnd(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return place
}

func kindsOf(moved []preview.Moved, id preview.ID) (kinds []string) {
	for _, m := range moved {
		if m.ID == id {
			kinds = append(kinds, m.Kind)
		}
	}
	return kinds
}

func TestTheFeedHasEveryEventOnceWhateverThePages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begin := r.tailEnd()
	a, b := r.prepare("a", "new"), r.prepare("b", "new")
	for _, p := range []preview.Preview{a, b} {
		if _, err := r.apply(p); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"prepared", "claimed", "applied"}
	for _, limit := range []int{1, 2, 100} {
		moved, end := r.followUntil(begin, limit, 6)
		if got := kindsOf(moved, a.ID); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v of a, want %v", limit, got, want)
		}
		if got := kindsOf(moved, b.ID); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v of b, want %v", limit, got, want)
		}
		if more, _ := r.follow(end, limit); len(more) != 0 {
			t.Errorf("pages of %d: got %v after the end, want nothing", limit, more)
		}
	}
	moved, _ := r.followUntil(begin, 100, 6)
	var before []string
	for _, m := range moved {
		if m.ID == a.ID {
			before = append(before, m.Before)
		}
	}
	if !slices.Equal(before, []string{"", "prepared", "claimed"}) {
		t.Errorf("got %q before the events of a, want what was before each", before)
	}
	got := moved[0]
	if got.At.IsZero() {
		t.Error("got no time of an event")
	}
	if diff := cmp.Diff(preview.Moved{Tenant: "acme", ID: a.ID, Seq: 1, Kind: "prepared", At: got.At}, got); diff != "" {
		t.Errorf("the first event (-want +got):\n%s", diff)
	}
}

// TestAnEventThatComesLateIsNotOvertaken: a transaction took its number first and is committed last. A cursor by sequence or time would
// have passed it.
func TestAnEventThatComesLateIsNotOvertaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	early, late := r.prepare("early", "new"), r.prepare("late", "new")
	begin := r.tailEnd()
	tx, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `
		with n as (select clock_timestamp() as at), u as (
		  update previews p set state = 'canceled', ended_at = n.at, audit_seq = audit_seq + 1,
		    audit_head = event_hash(audit_head, id, audit_seq + 1, 'canceled', 'test', tenant_id, n.at, '{}')
		  from n where id = $1 returning p.*, n.at)
		insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
		select id, audit_seq, tenant_id, 'canceled', 'test', at, '{}', audit_head from u`, early.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.apply(late); err != nil { // has ended before the other one
		t.Fatal(err)
	}
	moved, place := r.follow(begin, 10)
	if got := len(kindsOf(moved, late.ID)); got > 1 { // its preparation may be in the feed
		t.Errorf("got %v of a change behind an open transaction, want it to wait", moved)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest, _ := r.followUntil(place, 10, 3)
	moved = append(moved, rest...)
	if got := kindsOf(moved, early.ID); !slices.Contains(got, "canceled") {
		t.Errorf("got %v of the change that came late, want canceled", got)
	}
	if got := kindsOf(moved, late.ID); countOf(got, "applied") != 1 {
		t.Errorf("got %v of the change that overtook, want applied once", got)
	}
}

// TestTheFeedGoesOnWhereTheServerCounts: a restored server may count lower than the place.
func TestTheFeedGoesOnWhereTheServerCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	moved, place := r.follow(preview.Place{Transaction: 1 << 60}, 10)
	if len(moved) != 0 || place.Transaction >= 1<<60 {
		t.Fatalf("got %v and place %v, want nothing and the server's own place", moved, place)
	}
	p := r.prepare("a", "new")
	if moved, _ := r.followUntil(place, 10, 1); len(kindsOf(moved, p.ID)) != 1 {
		t.Errorf("got %v, want the preparation", moved)
	}
}
