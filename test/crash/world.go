package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/test/fleet"
)

// world is what one row has for itself: a database, replicas, and the changes that it makes.
type world struct {
	ctx context.Context
	f   *fleet.Fleet
	*suite
	row
	way
	template string

	// program is what the row's replicas run, empty for the suite's. life is that of its callers' tokens, zero for the usual one.
	program string
	life    time.Duration

	// direct is the row's database. database is how its replicas reach it: by way of proxies where the row asks for them.
	direct, database string
	db               *pgxpool.Pool

	// first is the replica that things happen to, other the one that stands by where another recovers, here the one that is
	// asked now.
	first, other, here *fleet.Process
	processes          []*fleet.Process
	recovered          bool
	// forgetful: the database was restored, and does not know of all that was sent.
	forgetful bool
	backupAt  time.Time
	changes   []*change
	closes    []func()

	failure                 string
	held                    bool
	lostPreviews, overshoot int
}

// fail ends the row, which has not held.
func (w *world) fail(format string, args ...any) {
	w.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *world) must(err error) {
	if err != nil {
		_, file, line, _ := runtime.Caller(1)
		w.fail("%s:%d: %v", file[strings.LastIndex(file, "/")+1:], line, err)
	}
}

// want fails unless got is one of wanted.
func want[T comparable](w *world, what string, got T, wanted ...T) {
	if !slices.Contains(wanted, got) {
		w.fail("%s: got %v, want %v", what, got, wanted)
	}
}

func (w *world) open() {
	var err error
	w.direct, err = w.f.Copy(w.ctx, w.template)
	w.must(err)
	w.database = w.direct
	w.db, err = pgxpool.New(w.ctx, w.direct)
	w.must(err)
	w.onClose(w.db.Close)
}

func (w *world) onClose(do func()) { w.closes = append(w.closes, do) }

// close ends the row's processes, in whatever state they are.
func (w *world) close() {
	for _, p := range w.processes {
		p.Kill()
	}
	for _, do := range slices.Backward(w.closes) {
		do()
	}
}

// proxied puts a proxy between the row's replicas, of now and later, and Postgres.
func (w *world) proxied() *wire.Proxy {
	proxy, through, err := wire.Through(w.direct)
	w.must(err)
	w.onClose(proxy.Close)
	w.database = through
	return proxy
}

// start runs the first replica, and beside it the other one where that is to recover.
func (w *world) start(r fleet.Replica) { w.startBoth(r, w.way == byAnother) }

// startBoth runs the first replica, and beside it the other one if both.
func (w *world) startBoth(r fleet.Replica, both bool) {
	if r.Database == "" {
		r.Database = w.database
	}
	w.first = w.launch(r)
	if both {
		r.Stops = nil
		w.other = w.launch(r)
		w.must(w.other.Ready(w.ctx))
	}
	w.must(w.first.Ready(w.ctx))
	w.here = w.first
}

func (w *world) launch(r fleet.Replica) *fleet.Process {
	if r.Binary == "" {
		r.Binary = w.program
	}
	p, err := w.f.Launch(r)
	w.must(err)
	w.processes = append(w.processes, p)
	return p
}

// recover kills the first replica, if it still runs, and goes on as the row's way is: with the same replica, started again
// without stops, or with the other one, which has been there all the time.
func (w *world) recover() {
	w.first.Kill()
	w.recovered = true
	if w.way == byAnother {
		w.here = w.other
		return
	}
	r := w.first.Replica
	r.Stops = nil
	w.here = w.launch(r)
	w.must(w.here.Ready(w.ctx))
}

// second is where the second of two calls goes: to the other replica, if there is one.
func (w *world) second() *fleet.Process {
	if w.other != nil {
		return w.other
	}
	return w.first
}

func (w *world) reached(point string) { w.must(w.first.Reached(w.soon(), point)) }

func (w *world) pass(point string) { w.must(w.first.Pass(point)) }

// soon bounds one thing that is waited for.
func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, 40*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// until waits for a fact.
func (w *world) until(what string, is func() bool) { w.must(fleet.Until(w.soon(), what, is)) }

// number is one number of the row's database.
func (w *world) number(sql string, args ...any) (n int) {
	w.must(w.db.QueryRow(w.ctx, sql, args...).Scan(&n))
	return n
}

// becomes waits until a question to the row's database is answered with yes. It may be down meanwhile.
func (w *world) becomes(what, sql string, args ...any) {
	w.until(what, func() (yes bool) { return w.db.QueryRow(w.ctx, sql, args...).Scan(&yes) == nil && yes })
}

func (w *world) exec(sql string, args ...any) {
	_, err := w.db.Exec(w.ctx, sql, args...)
	w.must(err)
}

// blocked waits until n sessions of the row's database wait for a row.
func (w *world) blocked(n int) {
	w.becomes(fmt.Sprintf("%d sessions to wait for a row", n), `
		select count(*) >= $1 from pg_stat_activity 
		where datname = current_database() and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple')`, n)
}

// hold locks a preview's row until release is called.
func (w *world) hold(id string) (release func()) {
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	_, err = tx.Exec(w.ctx, `select from previews where id = $1 for update`, uuidOf(w, id))
	w.must(err)
	return func() { w.must(tx.Commit(w.ctx)) }
}

// as is a caller at the replica that is asked now.
func (w *world) as(person string) fleet.Caller {
	c, err := w.f.As(person, w.here)
	w.must(err)
	if w.life > 0 {
		c.Token, err = w.f.Issuer.Token(person, devissuer.WithLife(time.Now().Add(-w.life/2), w.life))
		w.must(err)
	}
	return c
}

func (w *world) agent() fleet.Caller { return w.as("agent") }

// scratch is a folder that is removed with the fleet.
func (w *world) scratch(name string) string {
	dir, err := os.MkdirTemp(w.f.Dir, name)
	w.must(err)
	return dir
}

// seen is what was seen of the row's changes, for its line.
func (w *world) seen() string {
	var all []string
	for _, c := range w.changes {
		if c.beside {
			continue
		}
		text := fmt.Sprintf("%s N=%d", c.status, c.effects)
		if c.evidence != "" {
			text = fmt.Sprintf("%s (%s) N=%d", c.status, c.evidence, c.effects)
		}
		if c.contradicted {
			text += " contradicted"
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// change is one change of a row, with what it ended as.
type change struct {
	id, campaign, digest string
	// ended is set once it is fixed below what it ended as; beside says that it is not what the row is about.
	// retired: its record has been removed.
	ended, beside, retired bool

	status       commit.Status
	reason       commit.Reason
	evidence     commit.Evidence
	contradicted bool
	effects      int
}
