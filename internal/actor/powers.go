package actor

import "slices"

// Power is something that one may be allowed to do.
type Power string

// The powers. docs/roles.md is rendered from them.
const (
	// Call is to be known at all.
	Call Power = "call"
	// Find is to read at a target.
	Find Power = "find"
	// Read is to see one change, ReadAll every change of the tenant.
	Read    Power = "read"
	ReadAll Power = "read_all"
	// Export is to take all changes of a search out at once.
	Export  Power = "export"
	Prepare Power = "prepare"
	Request Power = "request"
	Apply   Power = "apply"
	Cancel  Power = "cancel"
	// Queue is to see what waits for people, as far as each change may be read.
	Queue   Power = "queue"
	Decide  Power = "decide"
	Veto    Power = "veto"
	Confirm Power = "confirm"
	Probe   Power = "probe"
	Resolve Power = "resolve"
	// Reveal is to see the hidden values of one change, on record.
	Reveal Power = "reveal"
	// SeeFreezes is to see what is frozen; Freeze is of the own tenant, and FreezeEverything of all tenants.
	SeeFreezes       Power = "see_freezes"
	Freeze           Power = "freeze"
	FreezeEverything Power = "freeze_everything"
	// RemoveApprover is to take from a person of the own tenant what they may decide, and to give it back.
	RemoveApprover Power = "remove_approver"
)

// Grant says who holds a power. What it asks of the caller alone is May; what it asks of the caller and a change together is checked
// where the change is known.
type Grant struct {
	Power Power
	// Human: nobody but a person.
	Human bool
	// Roles: one of them is needed; none if it is empty.
	Roles []string
	// Own: whoever asked for the change, or the human it was asked for. Foreign: neither of them, nor the agent's owner.
	Own, Foreign bool
	// Seat: being in a group that the change's ruling names.
	Seat bool
	// Scope: the token holds what the action, or the find tool, asks for.
	Scope bool
	// Or are powers that give this one too.
	Or []Power
	// Where names what checks it.
	Where string
}

// Grants is who may do what: the one table. Whatever is not here, nobody may.
func Grants() []Grant {
	reviewing := []string{RoleApprover, RoleOperator, RoleAuditor, RoleAdmin}
	operating := []string{RoleOperator, RoleAdmin}
	return []Grant{
		{Power: Call, Where: "auth.Verifier"},
		{Power: Find, Scope: true, Where: "preview.RequireScopes"},
		{Power: Read, Own: true, Or: []Power{ReadAll, Decide}, Where: "preview.MayRead"},
		{Power: ReadAll, Human: true, Roles: reviewing, Where: "preview.Reviews"},
		{Power: Export, Human: true, Roles: []string{RoleOperator, RoleAuditor, RoleAdmin}, Where: "commit.Service.Export"},
		{Power: Prepare, Scope: true, Where: "preview.Service.Prepare"},
		{Power: Request, Own: true, Scope: true, Where: "approvals.Service.Request"},
		{Power: Apply, Own: true, Scope: true, Where: "commit.Service.Apply"},
		{Power: Cancel, Own: true, Where: "preview.Service.Cancel"},
		{Power: Queue, Human: true, Where: "approvals.Service.Queue"},
		{Power: Decide, Human: true, Foreign: true, Seat: true, Where: "approvals.Service.Decide"},
		{Power: Veto, Human: true, Foreign: true, Seat: true, Where: "approvals.Service.Decide"},
		{Power: Confirm, Human: true, Own: true, Where: "approvals.Service.Decide"},
		{Power: Probe, Human: true, Roles: operating, Foreign: true, Where: "commit.Service.Probe"},
		{Power: Resolve, Human: true, Roles: operating, Foreign: true, Where: "commit.Service.Resolve"},
		{
			Power: Reveal, Human: true, Roles: []string{RoleOperator, RoleAuditor, RoleAdmin}, Foreign: true, Or: []Power{Decide},
			Where: "preview.MayReveal",
		},
		{Power: SeeFreezes, Human: true, Where: "commit.Service.Standing"},
		{Power: Freeze, Human: true, Roles: operating, Where: "commit.Service.Freeze"},
		{Power: FreezeEverything, Human: true, Roles: []string{RoleAdmin}, Where: "commit.Service.Freeze"},
		{Power: RemoveApprover, Human: true, Roles: []string{RoleAdmin}, Where: "approvals.Service.Remove"},
	}
}

// Of is the grant of a power.
func Of(p Power) (Grant, bool) {
	at := slices.IndexFunc(grants, func(g Grant) bool { return g.Power == p })
	if at < 0 {
		return Grant{}, false
	}
	return grants[at], true
}

var grants = Grants()

// May reports whether the caller's kind and roles allow a power. It says nothing about a change: whose it is, which groups it asks
// for, and which scopes.
func (a Actor) May(p Power) bool {
	g, known := Of(p)
	held := len(g.Roles) == 0 || slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(a.Roles, r) })
	return known && held && (!g.Human || a.Kind == Human)
}
