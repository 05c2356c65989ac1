package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// purse is the ledger as an ad platform sees it: its texts are amounts, and a change of one is a change of money.
type purse struct{ *ledger }

func yen(minor int64) connector.Value {
	return connector.Money(money.Amount{Minor: minor, Currency: "JPY"})
}

// Prepare shows the text as the amount that it is.
func (p purse) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := p.ledger.Prepare(ctx, who, action, in)
	var before, after int64
	fmt.Sscan(*plan.Changes[0].Before.Text, &before)
	fmt.Sscan(*plan.Changes[0].After.Text, &after)
	plan.Changes = append(plan.Changes, connector.Change{Field: "daily_budget", Before: yen(before), After: yen(after)})
	return plan, impact, err
}

// capped compiles a policy that allows everything within caps.
func capped(t testing.TB, rule, caps string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("caps.yaml", []byte("version: 1\nzone: Asia/Tokyo\ndefault: {require: [{any_of: [leads]}]}\nrules:\n"+
		"  - {name: the-rule, when: \"true\", then: "+rule+"}\ncaps:\n"+caps))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const daily = `  - {name: daily, actions: [text_change], field: daily_budget, per: tenant, window: month, limit: {JPY: 1000}}
`

// capRig is a rig whose ledger holds money and whose policy is real.
func capRig(t testing.TB, rule, caps string) *rig {
	return newRig(t, func(r *rig) {
		rules := capped(t, rule, caps)
		r.front, r.rules.by, r.rules.real = purse{r.target}, rules.Evaluate, rules
	}, hasty)
}

func (r *rig) raise(id string, to int64) preview.Preview {
	r.t.Helper()
	return r.prepare(id, fmt.Sprint(to))
}

func wantExceeded(t testing.TB, p preview.Preview, limit, used, held, asked int64) {
	t.Helper()
	e := p.Ruling.Exceeded
	if p.State != preview.Denied || e == nil {
		t.Fatalf("got %s, %+v, want denied by a cap", p.State, p.Ruling)
	}
	got := [4]int64{e.Limit.Minor, e.Used.Minor, e.Held.Minor, e.Asked.Minor}
	if want := [4]int64{limit, used, held, asked}; got != want {
		t.Errorf("limit, used, held, asked: got %v, want %v", got, want)
	}
}

// TestHeadToHead10_ManySmallRaises: each raise is small, and together they are not.
func TestHeadToHead10_ManySmallRaises(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", `  - {name: half, actions: [text_change], field: daily_budget, per: target, window: month, limit: {percent: 50}}
`)
	r.target.move("a", "10000")
	value := int64(10000)
	for i := range 4 {
		value += value * 9 / 100
		p := r.raise("a", value)
		if p.State != preview.Approved {
			t.Fatalf("raise %d to %d: got %s, want approved", i+1, value, p.State)
		}
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
			t.Fatalf("raise %d: got %s, %v", i+1, c.Status, err)
		}
	}
	p := r.raise("a", value+value*9/100)
	wantExceeded(t, p, 5000, value-10000, 0, value*9/100)
	if e := p.Ruling.Exceeded; !e.ResetsAt.After(p.CreatedAt) || p.Ruling.Rule != "cap:half" {
		t.Errorf("got %s, %s, want the window's end and the cap's name", e.ResetsAt, p.Ruling.Rule)
	}
	if stored := r.status(p.ID); stored.Status != commit.StatusDenied || stored.Preview.Ruling.Exceeded == nil {
		t.Errorf("stored: got %s, %+v", stored.Status, stored.Preview.Ruling)
	}
	if got := r.raise("b", 0).State; got != preview.Approved {
		t.Errorf("another target: got %s, want approved", got)
	}
}

// Fifty changes of 100 against a cap of 1,000, at once, over three replicas: ten are applied.
func TestACapHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", daily)
	type door struct {
		previews *preview.Service
		commits  *commit.Service
	}
	var doors []door
	for range 3 {
		previews, _, commits := services(t, r, openPool(t, r.url, 4))
		doors = append(doors, door{previews, commits})
	}
	var mu sync.Mutex
	var applied, denied int
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			d := doors[i%len(doors)]
			got, err := d.previews.Prepare(t.Context(), agent("bot"), preview.Request{Action: "text_change", Input: input(fmt.Sprintf("t%d", i), "100")})
			if err != nil {
				t.Errorf("prepare: %v", err)
				return
			}
			status := commit.StatusDenied
			if got.Preview.State == preview.Approved {
				c, err := d.commits.Apply(t.Context(), agent("bot"), "text_change", got.Preview.ID, 10*time.Second)
				if err != nil {
					t.Errorf("apply: %v", err)
					return
				}
				status = c.Status
			}
			mu.Lock()
			defer mu.Unlock()
			switch status {
			case commit.StatusApplied:
				applied++
			case commit.StatusDenied:
				denied++
			default:
				t.Errorf("got %s", status)
			}
		})
	}
	group.Wait()
	if applied != 10 || denied != 40 || r.target.total() != 10 {
		t.Errorf("got %d applied, %d denied, %d effects, want 10, 40, 10", applied, denied, r.target.total())
	}
}

// What was never applied gives its share back by its state alone; what is unknown keeps it.
func TestASharesLifeIsItsChanges(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", daily)
	p := r.raise("a", 600)
	wantExceeded(t, r.raise("b", 600), 1000, 0, 600, 600)
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), p.ID, ""); err != nil {
		t.Fatal(err)
	}
	late := r.raise("b", 600)
	if late.State != preview.Approved {
		t.Fatalf("after a cancel: got %s, want approved", late.State)
	}
	r.shortly(late.ID, 0) // it is over, and no sweep has come by
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	})
	lost := r.raise("c", 600)
	if c, err := r.apply(lost); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	r.target.script(nil)
	wantExceeded(t, r.raise("d", 600), 1000, 0, 600, 600)
	r.sweepUntil(lost.ID, commit.StatusNotApplied) // the look-up finds nothing
	kept := r.raise("d", 600)
	if kept.State != preview.Approved {
		t.Fatalf("after a look-up that found nothing: got %s, %+v, want approved", kept.State, kept.Ruling.Exceeded)
	}
	if c, err := r.apply(kept); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	wantExceeded(t, r.raise("e", 600), 1000, 600, 0, 600)
	if got := r.raise("d", 100).State; got != preview.Approved { // a decrease takes nothing, and gives nothing back
		t.Errorf("a decrease: got %s, want approved", got)
	}
	wantExceeded(t, r.raise("e", 401), 1000, 600, 0, 401)
	if got := r.raise("e", 400).State; got != preview.Approved {
		t.Errorf("exactly the rest: got %s, want approved", got)
	}
}

// At the deciding vote a cap without room refuses the vote, and the change stays in the queue.
func TestACapRefusesTheDecidingVote(t *testing.T) {
	t.Parallel()
	r := capRig(t, "{require: [{any_of: [leads], count: 2}]}", daily)
	ask := func(id string) preview.Preview {
		p, err := r.approvals.Request(t.Context(), agent("bot"), r.raise(id, 600).ID, "please")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second := ask("a"), ask("b")
	for _, who := range []string{"kim", "lee"} {
		if _, err := r.approve(first, who); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.approve(second, "kim"); err != nil {
		t.Fatalf("a vote that decides nothing: %v", err)
	}
	_, err := r.approve(second, "lee")
	wantCode(t, err, fault.ExposureExceeded)
	var f *fault.Fault
	if !errors.As(err, &f) || f.Key != "fault.exposure_exceeded.cap" || fmt.Sprint(f.Args["held"]) != "600 JPY" {
		t.Errorf("got %+v, want the cap's numbers", f)
	}
	if c := r.status(second.ID); c.Status != commit.StatusPending || len(c.Preview.Votes) != 1 {
		t.Errorf("got %s with %d votes, want pending with one", c.Status, len(c.Preview.Votes))
	}
	if _, err := r.approvals.Decide(t.Context(), person("lee", "leads"), first.ID, approvals.Decision{Reason: "no", Digest: first.Digest}); err != nil {
		t.Fatalf("late veto: %v", err)
	}
	if p, err := r.approve(second, "lee"); err != nil || p.State != preview.Approved {
		t.Errorf("after a veto gave the share back: got %s, %v, want approved", p.State, err)
	}
}

// The requester's own confirmation is measured as a vote is.
func TestACapRefusesAConfirmation(t *testing.T) {
	t.Parallel()
	r := capRig(t, "confirm", daily)
	confirm := func(id string) (preview.Preview, error) {
		p, err := r.approvals.Request(t.Context(), agent("bot"), r.raise(id, 600).ID, "please")
		if err != nil {
			t.Fatal(err)
		}
		return r.approvals.Decide(t.Context(), person("sato"), p.ID, approvals.Decision{Confirm: true, Digest: p.Digest})
	}
	if p, err := confirm("a"); err != nil || p.State != preview.Approved {
		t.Fatalf("got %s, %v, want approved", p.State, err)
	}
	_, err := confirm("b")
	wantCode(t, err, fault.ExposureExceeded)
}

// Two caps, asked for in both orders by many at once: nobody waits for ever, and both hold.
func TestTwoCapsInKeyOrder(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", daily+`  - {name: apart, actions: [text_change], field: daily_budget, per: account, window: day, limit: {JPY: 500}}
`)
	other := capped(t, "allow", `  - {name: apart, actions: [text_change], field: daily_budget, per: account, window: day, limit: {JPY: 500}}
`+daily).Evaluate
	one, n := r.rules.by, 0
	r.rules.by = func(f policy.Facts) policy.Ruling {
		if n++; n%2 == 0 { // the ruler's lock is held
			return other(f)
		}
		return one(f)
	}
	var mu sync.Mutex
	approved := 0
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			got, err := r.previews.Prepare(t.Context(), agent("bot"), preview.Request{Action: "text_change", Input: input(fmt.Sprintf("t%d", i), "100")})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("prepare: %v", err)
			case got.Preview.State == preview.Approved:
				approved++
			}
		})
	}
	group.Wait()
	if approved != 5 {
		t.Errorf("got %d approved, want 5", approved)
	}
	var deadlocks int64
	r.scalar(&deadlocks, `select deadlocks from pg_stat_database where datname = current_database()`)
	if deadlocks != 0 {
		t.Errorf("got %d deadlocks, want none", deadlocks)
	}
}

func TestACapsWindowRollsOver(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", daily)
	if got := r.raise("a", 1000).State; got != preview.Approved {
		t.Fatalf("got %s, want approved", got)
	}
	wantExceeded(t, r.raise("b", 1), 1000, 0, 1000, 1)
	r.exec(`alter table cap_ledgers disable trigger user`)
	r.exec(`alter table cap_reservations disable trigger user`)
	r.exec(`insert into cap_ledgers select tenant_id, cap, scope_key, currency, window_start - interval '31 days', opening_minor from cap_ledgers`)
	r.exec(`update cap_reservations set window_start = window_start - interval '31 days'`)
	r.exec(`alter table cap_reservations enable trigger user`)
	r.exec(`alter table cap_ledgers enable trigger user`)
	if got := r.raise("b", 1).State; got != preview.Approved {
		t.Errorf("in a new window: got %s, want approved", got)
	}
	var start string
	r.scalar(&start, `select to_char(max(window_start) at time zone 'Asia/Tokyo', 'DD HH24:MI:SS') from cap_ledgers`)
	if start != "01 00:00:00" {
		t.Errorf("got a window that begins at %s, want midnight of the first in the policy's zone", start)
	}
}

func TestPostgresGuardsReservations(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", daily)
	p := r.raise("a", 600)
	for name, sql := range map[string]string{
		"a share that nobody asked for": `insert into cap_reservations select preview_id, 1, cap, tenant_id, scope_key, currency, window_start, 1 from cap_reservations`,
		"a smaller share":               `update cap_reservations set minor = 1`,
		"no share":                      `delete from cap_reservations`,
		"no shares at all":              `truncate cap_reservations`,
		"another opening":               `update cap_ledgers set opening_minor = 1000000`,
		"no ledger":                     `delete from cap_ledgers`,
	} {
		if state := r.sqlState(statement{sql: sql}); state == "" {
			t.Errorf("%s: got no refusal", name)
		}
	}
	var n int
	r.scalar(&n, `select count(*) from cap_reservations where minor = 600`)
	if n != 1 || p.State != preview.Approved {
		t.Errorf("got %d shares of 600, want 1", n)
	}
}

// A policy without caps writes no ledger and stores no charges.
func TestWithoutCapsNothingIsReserved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	raw, err := json.Marshal(p.Ruling)
	if err != nil {
		t.Fatal(err)
	}
	var charged bool
	r.scalar(&charged, `select $1::jsonb ? 'charges' or exists (select from cap_ledgers)`, string(raw))
	if charged {
		t.Errorf("got charges in %s", raw)
	}
}
