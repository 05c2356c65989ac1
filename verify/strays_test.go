package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/store"
)

func configOn(url string) Config {
	return Config{
		URL: url, PoolSize: 4, Secret: []byte("a secret of thirty-two bytes....."), Clocks: connector.DefaultClocks(),
		SendMargin: time.Second, Now: time.Now,
	}
}

// inUse is a database with the real tables, in which a policy is active.
func inUse(t *testing.T) string {
	t.Helper()
	url := pgtest.URL(t, pgtest.Migrated(migrations.FS, store.Migrate))
	s, err := store.Open(t.Context(), store.Config{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.ActivatePolicy(t.Context(), "the-users-policy", "x"); err != nil {
		t.Fatal(err)
	}
	return url
}

func pooled(t *testing.T, url string) (*wire.Pooler, string) {
	t.Helper()
	p, through, err := wire.Pool(url, "search_path")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, through
}

// contents is every row of every table outside the server's own schemas.
func contents(t *testing.T, url string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `
		select format('%I.%I', table_schema, table_name),
		  query_to_xml(format('select * from %I.%I t order by t::text', table_schema, table_name), true, false, '')::text
		from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var table, text string
	if _, err := pgx.ForEachRow(rows, []any{&table, &text}, func() error { found[table] = text; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

func wantStrayed(t *testing.T, err error) {
	t.Helper()
	var refused *CannotError
	if !errors.As(err, &refused) || !strings.Contains(refused.Why, "search_path") || !strings.Contains(refused.Why, "direct connection") {
		t.Errorf("got %v, want a refusal that speaks of search_path and asks for a direct connection", err)
	}
}

// Behind a pooler that drops search_path, every statement would go to the user's own tables.
func TestAPoolerThatDropsTheSearchPath(t *testing.T) {
	t.Parallel()
	url := inUse(t)
	before := contents(t, url)
	pooler, through := pooled(t, url)
	if _, err := Run(t.Context(), configOn(through), []Check{attemptFence}, func(r Result) {
		if r.Status != Pass {
			t.Errorf("behind a pooler that drops nothing, got %s: %s", r.Status, r.Reason)
		}
	}); err != nil {
		t.Errorf("behind a pooler that drops nothing, got %v", err)
	}
	pooler.Forget()
	_, err := Run(t.Context(), configOn(through), Checks(), func(r Result) { t.Errorf("the check %s was made all the same", r.ID) })
	wantStrayed(t, err)
	if diff := cmp.Diff(before, contents(t, url)); diff != "" {
		t.Errorf("the user's own tables were changed: %s", diff)
	}
}

// It may begin to drop it only when the run is under way.
func TestAPoolerThatBeginsToDropTheSearchPath(t *testing.T) {
	t.Parallel()
	url := inUse(t)
	before := contents(t, url)
	pooler, through := pooled(t, url)
	later := Check{ID: "later", Promise: "x", Run: func(ctx context.Context, b *bench) (Proof, error) {
		pooler.Forget()
		b.sql.Reset()
		_, err := b.sql.Exec(ctx, "delete from policies")
		return Proof{Control: "x", Refusal: "x"}, err
	}}
	seen := 0
	_, err := Run(t.Context(), configOn(through), []Check{durability, later, claimGuard}, func(Result) { seen++ })
	wantStrayed(t, err)
	if seen != 1 {
		t.Errorf("got %d results, want the one from before it", seen)
	}
	if diff := cmp.Diff(before, contents(t, url)); diff != "" {
		t.Errorf("the user's own tables were changed: %s", diff)
	}
}

// The store on the clock that is ahead must be on that clock, or deadlines that should pass would not.
func TestTheClockAheadMustStandInFront(t *testing.T) {
	t.Parallel()
	s, err := newScratch(t.Context(), pgtest.URL(t), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.drop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for name, tt := range map[string]struct {
		url  string
		vet  store.Vet
		want bool
	}{
		"here": {s.url, s.here, true}, "ahead": {s.ahead, s.later, true},
		"here on the clock ahead": {s.ahead, s.here, false}, "ahead on the server's clock": {s.url, s.later, false},
		"elsewhere": {s.address, s.here, false}, "ahead elsewhere": {s.address, s.later, false},
	} {
		opened, err := store.Open(t.Context(), store.Config{URL: tt.url, MaxConns: 1, Vet: tt.vet})
		if err == nil {
			opened.Close()
		}
		if got := err == nil; got != tt.want {
			t.Errorf("%s: got %v, want accepted: %t", name, err, tt.want)
		}
	}
	if _, err := s.admin.Exec(t.Context(), "drop function "+s.name+".clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), store.Config{URL: s.ahead, MaxConns: 1, Vet: s.later}); err == nil {
		t.Error("a clock that is gone was taken for one that is ahead")
	}
}

// What only looks like a schema of ours is somebody's, and stays.
func TestOnlyMarkedSchemasAreDropped(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `
		create schema cutonce_verify_history; create table cutonce_verify_history.reports as select 'precious' as x;
		comment on schema cutonce_verify_history is '`+marker+`';
		create schema cutonce_verify_0123456789ab; create table cutonce_verify_0123456789ab.reports as select 'precious' as x;
		create schema cutonce_verify_ba9876543210; comment on schema cutonce_verify_ba9876543210 is '`+marker+`'`); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), configOn(url), []Check{durability}, func(Result) {})
	if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "cutonce_verify_ba9876543210") {
		t.Errorf("got the notes %v (%v), want one, of the marked schema", r.Notes, err)
	}
	var left []string
	if err := conn.QueryRow(t.Context(),
		`select array_agg(nspname::text order by nspname) from pg_namespace where nspname like 'cutonce%'`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cutonce_verify_0123456789ab", "cutonce_verify_history"}, left); diff != "" {
		t.Error(diff)
	}
}
