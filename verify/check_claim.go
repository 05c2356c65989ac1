package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cutonce/cutonce/commit"
)

// crowd is how many apply the same change at once.
const crowd = 64

var claimGuard = Check{
	ID: "claim-guard", Promise: "Many applies of one change at once are one claim and one effect, and all are told the same",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.prepare(ctx, "claimed-once")
		if err != nil {
			return Proof{}, err
		}
		// Everybody has read "approved" before anybody claims.
		ready := newGate(crowd)
		core, err := b.on(between{ports: b.store, claim: func(ctx context.Context, c commit.Claim) error {
			ready.pass(ctx)
			return b.store.ClaimApproved(ctx, c)
		}})
		if err != nil {
			return Proof{}, err
		}
		ended := make([]error, crowd)
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() {
				c, err := core.apply(ctx, p)
				switch {
				case err != nil:
					ended[i] = fmt.Errorf("one of %d applies was told an error: %w", crowd, err)
				case c.Status != commit.StatusApplied:
					ended[i] = fail("one of %d applies was told %s, want applied", crowd, c.Status)
				}
			})
		}
		all.Wait()
		for _, err := range ended {
			if err != nil {
				return Proof{}, err
			}
		}
		if received, effects := b.target.count(b.key(p)); received != 1 || effects != 1 {
			return Proof{}, fail("%d applies reached the target %d times and had %d effects, want one", crowd, received, effects)
		}
		err = b.refusedSQL(ctx, "23505", "a second send of one change, written by SQL", `
			insert into attempts (id, preview_id, item, tenant_id, kind, started_at) values ($1, $2, 0, $3, 'send', clock_timestamp())`,
			newAttempt(), p.ID.UUID(), tenant)
		if err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "the change took effect and every caller was told applied",
			Refusal: fmt.Sprintf("%d applies had all read approved; %d of the claims were refused; the target was asked once, and the database refuses a second send", crowd, crowd-1),
		}, nil
	},
}

// gate lets nobody pass before n have come, or some time has passed: a crowd that a small pool thins out still is one.
type gate struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

const gateFor = 3 * time.Second

func newGate(n int) *gate { return &gate{left: n, open: make(chan struct{})} }

func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	g.left--
	if g.left == 0 {
		close(g.open)
	}
	g.mu.Unlock()
	timer := time.NewTimer(gateFor)
	defer timer.Stop()
	select {
	case <-g.open:
	case <-timer.C:
	case <-ctx.Done():
	}
}
