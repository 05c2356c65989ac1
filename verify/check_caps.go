package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// The run's caps have one limit; what a change takes of which cap is in its thing's name (see rules).
const (
	capLimit   = 1000
	atOnce     = 50
	fiftyShare = 100
	largeShare = 400
)

// cappedThing is the name of a thing whose change takes so much of a cap, and chargeOf reads it.
func cappedThing(scope string, minor int64, n int) string {
	return fmt.Sprintf("%s%s-%d-%d", byCap, scope, minor, n)
}

func chargeOf(thing string) policy.Charge {
	parts := strings.Split(thing, "-")
	limit := int64(capLimit)
	c := policy.Charge{Cap: "verify", Per: "tenant", Scope: parts[1], Window: "month", Zone: "UTC", Currency: "JPY", Limit: &limit}
	if _, err := fmt.Sscan(parts[2], &c.Minor); err != nil {
		panic(err) // a name of this package's own
	}
	return c
}

var caps = Check{
	ID: "caps", Promise: "What changes add up to stays within a declared cap, however many are asked for at once; unknown holds its share, and proof of no effect frees it",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		if err := b.fifty(ctx); err != nil {
			return Proof{}, err
		}
		if err := b.oneAfterAnother(ctx); err != nil {
			return Proof{}, err
		}
		if err := b.unknownHolds(ctx); err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "of fifty changes of 100 at once against a cap of 1,000 exactly ten were approved and applied; room that was proved free was given again",
			Refusal: "forty were denied for want of room; whoever is measured against a cap waited for whoever is before them; while an outcome was unknown its share was nobody else's",
		}, nil
	},
}

// fifty prepares fifty changes at once, over two sets of services as two replicas have them.
func (b *bench) fifty(ctx context.Context) error {
	other, err := b.on(b.store)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var approved []preview.Preview
	var problem error
	denied := 0
	var group sync.WaitGroup
	for n := range atOnce {
		c := b.core
		if n%2 == 1 {
			c = other
		}
		group.Go(func() {
			p, err := b.prepareBy(ctx, c, cappedThing("fifty", fiftyShare, n))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				problem = err
			case p.State == preview.Approved:
				approved = append(approved, p)
			case p.Ruling.Exceeded != nil:
				denied++
			}
		})
	}
	group.Wait()
	if problem != nil {
		return problem
	}
	if len(approved) != capLimit/fiftyShare || denied != atOnce-len(approved) {
		return fail("of %d changes of %d at once against a cap of %d, %d were approved and %d denied, want %d approved",
			atOnce, fiftyShare, capLimit, len(approved), denied, capLimit/fiftyShare)
	}
	for _, p := range approved {
		if c, err := b.core.apply(ctx, p); err != nil || c.Status != commit.StatusApplied {
			return fail("an approved share is %s (%v), want applied", c.Status, err)
		}
	}
	p, err := b.prepare(ctx, cappedThing("fifty", fiftyShare, atOnce))
	if err != nil {
		return err
	}
	if e := p.Ruling.Exceeded; e == nil || e.Used.Minor != capLimit || e.Held.Minor != 0 {
		return fail("one more is %s (%+v), want denied with %d used", p.State, e, capLimit)
	}
	return nil
}

// oneAfterAnother holds a cap's ledger, as an approval that is not yet committed does, and lets another one come: fifty at once are not
// sure to meet. The hold is one that a foreign key does not wait for.
func (b *bench) oneAfterAnother(ctx context.Context) error {
	scope := "order"
	if _, err := b.prepare(ctx, cappedThing(scope, fiftyShare, 0)); err != nil {
		return err
	}
	tx, err := b.sql.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var held int
	for _, sql := range []string{"set local role cutonce_app", "select set_config('cutonce.tenant', '" + tenant + "', true)"} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	err = tx.QueryRow(ctx, "select 1 from cap_ledgers where scope_key = $1 for no key update", scope).Scan(&held)
	if err != nil {
		return fmt.Errorf("holding a ledger: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.prepare(ctx, cappedThing(scope, fiftyShare, 1))
		done <- err
	}()
	for waits := false; !waits; {
		select {
		case err := <-done:
			return errors.Join(err, fail("a change was measured against a cap while another one's approval was not yet committed"))
		case <-time.After(10 * time.Millisecond):
		}
		if err := tx.QueryRow(ctx, "select exists (select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid)))").Scan(&waits); err != nil {
			return err
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		return err
	}
	return <-done
}

// unknownHolds loses a reply, and asks for room before and after it is proved that nothing was done.
func (b *bench) unknownHolds(ctx context.Context) error {
	scope := "unknown"
	lost, err := b.prepare(ctx, cappedThing(scope, largeShare, 0))
	if err != nil {
		return err
	}
	b.target.script(lost.Plan.Target.ID, func(http.ResponseWriter, *http.Request, func() int) { hangUp() })
	if c, err := b.core.apply(ctx, lost); err == nil && c.Status != commit.StatusUnknown {
		return fail("a change whose request was lost is %s, want unknown", c.Status)
	}
	done, err := b.prepare(ctx, cappedThing(scope, largeShare, 1))
	if err != nil {
		return err
	}
	if c, err := b.core.apply(ctx, done); err != nil || c.Status != commit.StatusApplied {
		return fail("a share beside an unknown one is %s (%v), want applied", c.Status, err)
	}
	before, err := b.prepare(ctx, cappedThing(scope, largeShare, 2))
	if err != nil {
		return err
	}
	if e := before.Ruling.Exceeded; e == nil || e.Used.Minor != largeShare || e.Unknown.Minor != largeShare {
		return fail("while an outcome is unknown a further share is %s (%+v), want denied with %d unknown", before.State, e, largeShare)
	}
	if err := b.sweep(ctx, lost, commit.StatusNotApplied); err != nil {
		return err
	}
	after, err := b.prepare(ctx, cappedThing(scope, largeShare, 3))
	if err != nil {
		return err
	}
	if after.State != preview.Approved {
		return fail("once it was proved that nothing was done its share is not free: the next one is %s", after.State)
	}
	return nil
}
