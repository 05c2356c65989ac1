package verify

import (
	"context"
	"errors"
	"strings"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

var fourEyes = Check{
	ID: "four-eyes", Promise: "Neither the requester, nor the human an agent acts for, nor its owner decides on a change; nor does any agent",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.pending(ctx, "four-eyes")
		if err != nil {
			return Proof{}, err
		}
		machine := agent
		machine.Groups, machine.Roles = []string{approvers}, []string{actor.RoleApprover, actor.RoleAdmin}
		elsewhere := person(requester)
		elsewhere.Issuer = "https://another.invalid"
		for who, one := range map[string]actor.Actor{
			"the human that the agent acts for":                 person(requester),
			"the same human, in capitals":                       person(strings.ToUpper(requester)),
			"the same human, known to another issuer":           elsewhere,
			"the agent's owner":                                 person("owner"),
			"the agent itself, with the groups of an approver":  machine,
			"somebody who is an approver and in no asked group": {Tenant: tenant, Kind: actor.Human, Issuer: issuer, Subject: "x", Roles: []string{actor.RoleApprover}},
		} {
			_, err := b.core.approvals.Decide(ctx, one, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
			if !errors.Is(err, fault.Forbidden) {
				return Proof{}, fail("%s voted and was told %v, want forbidden", who, err)
			}
		}
		err = b.refusedSQL(ctx, "CU006", "the requester's own vote, written by SQL", `
			insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
			values ($1, $2, 1, $3, 'x', '{}', true, '', $4, '', clock_timestamp())`,
			p.ID.UUID(), tenant, actor.PersonID(issuer, requester), p.Digest[:])
		if err != nil {
			return Proof{}, err
		}
		err = b.refusedSQL(ctx, "23505", "a second vote of one person, written by SQL", `
			insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
			select $1, $2, 1, person, 'x', '{}', true, '', $4, '', clock_timestamp() from (values ($3::text), (upper($3::text))) as twice (person)`,
			p.ID.UUID(), tenant, actor.PersonID(issuer, "twice"), p.Digest[:])
		if err != nil {
			return Proof{}, err
		}
		if p, err = b.approve(ctx, p); err != nil {
			return Proof{}, err
		}
		if p.State != preview.Approved {
			return Proof{}, fail("after another person's approval the change is %s, want approved", p.State)
		}
		return Proof{
			Control: "another person of the asked group approved",
			Refusal: "the human behind the agent (under two issuers, in capitals), its owner, the agent itself and somebody without a seat were refused, by SQL too; nobody votes twice",
		}, b.want(ctx, p, commit.StatusApproved, "after the vote")
	},
}
