package verify

import (
	"context"
	"errors"
	"net/http"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

var ownWord = Check{
	ID: "own-word", Promise: "Nobody settles the unknown outcome of their own change by their word, nor does any agent",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.untold(ctx, "own-word")
		if err != nil {
			return Proof{}, err
		}
		machine := agent
		machine.Roles = []string{actor.RoleOperator, actor.RoleAdmin}
		elsewhere := person(requester)
		elsewhere.Issuer = "https://another.invalid"
		for who, one := range map[string]actor.Actor{
			"the human that the agent acts for":  person(requester),
			"the same human, of another issuer":  elsewhere,
			"the agent's owner":                  person("owner"),
			"the agent itself, with every role":  machine,
			"somebody who is not an operator":    {Tenant: tenant, Kind: actor.Human, Issuer: issuer, Subject: "x", Roles: []string{actor.RoleApprover}},
			"an operator of somebody else's own": {Tenant: tenant + "2", Kind: actor.Human, Issuer: issuer, Subject: "y", Roles: []string{actor.RoleOperator}},
		} {
			_, err := b.core.commits.Resolve(ctx, word(p, one))
			if !errors.Is(err, fault.Forbidden) && !errors.Is(err, fault.NotFound) {
				return Proof{}, fail("%s settled an unknown outcome and was told %v, want forbidden", who, err)
			}
		}
		err = b.refusedSQL(ctx, "CU006", "the requester's own word, written by SQL", `
			insert into resolutions (preview_id, seq, item, tenant_id, person, name, applied, reason, evidence, stated_at)
			values ($1, 1, 0, $2, $3, 'x', true, 'because', 'nothing', clock_timestamp())`, p.ID.UUID(), tenant, actor.PersonID(issuer, requester))
		if err != nil {
			return Proof{}, err
		}
		if err := b.want(ctx, p, commit.StatusUnknown, "after its own people spoke"); err != nil {
			return Proof{}, err
		}
		if _, err := b.core.commits.Resolve(ctx, word(p, person("operator"))); err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "another operator's word settled an outcome that the target could not tell",
			Refusal: "the human behind the agent (under two issuers), its owner, the agent itself and somebody without the role were refused, by SQL too",
		}, b.want(ctx, p, commit.StatusApplied, "after another operator's word")
	},
}

// untold makes a change whose effect happened, whose reply was lost, and of which the target tells nothing any more.
func (b *bench) untold(ctx context.Context, id string) (preview.Preview, error) {
	p, err := b.prepare(ctx, id)
	if err != nil {
		return p, err
	}
	b.target.script(id, func(_ http.ResponseWriter, _ *http.Request, do func() int) { do(); hangUp() })
	b.target.mute(b.key(p), true)
	if _, err := b.core.apply(ctx, p); err != nil {
		return p, err
	}
	return p, b.want(ctx, p, commit.StatusUnknown, "after a reply was lost")
}

// word is what a person says of a change's outcome.
func word(p preview.Preview, who actor.Actor) commit.Resolution {
	return commit.Resolution{Key: commit.Key{Tenant: p.Tenant, ID: p.ID}, By: who, Applied: true, Reason: "seen at the target", Evidence: "its own log"}
}
