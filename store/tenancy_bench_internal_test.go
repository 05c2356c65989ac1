package store

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/preview"
)

// BenchmarkTheWall measures what the second wall costs a reading round trip, in processor time of the server's session and of this process,
// which a busy machine does not blur: the same statement alone, as the login itself, which no wall binds; and as it is sent.
//
//	go test ./store -run xxx -bench TheWall -benchtime 5000x
func BenchmarkTheWall(b *testing.B) {
	url := pgtest.URL(b, pgtest.Migrated(migrations.FS, Migrate))
	s, err := Open(b.Context(), Config{URL: url, MaxConns: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	var backend int
	if err := s.pool.pool.QueryRow(b.Context(), `select pg_backend_pid()`).Scan(&backend); err != nil {
		b.Fatal(err)
	}
	args := pgx.NamedArgs{"id": preview.NewID().UUID(), "tenant": "acme", "item": 0}
	for _, name := range []string{"sqlLoad", "sqlPreview", "one row"} {
		sql := map[string]string{"sqlLoad": sqlLoad, "sqlPreview": sqlPreview, "one row": `select 1 from previews where id = @id and tenant_id is not distinct from @tenant`}[name]
		b.Run(name+" alone", func(b *testing.B) {
			text, values := positional(b.Context(), sql, []any{args})
			measured(b, backend, func() error {
				rows, err := s.pool.pool.Query(b.Context(), text, values...)
				if err != nil {
					return err
				}
				rows.Close()
				return rows.Err()
			})
		})
		b.Run(name+" behind the wall", func(b *testing.B) {
			measured(b, backend, func() error {
				return s.pool.send(b.Context(), sql, args, func(r pgx.BatchResults) error { _, err := r.Exec(); return err })
			})
		})
	}
}

func measured(b *testing.B, backend int, do func() error) {
	if err := do(); err != nil { // once, so that it is prepared
		b.Fatal(err)
	}
	server, here := sessionCPU(b, backend), ownCPU(b)
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sessionCPU(b, backend)-server)/float64(b.N)/1000, "postgres-µs/op")
	b.ReportMetric(float64(ownCPU(b)-here)/float64(b.N)/1000, "client-µs/op")
}

// sessionCPU is the time that a session of the server has been on a processor, in nanoseconds, as Linux tells it.
func sessionCPU(b *testing.B, pid int) (ns int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Skipf("the server's processor time is not to be had here: %v", err)
	}
	if _, err := fmt.Fscan(strings.NewReader(string(text)), &ns); err != nil {
		b.Fatal(err)
	}
	return ns
}

func ownCPU(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
