package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pgtest"
)

var notes = pgtest.Template{Name: "notes-v1", Build: func(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `create table note (text text); insert into note values ('from the template')`)
	return err
}}

func TestEachTestHasItsOwnCopy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t, notes)
			if _, err := pool.Exec(t.Context(), `insert into note values ($1)`, name); err != nil {
				t.Fatal(err)
			}
			var got int
			if err := pool.QueryRow(t.Context(), `select count(*) from note`).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if want := 2; got != want {
				t.Errorf("got %d notes, want %d", got, want)
			}
		})
	}
}
