package store_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// tworoles are there after an earlier test, whose server this may be.
const tworoles = `do $$ begin create role cutonce_app nologin; create role cutonce_worker nologin; exception when duplicate_object then null; end $$`

// ownersDatabase is an empty database that a role owns which is no superuser and creates none, on a server of its own, and its address as
// that role. do says what an administrator does before.
func ownersDatabase(t *testing.T, do ...string) (address string, admin *pgx.Conn) {
	t.Helper()
	empty := pgtest.NewServer(t).URL()
	admin, err := pgx.Connect(t.Context(), empty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close(context.WithoutCancel(t.Context())) })
	for _, sql := range append([]string{`drop role if exists cutonce_owner`, `create role cutonce_owner login password 'of-the-tests'`,
		`do $$ begin execute format('alter database %I owner to cutonce_owner', current_database()); end $$`}, do...) {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	u, err := url.Parse(empty)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("cutonce_owner", "of-the-tests")
	return u.String(), admin
}

// TestAnOwnerWhoMakesNoRolesIsToldWhatToAskFor follows the advice, word for word.
func TestAnOwnerWhoMakesNoRolesIsToldWhatToAskFor(t *testing.T) {
	t.Parallel()
	address, admin := ownersDatabase(t)
	err := store.Migrate(t.Context(), address)
	if err == nil {
		t.Fatal("the roles were made by somebody who may not")
	}
	_, rest, _ := strings.Cut(err.Error(), `run "`)
	advice, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("got %v, want what to ask for", err)
	}
	if _, err := admin.Exec(t.Context(), advice); err != nil {
		t.Fatalf("%s: %v", advice, err)
	}
	if err := store.Migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context(), address); err != nil {
		t.Errorf("again: %v", err)
	}
}

// majorOf finds the major version in what pg_dump says of itself.
var majorOf = regexp.MustCompile(`\) (\d+)`)

// TestAnOwnerServesAndSeesNothing is one login for everything, as many begin: it migrates, it serves, and by itself it sees no row.
func TestAnOwnerServesAndSeesNothing(t *testing.T) {
	t.Parallel()
	address, _ := ownersDatabase(t, tworoles, `alter role cutonce_owner noinherit`, `alter schema public owner to cutonce_owner`,
		`grant cutonce_app, cutonce_worker to cutonce_owner`)
	if err := store.Migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(r *rig) { r.url = address; r.owner = true })
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	r.seal()
	var n int
	if r.scalar(&n, `select count(*) from previews`); n != 0 {
		t.Errorf("the owner sees %d changes, want none", n)
	}
	t.Run("a backup by the worker's role", func(t *testing.T) { backedUp(t, r, address, p) })
}

// backedUp wants a backup that the worker's role makes to hold a change. pg_dump refuses a server that is newer than itself.
func backedUp(t *testing.T, r *rig, address string, p preview.Preview) {
	dump, err := exec.LookPath("pg_dump")
	if err != nil {
		t.Skip("there is no pg_dump")
	}
	var server int
	r.scalar(&server, `select current_setting('server_version_num')::int / 10000`)
	version, err := exec.CommandContext(t.Context(), dump, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	own := majorOf.FindSubmatch(version)
	if own == nil {
		t.Fatalf("got %q, want the version of pg_dump", version)
	}
	if major, _ := strconv.Atoi(string(own[1])); major < server {
		t.Skipf("pg_dump %d refuses a server that is newer than itself, which is %d", major, server)
	}
	cmd := exec.CommandContext(t.Context(), dump, "--role=cutonce_worker", "--enable-row-security", "--dbname="+address)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), p.ID.UUID().String()) {
		t.Errorf("got a dump of %d bytes, %v, want one with the change", len(out), err)
	}
}
