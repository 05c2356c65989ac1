package pglocal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pglocal"
)

// A standby follows, answers reads only, and takes over what was acknowledged when its primary is gone; a standby of its own can
// then take the old one's port.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary := open(t, config(folder(t)))
	standby := follow(t, primary, "second", 0)
	exec1(t, primary.URL(), `alter system set synchronous_standby_names = 'second'`)
	exec1(t, primary.URL(), `select pg_reload_conf()`)
	await(t, "a synchronous standby", func() bool {
		return ask(t, primary.URL(), `select coalesce(max(sync_state), '') from pg_stat_replication`) == "sync"
	})
	exec1(t, primary.URL(), `create table kept as select 'acknowledged' as text`)
	if got, want := ask(t, standby.URL(), `select pg_is_in_recovery()::text`), "true"; got != want {
		t.Errorf("before the promotion: got recovery %s, want %s", got, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(primary.Crash(ctx), standby.Promote(ctx)); err != nil {
		t.Fatal(err)
	}
	if got, want := ask(t, standby.URL(), `select text from kept`), "acknowledged"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	exec1(t, standby.URL(), `create table more as select 1 as n`)
	third := follow(t, standby, "third", portOf(t, primary.URL()))
	await(t, "the third to have followed", func() bool {
		return ask(t, third.URL(), `select coalesce(to_regclass('more')::text, '')`) == "more"
	})
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	settings, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return int(settings.Port)
}

func follow(t *testing.T, primary *pglocal.Cluster, name string, port int) *pglocal.Cluster {
	t.Helper()
	c, err := primary.Standby(t.Context(), name, port)
	if errors.Is(err, pglocal.ErrNoBaseBackup) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, c) })
	return c
}
