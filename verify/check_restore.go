package verify

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

var restored = Check{
	ID: "restore", Promise: "After a restore from a backup nothing is claimed, and what the backup knew as open not until it was looked at",
	Run: func(ctx context.Context, b *bench) (_ Proof, err error) {
		const by, why = "operator:verify", "a verification run"
		p, err := b.prepare(ctx, "restored")
		if err != nil {
			return Proof{}, err
		}
		declared, _, err := b.store.DeclareRestore(ctx, store.Restore{To: p.CreatedAt, By: by, Reason: why})
		if err != nil || !declared {
			return Proof{}, fail("a restore could not be declared (%v)", err)
		}
		finished := false
		finish := func() (err error) {
			if !finished {
				finished, err = b.store.FinishRestore(context.WithoutCancel(ctx), by, why)
			}
			return err
		}
		defer func() { err = errors.Join(err, finish()) }()
		q, err := b.prepare(ctx, "prepared-since")
		if err != nil {
			return Proof{}, err
		}
		if err := b.wantHeld(ctx, q, "while the restore is not finished"); err != nil {
			return Proof{}, err
		}
		if err := finish(); err != nil {
			return Proof{}, err
		}
		if err := b.wantHeld(ctx, p, "before anybody looked"); err != nil {
			return Proof{}, err
		}
		c, err := b.core.apply(ctx, q)
		if err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("once the restore was finished, a change prepared since is %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "once the restore was finished, a change that was prepared since was applied",
			Refusal: "until then, and for what the backup knew as open until it is looked at, an apply was told frozen and the claim refused by the statement itself",
		}, nil
	},
}

// wantHeld wants neither an apply nor a bare claim of a change to get anywhere.
func (b *bench) wantHeld(ctx context.Context, p preview.Preview, when string) error {
	if _, err := b.core.apply(ctx, p); !errors.Is(err, fault.Frozen) {
		return fail("%s, an apply was told %v, want frozen", when, err)
	}
	if err := b.claim(ctx, b.store, p, nil); !errors.Is(err, commit.ErrNotClaimed) {
		return fail("%s, a claim was told %v, want a refusal", when, err)
	}
	return nil
}
