package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler starts PgBouncer before a test's database, in transaction mode and with so many sessions of the server behind it, and gives the
// address by which it is reached. The login that the address names is let through, and no other. It ends with the test. Where PgBouncer is
// not installed, the test is skipped and says what to install.
func Pooler(t testing.TB, database string, sessions int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("NOT RUN: nothing was shown of transaction poolers, because PgBouncer is not installed (apt-get install pgbouncer)")
		}
	}
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	dir, port := t.TempDir(), freePort(t)
	write(t, filepath.Join(dir, "users"), fmt.Sprintf("%q %q\n", at.User.Username(), password))
	write(t, filepath.Join(dir, "pgbouncer.ini"), fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = plain
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
`, at.Hostname(), at.Port(), port, filepath.Join(dir, "users"), sessions))
	cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
	if os.Geteuid() == 0 { // as which it refuses to run
		cmd.Args = append(cmd.Args[:1], "-u", unprivileged(t, dir), filepath.Join(dir, "pgbouncer.ini"))
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("pgbouncer said:\n%s", said)
		}
	})
	at.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	awaitPooler(t, at.String())
	return at.String()
}

// unprivileged gives the folder, and those above it that are the test's own, to an account that is not root.
func unprivileged(t testing.TB, dir string) string {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		who, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		entries, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range append(entries, dir) {
			if err := os.Chown(path, uid, gid); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
			t.Fatal(err)
		}
		return name
	}
	t.Fatal("pgtest: no account that PgBouncer could run as")
	return ""
}

func awaitPooler(t testing.TB, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("pgtest: PgBouncer does not answer: %v", err)
		case <-time.After(20 * time.Millisecond): // polling with a deadline
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
