package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/preview"
)

// TestEveryListIsPrepared sends every shape that a list's statement can have to the migrated schema.
func TestEveryListIsPrepared(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, pgtest.Migrated(migrations.FS, Migrate))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	shapes := map[string]bool{}
	for bits := range 1 << 5 {
		set := func(n int) string { return map[bool]string{true: "x"}[bits>>n&1 == 1] }
		page := approvals.Page{Action: set(0), Cursor: set(1), High: set(2) != "", RiskFirst: set(3) != ""}
		if set(4) != "" {
			page.Seats = &approvals.Seats{}
		}
		shapes[queueing(page)] = true
	}
	for _, status := range append(commit.Statuses(), "") {
		for bits := range 1 << 9 {
			if bits>>7 != 0 && status != "" && status != commit.StatusUnknown {
				continue // two statuses are enough for what is put beside all of them
			}
			set := func(n int) string { return map[bool]string{true: "x"}[bits>>n&1 == 1] }
			shapes[listing(commit.Filter{
				Statuses: []commit.Status{status, map[bool]commit.Status{true: commit.StatusDenied}[bits&3 == 3]}, OwnerID: set(0), OwnerPerson: set(1), TargetID: set(2), Action: set(3), Cursor: set(4), NeedsOperator: set(5) != "",
				Since: stamped(set(6)), Until: stamped(set(6)), Person: set(7), Contradicted: set(8) != "",
			})] = true
		}
		if status != "" && ways[status] == (way{}) {
			t.Errorf("no way leads to the status %s", status)
		}
	}
	shapes[sqlPeople], shapes[sqlTrail], shapes[sqlTrailLeaves] = true, true, true
	n := 0
	for sql := range shapes {
		rewritten, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), conn.Conn(), sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if _, err := conn.Conn().Prepare(t.Context(), fmt.Sprint("list", n), rewritten); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func stamped(set string) time.Time {
	if set == "" {
		return time.Time{}
	}
	return time.Now()
}

func TestTheFirstIDOfAMoment(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_123)
	if got, want := firstID(at).String(), "01a3185c-507b-0000-0000-000000000000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	made := preview.NewID().UUID()
	if now := time.Now(); firstID(now.Add(-time.Minute)).String() > made.String() || firstID(now.Add(time.Minute)).String() < made.String() {
		t.Errorf("the ID %s lies outside the minute that it was made in", made)
	}
}
