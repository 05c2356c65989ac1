package store

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/migrations"
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
		for bits := range 1 << 6 {
			set := func(n int) string { return map[bool]string{true: "x"}[bits>>n&1 == 1] }
			shapes[listing(commit.Filter{
				Statuses: []commit.Status{status, map[bool]commit.Status{true: commit.StatusDenied}[bits&3 == 3]}, OwnerID: set(0), OwnerPerson: set(1), TargetID: set(2), Action: set(3), Cursor: set(4), NeedsOperator: set(5) != "",
			})] = true
		}
		if status != "" && ways[status] == (way{}) {
			t.Errorf("no way leads to the status %s", status)
		}
	}
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
