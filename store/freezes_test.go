package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

func admin(name string) actor.Actor {
	return actor.Actor{Tenant: "acme", Kind: actor.Human, Issuer: "https://id.example", Subject: name, Roles: []string{actor.RoleAdmin}}
}

func (r *rig) order(kind commit.FreezeKind, name string, by actor.Actor) commit.FreezeOrder {
	return commit.FreezeOrder{Kind: kind, Name: name, By: by, Reason: "a test of freezes"}
}

func (r *rig) freeze(kind commit.FreezeKind, name string) commit.Frozen {
	r.t.Helper()
	f, err := r.commits.Freeze(r.t.Context(), r.order(kind, name, admin("kim")))
	if err != nil {
		r.t.Fatalf("freeze: %v", err)
	}
	return f
}

func other(r *rig) {
	second := newLedger()
	second.suffix = "2"
	r.others = append(r.others, second)
}

func TestAFreezeCoversWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order func(r *rig) commit.FreezeOrder
		key   string // of the refusal; empty: it is applied
	}{
		"its action":     {func(r *rig) commit.FreezeOrder { return r.order(commit.FreezeAction, "text_change", operator("lee")) }, "fault.frozen.action"},
		"another action": {func(r *rig) commit.FreezeOrder { return r.order(commit.FreezeAction, "text_change2", operator("lee")) }, ""},
		"its connector":  {func(r *rig) commit.FreezeOrder { return r.order(commit.FreezeConnector, "ledger", operator("lee")) }, "fault.frozen.connector"},
		"a longer name":  {func(r *rig) commit.FreezeOrder { return r.order(commit.FreezeConnector, "ledger2", operator("lee")) }, ""},
		"its tenant":     {func(r *rig) commit.FreezeOrder { return r.order(commit.FreezeTenant, "", operator("lee")) }, "fault.frozen.tenant"},
		"another's tenant": {func(r *rig) commit.FreezeOrder {
			return r.order(commit.FreezeTenant, "", with(operator("lee"), func(a *actor.Actor) { a.Tenant = "other" }))
		}, ""},
		"everything": {func(r *rig) commit.FreezeOrder { return r.order(commit.FreezeEverything, "", admin("kim")) }, "fault.frozen.everything"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, other)
			p := r.prepare("a", "new")
			order := tc.order(r)
			claim := r.claimOf(p)
			if _, err := r.commits.Freeze(t.Context(), order); err != nil {
				t.Fatal(err)
			}
			if order.By.Tenant == "acme" { // another tenant's epochs are not ours
				if err := r.store.ClaimApproved(t.Context(), claim); !errors.Is(err, commit.ErrEpochsMoved) {
					t.Errorf("claiming on the epochs from before: got %v, want ErrEpochsMoved", err)
				}
			}
			c, err := r.apply(p)
			if tc.key == "" {
				if err != nil || c.Status != commit.StatusApplied {
					t.Errorf("got %s, %v, want applied", c.Status, err)
				}
				return
			}
			f := fault.From(err)
			if f.Key != tc.key || f.Args["by"] != order.By.HumanName() || f.Args["reason"] != order.Reason || f.Data["freeze"] == nil ||
				c.Status != commit.StatusApproved || r.target.total() != 0 {
				t.Errorf("got %s %v %v, %s with %d effects, want %s by %s", f.Key, f.Args, f.Data, c.Status, r.target.total(), tc.key, order.By.HumanName())
			}
			y, err := r.commits.Why(t.Context(), person("choi"), p.ID)
			if err != nil || y.Text.Key != tc.key || y.Text.Args["by"] != order.By.HumanName() || y.Text.Args["reason"] != order.Reason || y.Mover != "operator" {
				t.Errorf("why: got %+v by %s, %v, want %s", y.Text, y.Mover, err, tc.key)
			}
			// Even a claim that names the present epochs is refused where it is written.
			if err := r.store.ClaimApproved(t.Context(), r.claimOf(p)); !errors.Is(err, commit.ErrNotClaimed) {
				t.Errorf("claiming under the freeze: got %v, want ErrNotClaimed", err)
			}
			if err := r.commits.Lift(t.Context(), order); err != nil {
				t.Fatal(err)
			}
			if c, err = r.apply(p); err != nil || c.Status != commit.StatusApplied {
				t.Errorf("after the thaw: got %s, %v, want applied", c.Status, err)
			}
		})
	}
}

func TestAFreezeEndsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	order := r.order(commit.FreezeAction, "text_change", operator("lee"))
	order.For = time.Minute
	f, err := r.commits.Freeze(t.Context(), order)
	if err != nil || f.Freeze.Until == nil || f.Freeze.Until.Sub(f.Freeze.At) != time.Minute {
		t.Fatalf("got %+v, %v, want a minute", f, err)
	}
	if _, err = r.apply(p); fault.From(err).Key != "fault.frozen.action_until" {
		t.Errorf("got %v, want it frozen until then", err)
	}
	// Its time is over, and no epoch has moved.
	r.exec(`alter table freezes disable trigger user`)
	r.exec(`update freezes set frozen_at = frozen_at - interval '1 hour', until = until - interval '1 hour'`)
	r.exec(`alter table freezes enable trigger user`)
	if all, _, err := r.commits.Standing(t.Context(), person("choi")); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v, want nothing frozen", all, err)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
	r.freeze(commit.FreezeTenant, "")
	var rows int
	r.scalar(&rows, `select count(*) from freezes`)
	if rows != 1 {
		t.Errorf("got %d rows, want the lapsed one gone", rows)
	}
}

func TestAFreezeReturnsAfterTheClaimsBeforeItAndListsThem(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	release := r.hold(p.ID) // the claim has its shared lock and waits for the row
	claim := r.claimOf(p)
	claimed, frozen := make(chan error, 1), make(chan commit.Frozen, 1)
	go func() { claimed <- r.store.ClaimApproved(context.Background(), claim) }()
	r.awaitBlocked(1)
	go func() {
		f, err := r.commits.Freeze(context.Background(), r.order(commit.FreezeConnector, "ledger", operator("lee")))
		if err != nil {
			t.Error(err)
		}
		frozen <- f
	}()
	r.await(`select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
		and database = (select oid from pg_database where datname = current_database()))`)
	select {
	case <-frozen:
		t.Error("the freeze returned before the claim had ended")
	default:
	}
	release()
	if err := receive(t, claimed); err != nil {
		t.Errorf("claim: %v", err)
	}
	f := receive(t, frozen)
	if len(f.InFlight) != 1 || f.InFlight[0].Preview.ID != p.ID || f.InFlight[0].Status != commit.StatusApplying || f.More {
		t.Errorf("got %+v in flight, want the change that was claimed before", f.InFlight)
	}
	if _, err := r.apply(r.prepare("b", "new")); !errors.Is(err, fault.Frozen) {
		t.Errorf("a claim after the freeze: got %v, want frozen", err)
	}
	if f = r.freeze(commit.FreezeAction, "text_change"); len(f.InFlight) != 1 {
		t.Errorf("got %d in flight of the action, want 1", len(f.InFlight))
	}
}

// A replay can cause the effect as a send can: one that begins while a freeze is set has begun when the freeze answers, or not at all.
func TestAFreezeReturnsAfterTheReplaysBeforeIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, remembers(time.Hour))
	p, _ := r.swallowed("a")
	release := r.hold(p.ID) // the replay has read what is frozen, and waits for the row
	begun, frozen := make(chan bool, 1), make(chan error, 1)
	go func() {
		ok, err := r.store.BeginProbe(t.Context(), commit.Key{Tenant: "acme", ID: p.ID}, uuid.New(), commit.Replay, time.Minute, time.Second)
		if err != nil {
			t.Error(err)
		}
		begun <- ok
	}()
	r.awaitBlocked(1)
	go func() {
		_, err := r.commits.Freeze(t.Context(), r.order(commit.FreezeTenant, "", operator("lee")))
		frozen <- err
	}()
	r.await(`select frozen or exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
		and database = (select oid from pg_database where datname = current_database()))
		from (select coalesce(bool_or(frozen), false) as frozen from controls) c`)
	early := false
	r.scalar(&early, `select coalesce(bool_or(frozen), false) from controls`)
	release()
	if ok := receive(t, begun); ok && early {
		t.Error("a replay began after the freeze had answered")
	}
	if err := receive(t, frozen); err != nil {
		t.Errorf("freeze: %v", err)
	}
}

func TestAFreezeHoldsReplaysAndNotLookUps(t *testing.T) {
	t.Parallel()
	r := newRig(t, remembers(time.Hour), other)
	p, said := r.swallowed("a")
	key := commit.Key{Tenant: "acme", ID: p.ID}
	begin := func(kind commit.AttemptKind) bool {
		ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), kind, time.Millisecond, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	r.freeze(commit.FreezeAction, "text_change2")
	r.freeze(commit.FreezeAction, "text_change")
	if begin(commit.Replay) || !begin(commit.Lookup) {
		t.Error("under its freeze a replay began, or a look-up did not")
	}
	if err := r.commits.Lift(t.Context(), r.order(commit.FreezeAction, "text_change", operator("lee"))); err != nil {
		t.Fatal(err)
	}
	// The other action's freeze is none of its business.
	if c := r.sweepUntil(p.ID, commit.StatusApplied); c.Executions[0].Evidence != commit.ByReplay || said.Load() != 2 {
		t.Errorf("got %s after %d calls, want one replay", c.Executions[0].Evidence, said.Load())
	}
}

func TestWhoMayFreeze(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	machine := with(operator("lee"), func(a *actor.Actor) { a.Kind = actor.Service })
	for name, tc := range map[string]struct {
		order commit.FreezeOrder
		key   string
	}{
		"an agent":               {r.order(commit.FreezeTenant, "", with(agent("bot"), func(a *actor.Actor) { a.Roles = []string{actor.RoleAdmin} })), "fault.forbidden.humans_only"},
		"a service":              {r.order(commit.FreezeTenant, "", machine), "fault.forbidden.humans_only"},
		"an approver":            {r.order(commit.FreezeTenant, "", person("kim", "leads")), "fault.forbidden.operators_only"},
		"an operator everything": {r.order(commit.FreezeEverything, "", operator("lee")), "fault.forbidden.admins_only"},
		"an unknown action":      {r.order(commit.FreezeAction, "text_chnage", operator("lee")), "fault.invalid_input"},
		"an unknown connector":   {r.order(commit.FreezeConnector, "ledge", operator("lee")), "fault.invalid_input"},
		"a tenant by name":       {r.order(commit.FreezeTenant, "other", operator("lee")), "fault.invalid_input"},
		"of no kind":             {r.order("all", "", admin("kim")), "fault.invalid_input"},
	} {
		if _, err := r.commits.Freeze(t.Context(), tc.order); fault.From(err).Key != tc.key {
			t.Errorf("%s: got %v, want %s", name, err, tc.key)
		}
		if err := r.commits.Lift(t.Context(), tc.order); fault.From(err).Key != tc.key {
			t.Errorf("%s, lifting: got %v, want %s", name, err, tc.key)
		}
	}
	short := r.order(commit.FreezeTenant, "", operator("lee"))
	short.For = time.Second
	if _, err := r.commits.Freeze(t.Context(), short); !errors.Is(err, fault.InvalidInput) {
		t.Errorf("a second: got %v, want invalid_input", err)
	}
	if err := r.commits.Lift(t.Context(), r.order(commit.FreezeTenant, "", operator("lee"))); !errors.Is(err, fault.NotFound) {
		t.Errorf("nothing to lift: got %v, want not_found", err)
	}
	if _, _, err := r.commits.Standing(t.Context(), agent("bot")); !errors.Is(err, fault.Forbidden) {
		t.Errorf("an agent lists: got %v, want forbidden", err)
	}
}

func TestAFreezeOfOneTenantIsNotAnothers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.freeze(commit.FreezeTenant, "")
	r.freeze(commit.FreezeEverything, "")
	stranger := with(operator("lee"), func(a *actor.Actor) { a.Tenant = "other" })
	for who, want := range map[*actor.Actor][]commit.FreezeKind{
		ptr(operator("lee")): {commit.FreezeEverything, commit.FreezeTenant}, &stranger: {commit.FreezeEverything},
	} {
		all, _, err := r.commits.Standing(t.Context(), *who)
		var got []commit.FreezeKind
		for _, f := range all {
			got = append(got, f.Kind)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s sees (-want +got):\n%s%v", who.Tenant, diff, err)
		}
	}
	if err := r.commits.Lift(t.Context(), r.order(commit.FreezeTenant, "", stranger)); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant lifts: got %v, want not_found", err)
	}
}

func ptr[T any](v T) *T { return &v }

func TestPostgresRefusesFreezesThatNobodyAnswersFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.freeze(commit.FreezeTenant, "")
	for name, tc := range map[string]struct{ sql, want string }{
		"set without an event":         {`insert into freezes values ('acme', 'action', 'x', 'kim', 'why', clock_timestamp())`, "CU003"},
		"lifted without an event":      {`delete from freezes`, "CU003"},
		"ended early without an event": {`update freezes set until = frozen_at + interval '1 second'`, "CU003"},
		"denied by its control":        {controlSQL("acme", `frozen = false`), "CU012"},
		"everything of one tenant":     {`insert into freezes values ('acme', 'everything', '', 'kim', 'why', clock_timestamp())`, "23514"},
		"all removed":                  {`truncate freezes`, "CU001"},
	} {
		if got := r.sqlState(run(tc.sql)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
