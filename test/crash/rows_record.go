package main

import (
	"context"
	"net/url"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/test/fleet"
)

func r1(w *world) {
	w.start(fleet.Replica{Stops: []string{"before-record"}})
	c := w.prepared(small)
	lost := w.applying(c)
	w.reached("before-record")
	want(w, "effects before the record", w.tally(c.id).Effects, 1)
	w.recover()
	w.unheard(lost)
	want(w, "the status after the crash", w.status(c).Status, "applying", "unknown", "applied")
	w.free()
	w.ends(c, applied(commit.ByLookup))
}

func r2(w *world) {
	proxy := w.proxied()
	w.start(fleet.Replica{Stops: []string{"after-record"}})
	c := w.prepared(small)
	fired := proxy.Arm(theRecord, wire.AfterItIsDone)
	lost := w.applying(c)
	w.fired(fired)
	w.reached("after-record") // with an error, and before the record is tried again
	w.recover()
	w.unheard(lost)
	want(w, "the status after the crash", w.status(c).Status, "applied")
	w.ends(c, applied(commit.ByReceipt))
	want(w, "events of the outcome", w.events(c, "applied"), 1)

	// The process lives, and records again.
	for _, at := range []wire.Cut{wire.AfterItIsDone, wire.WhileItWorks, wire.BeforeTheServer} {
		c = w.prepared(small)
		fired = proxy.Arm(theRecord, at)
		want(w, "an apply whose record was not acknowledged", w.apply(c).Status, "applied")
		w.fired(fired)
		w.ends(c, applied(commit.ByReceipt, commit.ByLookup)) // a busy machine may have looked before it recorded again
		want(w, "events of the outcome", w.events(c, "applied"), 1)
	}
}

func r3(w *world) {
	w.asOrdinaryRole()
	w.start(fleet.Replica{Stops: []string{"before-record"}})

	// Nobody gets a connection.
	c := w.prepared(small)
	refused := w.applying(c)
	w.reached("before-record")
	w.connections(0)
	w.pass("before-record")
	w.says("recording an outcome failed")
	w.unrecorded(c)
	w.connections(-1)
	// Its answer may have needed a connection while there was none: then it says that it does not know.
	want(w, "an apply that was recorded late", w.answered(refused).Code, "", "outcome_unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	want(w, "events of the outcome", w.events(c, "applied"), 1)

	// The row is held for a while.
	c = w.prepared(small)
	w.fault(target.OpChange, c, target.Step{Action: target.HoldAfter, Gate: c.id})
	held := w.applying(c)
	w.arrived(target.StageEffect, c)
	release := w.hold(c.id)
	w.must(w.f.Ads.Release(w.ctx, c.id))
	w.blocked(1)
	w.unrecorded(c)
	release()
	want(w, "an apply that was held", w.answered(held).Status, "applied")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))

	// The server refuses, twice each, as it does where transactions collide and where a disk is full.
	for _, code := range []string{"40001", "53100"} {
		w.refusesTwice(code)
		c = w.prepared(small)
		want(w, "an apply whose record failed with "+code, w.apply(c).Status, "applied")
		want(w, "failures", w.number(`select last_value from failures`), 3)
		w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
		want(w, "events of the outcome", w.events(c, "applied"), 1)
		w.exec(`drop trigger fails on executions; drop function fails; drop sequence failures`)
	}
	w.r3Killed()
}

// r3Killed: the process dies while its record fails.
func (w *world) r3Killed() {
	c := w.prepared(small)
	w.fault(target.OpChange, c, target.Step{Action: target.HoldAfter, Gate: c.id})
	lost := w.applying(c)
	w.arrived(target.StageEffect, c)
	w.connections(0)
	w.must(w.f.Ads.Release(w.ctx, c.id))
	w.says("recording an outcome failed")
	w.first.Kill()
	w.connections(-1)
	w.recover()
	w.unheard(lost)
	w.ends(c, applied(commit.ByLookup))
}

// asOrdinaryRole makes the row's replicas connect as a role whose connections can be limited, which those of a superuser cannot.
func (w *world) asOrdinaryRole() {
	at, err := url.Parse(w.direct)
	w.must(err)
	role := at.Path[1:] + "_app"
	w.exec(`create role ` + role + ` login password 'app'`)
	w.exec(`grant all on schema public to ` + role)
	w.exec(`grant all on all tables in schema public to ` + role)
	w.exec(`grant cutonce_app, cutonce_worker to ` + role)
	at.User = url.UserPassword(role, "app")
	w.database = at.String()
}

// connections limits how many connections the replicas' role may have, and ends those that it has if there are to be none.
func (w *world) connections(most int) {
	at, err := url.Parse(w.database)
	w.must(err)
	role := pgx.Identifier{at.User.Username()}.Sanitize()
	if most < 0 {
		w.exec(`alter role ` + role + ` connection limit -1`)
		return
	}
	w.exec(`alter role ` + role + ` connection limit 0`)
	w.exec(`select pg_terminate_backend(pid) from pg_stat_activity where usename = $1`, at.User.Username())
}

// unrecorded: there is no success on record, nor in what readers are told, while the platform has done it.
func (w *world) unrecorded(c *change) {
	want(w, "effects", w.tally(c.id).Effects, 1)
	want(w, "events of the outcome", w.events(c, "applied"), 0)
	want(w, "success on record", w.number(`select count(*) from executions where preview_id = $1 and state = 'applied'`, uuidOf(w, c.id)), 0)
}

// says waits until the first replica logs something.
func (w *world) says(text string) {
	w.until("the log to say: "+text, func() bool { return strings.Contains(w.first.Log(), text) })
}

// refusesTwice makes the next two records of an outcome fail with an SQLSTATE. A sequence counts, for it is not rolled back.
func (w *world) refusesTwice(code string) {
	w.exec(`
		create sequence failures;
		grant all on sequence failures to public;
		create function fails() returns trigger language plpgsql as $$ begin
			if nextval('failures') <= 2 then raise exception 'simulated' using errcode = '` + code + `'; end if;
			return new;
		end $$;
		create trigger fails before update on executions for each row when (new.state = 'applied') execute function fails()`)
}

func r4(w *world) {
	w.start(fleet.Replica{Env: []string{"CUTONCE_CLOCK_SEND=5s", "CUTONCE_CLOCK_LEASE=10s"}})
	// The client leaves.
	left := w.prepared(small)
	w.fault(target.OpChange, left, target.Step{Action: target.HoldBefore, Gate: left.id})
	ctx, leave := context.WithCancel(w.ctx)
	agent := w.agent()
	gone := async(func() (fleet.Reply, error) { return agent.Apply(ctx, left.id) })
	w.arrived(target.StageHeld, left)
	leave()
	w.unheard(gone)
	w.must(w.f.Ads.Release(w.ctx, left.id))
	w.ends(left, applied(commit.ByReceipt))

	// The process is told to end.
	c := w.prepared(small)
	w.fault(target.OpChange, c, target.Step{Action: target.HoldBefore, Gate: c.id})
	kept := w.applying(c)
	w.arrived(target.StageHeld, c)
	w.must(w.first.Signal(syscall.SIGTERM))
	w.refusesCalls()
	w.must(w.f.Ads.Release(w.ctx, c.id))
	want(w, "the answer of a process that was told to end", w.answered(kept).Status, "applied")
	select {
	case <-w.first.Done():
	case <-w.soon().Done():
		w.fail("the process does not end")
	}
	w.recover()
	w.ends(c, applied(commit.ByReceipt))
	r := w.apply(c)
	want(w, "applying again", r.Status, "applied")
}

// refusesCalls waits until the process takes no new calls.
func (w *world) refusesCalls() {
	w.until("the process to take no new calls", func() bool {
		_, err := w.agent().Do(w.ctx, "GET", "/v1/previews", nil)
		return err != nil
	})
}
