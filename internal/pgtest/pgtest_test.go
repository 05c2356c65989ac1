package pgtest_test

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

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

func TestATemplateIsBuiltOnce(t *testing.T) {
	t.Parallel()
	var builds atomic.Int32
	counted := pgtest.Template{Name: "counted-" + rand.Text(), Build: func(ctx context.Context, url string) error {
		builds.Add(1)
		return notes.Build(ctx, url)
	}}
	var tests sync.WaitGroup
	for range 4 {
		tests.Go(func() { pgtest.URL(t, counted) })
	}
	tests.Wait()
	if got, want := builds.Load(), int32(1); got != want {
		t.Errorf("got %d builds, want %d", got, want)
	}
}

func TestTheDatabaseIsDroppedAfterTheTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("a test", func(t *testing.T) {
		pool := pgtest.New(t)
		if err := pool.QueryRow(t.Context(), `select current_database()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var there bool
	if err := pgtest.Admin(t).QueryRow(t.Context(), `select exists (select from pg_database where datname = $1)`, name).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if there {
		t.Errorf("database %s is still there", name)
	}
}

func TestTerminateEndsSessions(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if got, want := pgtest.Terminate(t, pool), 1; got != want {
		t.Errorf("got %d sessions ended, want %d", got, want)
	}
	if _, err := conn.Exec(t.Context(), `select 1`); err == nil {
		t.Error("the session still answers")
	}
}

func TestAServerOfItsOwnCanStopCrashAndStart(t *testing.T) {
	t.Parallel()
	s := pgtest.NewServer(t)
	pool := s.New(notes)
	for name, end := range map[string]func(){"stop": s.Stop, "crash": s.Crash} {
		if _, err := pool.Exec(t.Context(), `insert into note values ('durable enough')`); err != nil {
			t.Fatal(err)
		}
		end()
		if _, err := pool.Exec(t.Context(), `select 1`); err == nil {
			t.Errorf("%s: the server still answers", name)
		}
		s.Start()
		pool.Reset()
	}
	var got int
	if err := pool.QueryRow(t.Context(), `select count(*) from note`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := 3; got != want {
		t.Errorf("got %d notes, want %d", got, want)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		pgtest.URL(b, notes)
	}
}

func TestMigratedIsNamedByItsFiles(t *testing.T) {
	t.Parallel()
	named := func(files fstest.MapFS) string { return pgtest.Migrated(files, notes.Build).Name }
	one := named(fstest.MapFS{"1.sql": {Data: []byte("select 1")}})
	if got := named(fstest.MapFS{"1.sql": {Data: []byte("select 1")}}); got != one {
		t.Errorf("got %q for the same files, want %q", got, one)
	}
	for name, files := range map[string]fstest.MapFS{
		"another text":   {"1.sql": {Data: []byte("select 2")}},
		"another name":   {"2.sql": {Data: []byte("select 1")}},
		"one file more":  {"1.sql": {Data: []byte("select 1")}, "2.sql": {}},
		"no file at all": {},
	} {
		if named(files) == one {
			t.Errorf("%s: got the same template", name)
		}
	}
}
