package store_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

// TestTimeZonesOfTheServerChangeNothing: sessions far from UTC, with half an hour in their offset, with daylight saving.
func TestTimeZonesOfTheServerChangeNothing(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Asia/Tokyo", "America/St_Johns", "Europe/Dublin", "Pacific/Kiritimati"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) { r.zone = zone })
			var got string
			r.scalar(&got, `show timezone`)
			if got != zone {
				t.Fatalf("got time zone %s, want %s", got, zone)
			}
			p := r.pending("a")
			if left := time.Until(p.Deadline); left < 30*time.Second || left > time.Minute+time.Second {
				t.Errorf("got %s left to decide, want about a minute", left)
			}
			if _, err := r.approve(p, "kim"); err != nil {
				t.Fatal(err)
			}
			c, err := r.apply(p)
			if err != nil || c.Status != commit.StatusApplied {
				t.Fatalf("got %s, %v, want applied", c.Status, err)
			}
			c = r.status(p.ID)
			e := c.Executions[0]
			if d := e.LeaseUntil.Sub(e.StartedAt); d != r.clocks.LeaseFor || c.Now.Sub(e.StartedAt) > time.Minute {
				t.Errorf("got a lease of %s from %s, want %s from about %s", d, e.StartedAt, r.clocks.LeaseFor, c.Now)
			}
			q := r.pending("b")
			r.shortly(q.ID, 0)
			if got := r.status(q.ID).Status; got != commit.StatusExpired {
				t.Errorf("got %s, want expired", got)
			}
		})
	}
}

// TestADayIsTwentyFourHours: where the clocks are put forward, a "day" is not, but a time of 24 hours is.
func TestADayIsTwentyFourHours(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.zone = "America/New_York" })
	const spring = `timestamptz '2026-03-08 00:30 America/New_York'`
	var ours, naive float64
	r.scalar(&ours, `select extract(epoch from (`+spring+` + $1::interval) - `+spring+`)::float8`, 24*time.Hour)
	r.scalar(&naive, `select extract(epoch from (`+spring+` + interval '1 day') - `+spring+`)::float8`)
	if want := (24 * time.Hour).Seconds(); ours != want || naive == want {
		t.Errorf("got %v s for our clocks' day and %v s for the naive one, want %v and another", ours, naive, want)
	}
	calendar := regexp.MustCompile(`(?i)interval\s+'[^']*(day|week|mon|year)|current_date|date_trunc|to_char\(|timestamp\s+without|::\s*timestamp\b|::\s*date\b`)
	named := regexp.MustCompile(`date_trunc\([^\n]*?\bzone\)`) // by the calendar of a zone that the statement names
	for name, sql := range sqlConstants(t) {
		if found := calendar.FindString(named.ReplaceAllString(sql, "")); found != "" {
			t.Errorf("%s counts with the calendar of the session: %s", name, found)
		}
	}
	var local []string
	r.scalar(&local, `select coalesce(array_agg(table_name || '.' || column_name), '{}') from information_schema.columns
		where table_schema = 'public' and table_name <> 'cutonce_migrations' and data_type in ('timestamp without time zone', 'date', 'time without time zone')`)
	if len(local) > 0 {
		t.Errorf("these columns depend on the session's time zone: %v", local)
	}
}

// TestTheApplicationsClockDecidesNothing runs the core where its own clock is an hour behind the database's, an hour ahead of it,
// and years behind. Every decision, and every time on record, is the database's.
func TestTheApplicationsClockDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour, "years behind": -25 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := newRig(t, unhurried)
			outside.rules.by = byText
			now := time.Now()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(now.Add(skew))) // the bubble's clock begins in the year 2000
				skewed(t, outside, now.Add(skew))
			})
		})
	}
}

// skewed takes changes through their lives in a bubble whose clock shows about now.
func skewed(t *testing.T, outside *rig, now time.Time) {
	r := outside.in(t)
	r.store = openStore(t, r.url)
	r.direct = r.store
	pool, err := pgxpool.New(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r.pool = pool
	r.previews, r.approvals, r.commits = services(t, r, r.store)
	if got := time.Since(now).Abs(); got > time.Minute {
		t.Fatalf("the bubble's clock is %s from where it should be", got)
	}
	live, late, waits := r.atState("live", "approved"), r.atState("late", "approved"), r.atState("waits", "pending")
	r.exec(expireSQL, late.ID.UUID())
	if c, err := r.apply(live); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("in time: got %s, %v, want applied", c.Status, err)
	}
	if c, err := r.apply(late); err != nil || c.Status != commit.StatusExpired {
		t.Errorf("after its time: got %s, %v, want expired", c.Status, err)
	}
	r.exec(expireSQL, waits.ID.UUID())
	_, err = r.approve(waits, "kim")
	wantCode(t, err, fault.Expired)
	if again := r.mustPrepare(agent("bot"), "", "late", "1 lead"); again.Replayed {
		t.Error("an expired preview was given again")
	}
	r.skewedOutcomes(t)
	var off int
	r.scalar(&off, `select count(*) from audit_events where at not between clock_timestamp() - interval '10 minutes' and clock_timestamp()`)
	if off > 0 {
		t.Errorf("got %d events with a time that is not the database's", off)
	}
}

// skewedOutcomes walks the clocks of an execution: lease, settling, and the looks in between.
func (r *rig) skewedOutcomes(t *testing.T) {
	p := r.unknown("unknown")
	early := didNot(p.ID)
	_, err := r.commits.Resolve(t.Context(), early)
	wantCode(t, err, fault.Conflict)
	r.exec(`update executions set next_probe_at = clock_timestamp() where preview_id = $1`, p.ID.UUID())
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if got := r.status(p.ID); got.Status != commit.StatusUnknown || len(got.Attempts) != 2 {
		t.Errorf("absent before the time to settle: got %s after %d attempts, want unknown after 2", got.Status, len(got.Attempts))
	}
	r.settleNow(p.ID)
	r.exec(`update executions set next_probe_at = clock_timestamp() where preview_id = $1`, p.ID.UUID())
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if got := r.status(p.ID).Status; got != commit.StatusNotApplied {
		t.Errorf("absent after the time to settle: got %s, want not_applied", got)
	}
}

// monotonic are the only places of the domain's rooms that read the process's clock, and what for: how long something has taken
// here, which no setting of the clock changes.
var monotonic = map[string]bool{
	"attempt": true, "execute": true, // how much of the lease an answer leaves, and what a send took
	"probe": true, "replay": true, // the same for a replay
}

// TestTheDomainReadsNoWallClock: a time.Now elsewhere in these rooms would be a decision by the application's clock.
func TestTheDomainReadsNoWallClock(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	reads := 0
	for _, room := range []string{".", "../commit", "../approvals", "../preview", "../policy"} {
		for _, f := range sourcesIn(t, files, room) {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				ast.Inspect(d, func(n ast.Node) bool {
					call, isCall := n.(*ast.SelectorExpr)
					if !isCall {
						return true
					}
					pkg, isPkg := call.X.(*ast.Ident)
					if !isPkg || pkg.Name != "time" || call.Sel.Name != "Now" && call.Sel.Name != "Since" && call.Sel.Name != "Until" {
						return true
					}
					reads++
					if room != "../commit" || !ok || !monotonic[fn.Name.Name] {
						t.Errorf("%s: the process's clock is read here", files.Position(n.Pos()))
					}
					return true
				})
			}
		}
	}
	if reads == 0 {
		t.Error("found no place that reads the clock: are they looked at?")
	}
}
