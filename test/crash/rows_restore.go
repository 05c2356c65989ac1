package main

import (
	"context"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/test/fleet"
)

func d2(w *world) {
	w.forgetful = true
	witness := filepath.Join(w.scratch("witness-"), "seal")
	w.startBoth(fleet.Replica{Env: []string{"CUTONCE_CLOCK_SEAL=200ms", "CUTONCE_SEAL_WITNESS=" + witness}}, false)
	done, open := w.d2Restored(func(known int) {
		w.until("the witness to be ahead of the backup", func() bool {
			seal, err := audit.ReadWitness(witness)
			return err == nil && seal != nil && seal.Number > int64(known)
		})
	})
	w.d2Looked(done, open)
	w.here.Kill()

	// Without a witness somebody has to say it.
	w.startBoth(fleet.Replica{}, false)
	done, open = w.d2Restored(func(int) {})
	w.command("restore", "declare", "--to", w.backupAt.UTC().Format(time.RFC3339), "--by", "kim", "--reason", "a test restores a backup")
	w.d2Looked(done, open)
}

// d2Restored applies a change that a backup does not know of, and restores the backup. The other change was not applied.
func (w *world) d2Restored(lost func(known int)) (done, open *change) {
	done, open = w.prepared(small), w.prepared(small)
	w.first.Kill()
	backup := w.backup()
	known := w.number(`select coalesce(max(number), 0) from seals`)

	w.first = w.launch(w.first.Replica)
	w.must(w.first.Ready(w.ctx))
	w.here = w.first
	w.apply(done)
	w.ends(done, applied(commit.ByReceipt, commit.ByLookup))
	done.ended = false
	lost(known)
	w.first.Kill()
	w.restore(backup)
	if w.way == byAnother {
		r := w.first.Replica
		r.Listen = ""
		w.other = w.launch(r)
		w.must(w.other.Ready(w.ctx))
	}
	w.recover()
	return done, open
}

// d2Looked wants that nothing is applied before the platform was asked, and nothing twice.
func (w *world) d2Looked(done, open *change) {
	r, err := w.agent().Apply(w.ctx, open.id)
	w.must(err)
	want(w, "applying while frozen", r.Code, "frozen")
	want(w, "applying while frozen", r.HTTP, http.StatusLocked)
	w.ends(done, applied(commit.ByLookup))
	want(w, "requests at the platform", w.tally(done.id).Received, 1)
	w.becomes("what is not at the platform to be let go", `select state = 'cleared' from restore_holds where preview_id = $1`, uuidOf(w, open.id))
	r, err = w.agent().Apply(w.ctx, open.id)
	w.must(err)
	want(w, "applying before an operator has looked", r.Code, "frozen")
	w.command("restore", "finish", "--by", "kim", "--reason", "everything was looked up")
	w.apply(open)
	w.ends(open, applied(commit.ByReceipt, commit.ByLookup))
}

// backup is a copy of the row's database as it is now, which nobody uses.
func (w *world) backup() (database string) {
	w.must(w.db.QueryRow(w.ctx, `select clock_timestamp()`).Scan(&w.backupAt))
	w.db.Reset() // we are somebody, too
	w.administer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '` + w.nameOf(w.direct) + `'`)
	database, err := w.f.Copy(w.ctx, w.direct)
	w.must(err)
	return database
}

// restore puts a backup in the place of the row's database.
func (w *world) restore(backup string) {
	name := w.nameOf(w.direct)
	w.administer(`drop database `+name+` with (force)`, `alter database `+w.nameOf(backup)+` rename to `+name)
	w.db.Reset()
}

func (w *world) nameOf(database string) string {
	at, err := url.Parse(database)
	w.must(err)
	return at.Path[1:]
}

// administer runs statements from outside the row's database.
func (w *world) administer(statements ...string) {
	conn, err := pgx.Connect(w.ctx, w.f.Cluster.URL())
	w.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(w.ctx)) }()
	for _, sql := range statements {
		_, err := conn.Exec(w.ctx, sql)
		w.must(err)
	}
}

// command runs one of the program's commands on the row's database.
func (w *world) command(args ...string) {
	command := exec.CommandContext(w.ctx, w.f.Binary, args...)
	command.Env = []string{"CUTONCE_DATABASE_URL=" + w.direct}
	if said, err := command.CombinedOutput(); err != nil {
		w.fail("%v: %v: %s", args, err, said)
	}
}
