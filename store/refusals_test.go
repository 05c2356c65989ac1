package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// pending prepares a change that needs leads, and asks for their approval.
func (r *rig) pending(id string, needs ...policy.Seats) preview.Preview {
	r.t.Helper()
	if len(needs) == 0 {
		needs = []policy.Seats{{AnyOf: []string{"leads"}, Count: 1}}
	}
	r.rules.set(people(needs...))
	p := r.prepare(id, "new")
	p, err := r.approvals.Request(r.t.Context(), agent("bot"), p.ID, "please")
	if err != nil {
		r.t.Fatalf("request: %v", err)
	}
	return p
}

func (r *rig) approve(p preview.Preview, who string) (preview.Preview, error) {
	return r.approvals.Decide(r.t.Context(), person(who, "leads"), p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
}

func (r *rig) reject(p preview.Preview, who string) (preview.Preview, error) {
	return r.approvals.Decide(r.t.Context(), person(who, "leads"), p.ID, approvals.Decision{Reason: "not now", Digest: p.Digest})
}

// unknown makes a change whose send got no answer, with a look-up that cannot tell.
func (r *rig) unknown(id string) preview.Preview {
	r.t.Helper()
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	})
	p := r.prepare(id, "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		r.t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	r.target.script(nil)
	return p
}

func TestWhatWasShownCannotBeChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	for column, value := range map[string]string{
		"id": "gen_random_uuid()", "tenant_id": "'other'", "action": "'other'", "action_version": "2", "requester_id": "'other'",
		"requester_person": "'other'", "requester": "'{}'", "target_key": "'other'", "target_id": "'other'",
		"input_hash": `'\x00'`, "idempotency_key": "'other'", "reverts": "gen_random_uuid()", "created_at": "now()",
		"document": "'{}'", "digest": `'\x00'`, "digest = sha256('{}'), document": "'{}'",
	} {
		got := r.sqlState(run(moveSQL(column+" = "+value), p.ID.UUID()))
		want := "CU002"
		if column == "document" { // the digest, which stays, does not cover it
			want = "23514"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", column, got, want)
		}
	}
	if got := r.status(p.ID).Preview; string(got.Document) != string(p.Document) {
		t.Error("the document changed")
	}
}

func TestADigestCoversItsDocument(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	got := r.attempt(`insert into previews select (jsonb_populate_record(p, $2::jsonb)).* from previews p where id = $1`,
		p.ID.UUID(), fields{"id": uuid.NewString(), "document": `\x7b7d`})
	if got != "23514" {
		t.Errorf("got %q, want a check violation", got)
	}
}

func TestNoChangeWithoutItsEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	q := r.unknown("b")
	for name, tc := range map[string]struct {
		statements []statement
		want       string
	}{
		"a state alone": {[]statement{run(`update previews set state = 'canceled', ended_at = now() where id = $1`, p.ID.UUID())}, "CU003"},
		"a clock alone": {[]statement{run(`update previews set deadline = now() + interval '1 day' where id = $1`, p.ID.UUID())}, "CU003"},
		"a count without its event": {[]statement{run(`
			update previews set state = 'canceled', ended_at = now(), audit_seq = audit_seq + 1 where id = $1`, p.ID.UUID())}, "23503"},
		"a gap in the chain": {[]statement{
			run(`insert into audit_events select preview_id, 3, tenant_id, kind, actor, at, body, hash from audit_events where preview_id = $1 and seq = 1`, p.ID.UUID()),
			run(`update previews set state = 'canceled', ended_at = now(), audit_seq = 3 where id = $1`, p.ID.UUID())}, "CU003"},
		"back in the chain": {[]statement{run(`update previews set audit_seq = audit_seq - 1 where id = $1`, q.ID.UUID())}, "CU003"},
		"an event twice": {[]statement{run(`
			insert into audit_events select * from audit_events where preview_id = $1 and seq = 1`, p.ID.UUID())}, "23505"},
		"an event of no preview": {[]statement{run(`
			insert into audit_events select gen_random_uuid(), 1, tenant_id, kind, actor, at, body, hash from audit_events where preview_id = $1 and seq = 1`,
			p.ID.UUID())}, "23503"},
		"an outcome without its event": {[]statement{run(`
			update executions set state = 'applied', finished_at = now(), evidence = 'receipt' where preview_id = $1`, q.ID.UUID())}, "CU003"},
	} {
		if got := r.sqlState(tc.statements...); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestNothingIsRemovedOrRewritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.apply(p); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"previews", "audit_events", "decisions", "executions", "attempts"} {
		for _, sql := range []string{"delete from " + table, "truncate " + table + " cascade"} {
			if got := r.sqlState(run(sql)); got != "CU001" {
				t.Errorf("%s: got %q, want CU001", sql, got)
			}
		}
	}
	for sql, want := range map[string]string{
		`update audit_events set actor = 'other'`:                            "CU001",
		`update audit_events set body = body`:                                "CU001",
		`update decisions set approve = not approve`:                         "CU001",
		`update attempts set kind = 'lookup'`:                                "CU002",
		`update attempts set started_at = now()`:                             "CU002",
		`update attempts set result = 'unknown'`:                             "CU007",
		`update attempts set result = null, finished_at = null`:              "CU007",
		`update attempts set evidence = '{"other": 1}'`:                      "CU007",
		`update executions set target_key = 'other'`:                         "CU002",
		`update executions set tenant_id = 'other'`:                          "CU002",
		`update executions set item = 1`:                                     "CU002",
		`update executions set evidence = ''`:                                "23514",
		`update executions set evidence = 'operator'`:                        "23514", // an operator's word is signed
		`update executions set finished_at = null`:                           "23514",
		`update executions set state = 'not_applied', reason = 'never_left'`: "CU004",
	} {
		if got := r.sqlState(run(sql)); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
}

const rawDecision = `
	insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
	select id, $2, round, $3, 'raw', '{}', $4, '', case when $5 then digest else sha256(digest) end, '', now() from previews where id = $1`

func TestPostgresRefusesVotesThatDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	bot := agent("bot")
	bot.Owner = "mori"
	pr, err := r.previews.Prepare(t.Context(), bot, preview.Request{Action: "text_change", Input: input("a", "new")})
	if err != nil {
		t.Fatal(err)
	}
	id := pr.Preview.ID.UUID()
	const issuer = "https://id.example#"
	for _, tc := range []struct {
		name, tenant, person string
		digest               bool
		want                 string
	}{
		{"the human behind the request", "acme", issuer + "sato", true, "CU006"},
		{"in another spelling", "acme", "HTTPS://ID.example#SATO", true, "CU006"},
		{"the agent itself", "acme", issuer + "Bot", true, "CU006"},
		{"the agent's owner", "acme", issuer + "Mori", true, "CU006"},
		{"from another tenant", "other", issuer + "kim", true, "CU005"},
		{"on another digest", "acme", issuer + "kim", false, "CU005"},
		{"somebody else", "acme", issuer + "kim", true, ""},
	} {
		if got := r.sqlState(run(rawDecision, id, tc.tenant, tc.person, true, tc.digest)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := r.sqlState(run(rawDecision, id, "acme", issuer+"KIM", true, true)); got != "23505" {
		t.Errorf("a second vote in another spelling: got %q, want 23505", got)
	}
	if got := r.sqlState(run(rawDecision, id, "acme", issuer+"KIM", false, true)); got != "" {
		t.Errorf("a veto after one's approval: got %q, want none", got)
	}
	if got := r.sqlState(run(rawDecision, uuid.New(), "acme", issuer+"kim", true, true)); got != "" {
		t.Errorf("no preview, no row: got %q", got)
	}
}

const rawExecution = `
	insert into executions (preview_id, item, tenant_id, target_key, state, current_attempt, claimed_by, started_at, lease_until, settle_at)
	select id, $2, tenant_id, target_key, 'applying', $3, 'raw', now(), now() + interval '1 minute', now() from previews where id = $1`

const rawSend = `insert into attempts (id, preview_id, item, tenant_id, kind, started_at) values ($1, $2, $3, 'acme', 'send', now())`

func TestPostgresRefusesClaimsThatAreNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, other := r.prepare("a", "new"), r.prepare("b", "new")
	applied := r.prepare("c", "new")
	if _, err := r.apply(applied); err != nil {
		t.Fatal(err)
	}
	id, attempt := p.ID.UUID(), uuid.New()
	claim := run(moveSQL("state = 'claimed'"), id)
	execute := run(rawExecution, id, 0, attempt)
	send := run(rawSend, attempt, id, 0)
	for _, tc := range []struct {
		name       string
		statements []statement
		want       string
	}{
		{"claimed without an execution", []statement{claim}, "CU004"},
		{"an execution without a claim", []statement{execute, send}, "CU004"},
		{"applying without an attempt", []statement{claim, execute}, "23503"},
		{"an attempt of no execution", []statement{send}, "23503"},
		{"an attempt that is not its own", []statement{claim, execute, run(rawSend, uuid.New(), id, 0)}, "23503"},
		{"another preview's attempt", []statement{claim, run(rawExecution, id, 0, attempt), run(rawSend, attempt, other.ID.UUID(), 0)}, "23503"},
		{"a second execution of one item", []statement{claim, execute, send, execute}, "23505"},
		{"a second item on a busy target", []statement{claim, execute, send, run(rawExecution, id, 1, attempt), run(rawSend, attempt, id, 1)}, "23505"},
		{"two sends", []statement{claim, execute, send, run(rawSend, uuid.New(), id, 0)}, "23505"},
		{"an execution of what was claimed before", []statement{
			run(rawExecution, applied.ID.UUID(), 1, attempt), run(rawSend, attempt, applied.ID.UUID(), 1)}, "CU004"},
		{"a second send after the effect", []statement{run(rawSend, attempt, applied.ID.UUID(), 0)}, "23505"},
		{"a claim given back after the effect", []statement{run(moveSQL("state = 'approved'"), applied.ID.UUID())}, "CU004"},
		{"an honest claim", []statement{claim, execute, send}, ""},
		{"a second claim", []statement{claim}, ""}, // no move: still claimed, with its execution
		{"a claim given back while it is sent", []statement{run(moveSQL("state = 'approved'"), id)}, "CU004"},
	} {
		if got := r.sqlState(tc.statements...); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestASecondSendNeedsProofThatTheFirstNeverLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.unknown("a")
	if got := r.sqlState(run(rawSend, uuid.New(), p.ID.UUID(), 0)); got != "23505" {
		t.Errorf("beside an unknown send: got %q, want 23505", got)
	}
	q := r.prepare("b", "new")
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(context.Canceled)
	})
	if c, _ := r.apply(q); c.Status != commit.StatusApproved {
		t.Fatalf("got %s, want approved", c.Status)
	}
	if got := r.sqlState(run(`update executions set state = 'applying' where preview_id = $1`, q.ID.UUID())); got != "CU003" {
		t.Errorf("sending again without a claim: got %q, want CU003", got)
	}
	if got := r.sqlState(
		run(`update executions set state = 'applying' where preview_id = $1`, q.ID.UUID()), run(moveSQL("state = state"), q.ID.UUID()),
	); got != "CU004" {
		t.Errorf("sending again with an event but no claim: got %q, want CU004", got)
	}
	r.target.script(nil)
}

func TestAContradictionIsOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	p := r.unknown("a")
	r.sweepUntil(p.ID, commit.StatusNotApplied)
	applied := `update executions set state = 'applied', evidence = 'receipt', reason = ''%s where preview_id = $1`
	move := run(moveSQL("state = state"), p.ID.UUID())
	if got := r.sqlState(run(fmt.Sprintf(applied, ""), p.ID.UUID()), move); got != "CU007" {
		t.Errorf("hidden: got %q, want CU007", got)
	}
	if got := r.sqlState(run(fmt.Sprintf(applied, ", contradicted = true"), p.ID.UUID()), move); got != "" {
		t.Errorf("open: got %q, want none", got)
	}
	if got := r.sqlState(run(`update executions set contradicted = false where preview_id = $1`, p.ID.UUID())); got != "CU007" {
		t.Errorf("taken back: got %q, want CU007", got)
	}
	r.forged = true // an effect was forged
}

func TestAPreviewOfAnotherTenantIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	spy := agent("bot")
	spy.Tenant = "other"
	key := commit.Key{Tenant: "other", ID: p.ID}
	if _, err := r.commits.Status(t.Context(), spy, p.ID, 0, false); err == nil {
		t.Error("status answered")
	}
	if err := r.store.ConfirmClaim(t.Context(), key, uuid.New()); err == nil {
		t.Error("confirm answered")
	}
	if ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), commit.Lookup, time.Second, time.Second); ok || err != nil {
		t.Errorf("begin probe: got %v, %v, want false", ok, err)
	}
	if _, err := r.store.RecordResult(t.Context(), commit.Result{Key: key, Attempt: uuid.New(), Kind: commit.Send}); err == nil {
		t.Error("record answered")
	}
	if holder, _, err := r.store.HolderOf(t.Context(), "other", p.Plan.Target.Key()); holder != nil || err != nil {
		t.Errorf("holder: got %v, %v, want none", holder, err)
	}
}
