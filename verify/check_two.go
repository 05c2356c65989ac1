package verify

import (
	"context"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

var twoWords = Check{
	ID: "two-operators", Promise: "Where an action asks for two operators, one person's word settles nothing, however often it is given",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.prepare(ctx, "two-operators")
		if err != nil {
			return Proof{}, err
		}
		var attempt uuid.UUID
		if err := b.claim(ctx, b.store, p, func(c *commit.Claim) { c.Resolvers, attempt = 2, c.Attempt }); err != nil {
			return Proof{}, err
		}
		k := commit.Key{Tenant: p.Tenant, ID: p.ID}
		lost := commit.Result{Key: k, Attempt: attempt, Kind: commit.Send, Class: connector.ClassUnknown, RetryIn: b.ahead}
		if _, err := b.store.RecordResult(ctx, lost); err != nil {
			return Proof{}, err
		}
		b.target.mute(b.key(p), true)
		for _, when := range []string{"after one operator's word", "after the same operator's word again"} {
			if _, err := b.core.commits.Resolve(ctx, word(p, person("operator"))); err != nil {
				return Proof{}, fail("%s, the answer is %v, want that it waits for another's", when, err)
			}
			if err := b.want(ctx, p, commit.StatusUnknown, when); err != nil {
				return Proof{}, err
			}
		}
		err = b.refusedAtOnce(ctx, "guard_statement", "CU008", "an outcome settled by one operator's word, written by SQL", `
			update executions set state = 'applied', evidence = 'operator', resolved_by = 'x', resolved_why = 'x', finished_at = clock_timestamp()
			where preview_id = $1`, p.ID.UUID())
		if err != nil {
			return Proof{}, err
		}
		if _, err := b.core.commits.Resolve(ctx, word(p, person("another operator"))); err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "a second operator who said the same settled it",
			Refusal: "one operator's word, given twice, left it unknown, and the database refused it as an outcome",
		}, b.want(ctx, p, commit.StatusApplied, "after a second operator's word")
	},
}
