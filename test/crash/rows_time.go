package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

func t1(w *world) {
	w.start(fleet.Replica{Env: []string{"CUTONCE_RETENTION=720h"}})
	campaign := w.campaign()
	r, err := w.agent().Prepare(w.ctx, campaign, small, "k1")
	w.must(err)
	c := w.track(r, campaign)
	w.apply(c)
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	rejected := w.pending()
	want(w, "rejecting", w.decide("kim", "reject", rejected).Status, "rejected")
	w.ends(rejected, rests(commit.StatusRejected))
	young := w.prepared(small)
	w.apply(young)
	w.ends(young, applied(commit.ByReceipt, commit.ByLookup))
	for _, old := range []*change{c, rejected} {
		w.ages(old)
	}

	// A replica looks for what is old when it starts.
	if w.way == byAnother {
		w.other.Kill()
		w.other = w.launch(w.other.Replica)
		w.must(w.other.Ready(w.ctx))
	}
	w.recover()
	w.becomes("the records to be retired", `select count(*) = 2 from tombstones`)
	for _, old := range []*change{c, rejected} {
		r, err := w.agent().Apply(w.ctx, old.id)
		w.must(err)
		want(w, "applying what was retired", r.HTTP, http.StatusNotFound)
		want(w, "applying what was retired", r.Code, "not_found")
		want(w, "effects after all", w.tally(old.id).Effects, old.effects)
		want(w, "requests at the platform", w.tally(old.id).Received, old.effects)
		old.retired = true
	}
	r, err = w.agent().Prepare(w.ctx, campaign, small+1, "k1")
	w.must(err)
	want(w, "the key of what was retired", r.Code, "idempotency_conflict")
}

// ages makes a change one on which nothing has happened for two months. Its hashes no longer fit, as nobody will ask.
func (w *world) ages(c *change) {
	const ago = `interval '60 days'`
	id := uuidOf(w, c.id)
	w.unguarded(`update audit_events set at = at - `+ago+` where preview_id = $1`, id)
	w.unguarded(`update previews set created_at = created_at - `+ago+`, deadline = deadline - `+ago+` where id = $1`, id)
}

func t2(w *world) {
	w.life = 6 * time.Hour
	summer := w.summerIn(12 * time.Second)
	w.startBoth(fleet.Replica{Env: []string{
		"CUTONCE_CLOCK_PREVIEW_TTL=3s", "CRASH_CLOCK_SHIFT=1h", "TZ=America/New_York",
	}}, false)
	w.other = w.launch(fleet.Replica{Database: w.database, Env: []string{
		"CUTONCE_CLOCK_PREVIEW_TTL=3s", "CRASH_CLOCK_SHIFT=-1h", "TZ=Australia/Lord_Howe",
	}})
	w.must(w.other.Ready(w.ctx))
	w.becomes("the hour before summer time to end", `select clock_timestamp() > $1::timestamptz - interval '1 second'`, summer)
	fast, slow := w.first, w.other

	// Over the change to summer time, prepared by the fast replica and by the slow one.
	var lapsing []*change
	for _, p := range []*fleet.Process{fast, slow} {
		w.here = p
		c, live := w.prepared(small), w.prepared(small)
		lapsing = append(lapsing, c)
		want(w, "the time to live in milliseconds", w.number(
			`select (extract(epoch from deadline - created_at) * 1000)::int from previews where id = $1`, uuidOf(w, c.id)), 3000)
		w.everywhere("within its time", c, "approved")
		w.here = w.across(p)
		w.apply(live)
		w.ends(live, applied(commit.ByReceipt, commit.ByLookup))
	}
	for _, c := range lapsing {
		w.becomes("the deadline to pass", `select deadline <= clock_timestamp() from previews where id = $1`, uuidOf(w, c.id))
		w.everywhere("after its time", c, "expired")
		r, err := w.agent().Apply(w.ctx, c.id)
		w.must(err)
		want(w, "applying after the deadline", r.Code, "expired")
		w.ends(c, rests(commit.StatusExpired))
	}
	w.becomes("summer", `select clock_timestamp() > $1::timestamptz`, summer)
	w.t2People(fast, slow)
	w.t2Leases(fast, slow)
	w.here = fast
}

// t2People: a day to decide is 24 hours, though the day has 23.
func (w *world) t2People(fast, slow *fleet.Process) {
	w.here = slow
	c := w.pending()
	want(w, "the time to decide in seconds", w.number(
		`select extract(epoch from deadline - requested_at)::int from previews where id = $1`, uuidOf(w, c.id)), 24*60*60)
	w.here = fast
	want(w, "approving", w.decide("kim", "approve", c).Status, "approved")
	w.here = slow
	w.apply(c)
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
}

// t2Leases: a lease is neither cut short nor lengthened.
func (w *world) t2Leases(fast, slow *fleet.Process) {
	for _, p := range []*fleet.Process{fast, slow} {
		w.here = p
		c := w.prepared(small)
		w.fault(target.OpChange, c, target.Step{Action: target.DropBefore})
		want(w, "an apply without a reply", w.apply(c).Code, "outcome_unknown")
		w.everywhere("before it settles", c, "unknown", "not_applied")
		w.ends(c, absent)
		want(w, "settled after its time", w.number(
			`select count(*) from executions where preview_id = $1 and finished_at >= settle_at`, uuidOf(w, c.id)), 1)
		want(w, "the lease and what follows it, in milliseconds", w.number(
			`select (extract(epoch from settle_at - started_at) * 1000)::int from executions where preview_id = $1`, uuidOf(w, c.id)), 2500)
	}
}

func (w *world) across(p *fleet.Process) *fleet.Process {
	if p == w.first {
		return w.other
	}
	return w.first
}

// everywhere asks both replicas.
func (w *world) everywhere(when string, c *change, status ...string) {
	for _, p := range []*fleet.Process{w.first, w.other} {
		r, err := w.agent().At(p).Status(w.ctx, c.id, 0)
		w.must(err)
		want(w, "the status "+when, r.Status, status...)
	}
}

// summerIn makes the database's time zone one whose summer begins so soon.
func (w *world) summerIn(in time.Duration) time.Time {
	var at time.Time
	w.must(w.db.QueryRow(w.ctx, `select date_trunc('second', clock_timestamp() + $1::interval)`, in).Scan(&at))
	at = at.UTC()
	day := at.YearDay()
	if leap := time.Date(at.Year(), time.March, 1, 0, 0, 0, 0, time.UTC).YearDay() == 61; leap && day >= 60 {
		day-- // such rules never count 29 February
	}
	zone := fmt.Sprintf("STD0DST-1,J%d/%s,J%d/%s", day, at.Format(time.TimeOnly), day%365+1, at.Format(time.TimeOnly))
	var name string
	w.must(w.db.QueryRow(w.ctx, `select current_database()`).Scan(&name))
	w.exec(`alter database ` + name + ` set timezone = '` + zone + `'`)
	w.db.Reset() // so that our own sessions have it too
	want(w, "the offset after the change", w.number(
		`select extract(timezone from $1::timestamptz + interval '1 second')::int`, at), 3600)
	return at
}
