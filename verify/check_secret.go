package verify

import (
	"context"
	"fmt"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

const (
	leastSecret = 32
	// leastDistinct is how many different bytes a secret of that length has at the least, if it was drawn and not typed.
	leastDistinct = 8
)

var secret = Check{
	ID: "secret", Promise: "A change's idempotency key never changes and is nobody else's; it rests on a secret that cannot be guessed",
	Run: func(_ context.Context, b *bench) (Proof, error) {
		distinct := map[byte]bool{}
		for _, c := range b.cfg.Secret {
			distinct[c] = true
		}
		switch {
		case len(b.cfg.Secret) < leastSecret:
			return Proof{}, fail("the secret has %d bytes, want %d or more (openssl rand -hex 32)", len(b.cfg.Secret), leastSecret)
		case len(distinct) < leastDistinct:
			return Proof{}, fail("the secret has %d different bytes only: it can be guessed (openssl rand -hex 32)", len(distinct))
		}
		id, other := preview.NewID(), preview.NewID()
		key := commit.IdempotencyKey(b.cfg.Secret, tenant, id, 0)
		if again := commit.IdempotencyKey(b.cfg.Secret, tenant, id, 0); again != key {
			return Proof{}, fail("one change has two keys")
		}
		keys := map[string]bool{key: true}
		for _, k := range []string{
			commit.IdempotencyKey(b.cfg.Secret, tenant, other, 0), commit.IdempotencyKey(b.cfg.Secret, tenant, id, 1),
			commit.IdempotencyKey(b.cfg.Secret, tenant+"2", id, 0), commit.IdempotencyKey(append([]byte("x"), b.cfg.Secret...), tenant, id, 0),
		} {
			keys[k] = true
		}
		if len(keys) != 5 {
			return Proof{}, fail("two changes, items, tenants or deployments share a key")
		}
		return Proof{
			Control: fmt.Sprintf("a change has the same key each time; the secret has %d bytes, %d of them different", len(b.cfg.Secret), len(distinct)),
			Refusal: "another change, item, tenant or deployment has another key",
		}, nil
	},
}
