package pglocal_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/internal/pgtest"
)

func TestADurableClusterKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	cfg := config(folder(t))
	cfg.Volatile = false
	first := open(t, cfg)
	exec1(t, first.URL(), `create table kept as select 'still here' as text`)
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "data_checksums": "on",
		"server_encoding": "UTF8", "listen_addresses": "127.0.0.1", "password_encryption": "scram-sha-256",
	} {
		if got := ask(t, first.URL(), "select current_setting('"+setting+"')"); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
	shut(t, first)

	second := open(t, cfg)
	if got, want := ask(t, second.URL(), `select text from kept`), "still here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheServerIsNeverRootAndNothingOfItIsOpen(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	c := open(t, config(dir))
	base := filepath.Join(dir, "test")
	for name, want := range map[string]os.FileMode{"password": 0o600, "server.log": 0o600, "data": 0o700} {
		info, err := os.Stat(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %o, want %o", name, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(base, "data"))
	if err != nil {
		t.Fatal(err)
	}
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	switch euid := os.Geteuid(); {
	case euid == 0 && uid == 0:
		t.Error("the data belongs to root")
	case euid != 0 && uid != euid:
		t.Errorf("got data of uid %d, want %d", uid, euid)
	}
	if strings.Contains(c.Describe(), password(t, dir)) {
		t.Error("the description holds the password")
	}
	wrong := strings.Replace(c.URL(), password(t, dir), "guess", 1)
	if conn, err := pgx.Connect(t.Context(), wrong); err == nil {
		conn.Close(t.Context())
		t.Error("connected with a wrong password")
	}
}

// A second process beside the first, then the first one's sudden death.
func TestOneProcessAtATimeAndASIGKILLBlocksNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first, url := holder(t, dir)
	exec1(t, url, `create table kept as select 'survived' as text`)

	_, err := pglocal.Open(t.Context(), config(dir))
	var inUse *pglocal.InUseError
	if !errors.As(err, &inUse) {
		t.Fatalf("got %v, want an InUseError", err)
	}
	if got, want := inUse.PID, first.Pid; got != want {
		t.Errorf("got pid %d, want %d", got, want)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(first.Pid)) {
		t.Errorf("%q does not name process %d", err, first.Pid)
	}

	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the lock of the killed process", func() bool { return syscall.Kill(first.Pid, 0) != nil || isZombie(first.Pid) })
	c := open(t, config(dir))
	if got, want := ask(t, c.URL(), `select text from kept`), "survived"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAForgottenClusterKeepsItsLock(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	forget(t, dir)
	for range 5 {
		runtime.GC() // runs the finalizers of what it finds unreachable, soon after
		_, err := pglocal.Open(t.Context(), config(dir))
		var inUse *pglocal.InUseError
		if !errors.As(err, &inUse) {
			t.Fatalf("got %v, want an InUseError", err)
		}
	}
}

// forget opens a cluster and keeps nothing of it but its server, which the test ends by the pid in its file.
func forget(t *testing.T, dir string) {
	t.Helper()
	if _, err := pglocal.Open(t.Context(), config(dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(dir, "test", "data", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		pid, err := strconv.Atoi(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		await(t, "the forgotten server's end", func() bool { return syscall.Kill(pid, 0) != nil })
	})
}

func TestTheServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	process, url := holder(t, folder(t))
	exec1(t, url, `select 1`)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the server's end", func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			conn.Close(t.Context())
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

func TestAnOrphanedServerIsStopped(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	c := open(t, config(dir))
	exec1(t, c.URL(), `create table kept as select 'orphaned' as text`)
	shut(t, c)
	orphan := startOrphan(t, dir)

	c = open(t, config(dir))
	if got, want := ask(t, c.URL(), `select text from kept`), "orphaned"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	select {
	case <-orphan:
	default:
		t.Error("the orphan is still running")
	}
}

// startOrphan runs a server on the data directory without a parent-death signal and without the lock.
func startOrphan(t *testing.T, dir string) (ended <-chan struct{}) {
	t.Helper()
	bins, err := pglocal.Find(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "test", "data")
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bins.Dir, "postgres"), "-D", data, "-c", "port="+strconv.Itoa(unusedPort(t)), "-c", "unix_socket_directories=")
	cmd.Dir = data
	if os.Geteuid() == 0 {
		owner := info.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-done })
	await(t, "the orphan's pid file", func() bool {
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return err == nil && strings.Contains(string(text), "ready")
	})
	return done
}

func TestAPidFileThatNamesAnUnrelatedProcessIsIgnored(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	shut(t, open(t, config(dir)))
	bystander := exec.Command("sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bystander.Process.Kill(); bystander.Wait() })
	data := filepath.Join(dir, "test", "data")
	text := fmt.Sprintf("%d\n%s\n1700000000\n5432\n\n127.0.0.1\n", bystander.Process.Pid, data)
	if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, config(dir))
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil || isZombie(bystander.Process.Pid) {
		t.Errorf("the unrelated process was ended (%v)", err)
	}
}

func TestStopKillAndStartKeepTheURLAndTheData(t *testing.T) {
	t.Parallel()
	c := open(t, config(folder(t)))
	exec1(t, c.URL(), `create table kept (n int)`)
	url := c.URL()
	for name, end := range map[string]func(context.Context) error{"stop": c.Stop, "kill": c.Kill} {
		exec1(t, url, `insert into kept values (1)`)
		if err := end(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if conn, err := pgx.Connect(t.Context(), url); err == nil {
			conn.Close(t.Context())
			t.Fatalf("%s: the server still answers", name)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatalf("start after %s: %v", name, err)
		}
	}
	if got, want := ask(t, url, `select count(*)::text from kept`), "2"; got != want {
		t.Errorf("got %s rows, want %s", got, want)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := config(folder(t))
	cfg.Port = l.Addr().(*net.TCPAddr).Port
	_, err = pglocal.Open(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(cfg.Port)) {
		t.Errorf("got %v, want an error that names port %d", err, cfg.Port)
	}
}

func TestAFolderThatTheAccountCannotEnterIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root hands its cluster to another account")
	}
	dir := folder(t)
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := pglocal.Open(t.Context(), config(closed))
	if err == nil || !strings.Contains(err.Error(), closed+" cannot be entered") {
		t.Errorf("got %v, want an error that names %s", err, closed)
	}
}

func TestAFolderThatOthersMayWriteToIsRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if c, err := pglocal.Open(t.Context(), config(dir)); err == nil {
		shut(t, c)
		t.Error("got a cluster in a folder that everybody may write to")
	}
}

func TestAConfiguredURLIsUsedAndLeftAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c, err := pglocal.Open(t.Context(), pglocal.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if c.Private() || !strings.Contains(c.Describe(), "(configured)") {
		t.Errorf("got %q, private %v; want a configured server", c.Describe(), c.Private())
	}
	shut(t, c)
	exec1(t, url, `select 1`)
}

func password(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "test", "password"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}

// isZombie tells a process that has ended and is not yet collected from a live one.
func isZombie(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
