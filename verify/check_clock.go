package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/cutonce/cutonce/commit"
)

var databaseClock = Check{
	ID: "database-clock", Promise: "Every deadline is written and compared on the database's clock, whatever this machine's clock says",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		before, err := b.store.Now(ctx)
		if err != nil {
			return Proof{}, err
		}
		p, err := b.prepare(ctx, "clock")
		if err != nil {
			return Proof{}, err
		}
		after, err := b.store.Now(ctx)
		switch {
		case err != nil:
			return Proof{}, err
		case p.CreatedAt.Before(before) || p.CreatedAt.After(after):
			return Proof{}, fail("a change was created at %s, outside the database's %s to %s", p.CreatedAt, before, after)
		case p.Deadline.Sub(p.CreatedAt).Round(time.Millisecond) != b.clocks.PreviewTTL:
			return Proof{}, fail("a change lives for %s, want the configured %s", p.Deadline.Sub(p.CreatedAt), b.clocks.PreviewTTL)
		}
		if err := b.want(ctx, p, commit.StatusApproved, "within its time"); err != nil {
			return Proof{}, err
		}
		c, _, err := b.later.Load(ctx, p.Tenant, p.ID, false)
		if err != nil {
			return Proof{}, err
		}
		if c.Status != commit.StatusExpired {
			return Proof{}, fail("the database's clock is %s ahead of the deadline, this machine's is not, and the change reads %s, want expired", b.ahead, c.Status)
		}
		skew := b.cfg.Now().Sub(after).Round(time.Millisecond)
		return Proof{
			Control: fmt.Sprintf("a change lives for the configured %s of the database's time (this machine is %s apart)", b.clocks.PreviewTTL, skew),
			Refusal: fmt.Sprintf("with the database's clock alone moved on by %s it reads expired at once", b.ahead),
		}, nil
	},
}
