package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// byTwo asks for two operators where nobody can look.
func byTwo(r *rig) { r.target.resolvers = 2 }

// unlooked is an unknown outcome that no look-up can settle.
func (r *rig) unlooked(id string) preview.Preview {
	r.t.Helper()
	r.target.looks(func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	return r.unknown(id)
}

func says(id preview.ID, who actor.Actor, applied bool) commit.Resolution {
	return commit.Resolution{
		Key: commit.Key{Tenant: "acme", ID: id}, By: who, Applied: applied, Reason: "seen by " + who.Subject, Evidence: "target log, noon",
	}
}

func (r *rig) say(p preview.Preview, who string, applied bool) (commit.Change, error) {
	return r.commits.Resolve(r.t.Context(), says(p.ID, operator(who), applied))
}

func TestTwoOperatorsSettleWhatTheActionAsksTwoFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, byTwo)
	p := r.unlooked("a")
	for range 2 { // saying it again changes nothing
		c, err := r.say(p, "ito", true)
		if err != nil || c.Status != commit.StatusUnknown {
			t.Fatalf("the first word: got %s, %v, want unknown", c.Status, err)
		}
		first := c.Executions[0].Standing(c.Now)
		if first == nil || first.Name != "ito" || !first.Applied || first.Reason != "seen by ito" || !c.Executions[0].NeedsOperator {
			t.Fatalf("got %+v, want ito's proposal, waiting for an operator", first)
		}
	}
	if got := r.busy(p); !strings.Contains(got, p.ID.String()) {
		t.Errorf("a proposal let go of the target: %s", got)
	}
	if c, err := r.say(p, "ITO", true); err != nil || c.Status != commit.StatusUnknown {
		t.Errorf("the same person in capitals: got %s, %v, want unknown still", c.Status, err)
	}
	c, err := r.say(p, "ueda", true)
	if err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("the second word: got %s, %v, want applied", c.Status, err)
	}
	e := c.Executions[0]
	if e.Evidence != commit.ByStatement || e.ResolvedBy != "ito, ueda" || len(e.Statements) != 2 || e.NeedsOperator {
		t.Errorf("got %s by %q with %d statements, want both on record", e.Evidence, e.ResolvedBy, len(e.Statements))
	}
	kinds := r.kinds(p.ID)
	if countOf(kinds, "proposed") != 1 || countOf(kinds, "resolved") != 1 {
		t.Errorf("got events %v, want one proposal and one settlement", kinds)
	}
	for _, who := range []string{"ito", "ueda", "sasaki"} {
		if c, err := r.say(p, who, true); err != nil || c.Status != commit.StatusApplied {
			t.Errorf("%s repeats it: got %s, %v, want applied", who, c.Status, err)
		}
		_, err := r.say(p, who, false)
		wantCode(t, err, fault.Conflict)
	}
}

// busy is what an apply on the same target is told.
func (r *rig) busy(p preview.Preview) string {
	r.t.Helper()
	q := r.prepare(p.Plan.Target.ID, "another")
	_, err := r.apply(q)
	wantCode(r.t, err, fault.TargetBusy)
	return fmt.Sprint(fault.From(err).Data)
}

func TestASecondWordThatContradictsIsAConflictNamingTheFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, byTwo)
	p := r.unlooked("a")
	r.settleable(p.ID)
	if _, err := r.say(p, "ito", false); err != nil {
		t.Fatal(err)
	}
	c, err := r.say(p, "ueda", true)
	wantCode(t, err, fault.Conflict)
	if f := fault.From(err); f.Key != "fault.conflict.proposed.not_applied" || f.Args["by"] != "ito" || f.Args["reason"] != "seen by ito" {
		t.Errorf("got %s %v, want ito named with the reason", f.Key, f.Args)
	}
	if c.Status != commit.StatusUnknown {
		t.Errorf("got %s, want unknown", c.Status)
	}
	// Its author may correct it, and then the two agree.
	if c, err = r.say(p, "ito", true); err != nil || c.Status != commit.StatusUnknown || !c.Executions[0].Standing(c.Now).Applied {
		t.Fatalf("corrected: got %s, %v, want the other proposal", c.Status, err)
	}
	if c, err = r.say(p, "ueda", true); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

// A first word that nobody will confirm and nobody can correct is no dead end.
func TestAProposalLapsesAfterAnHour(t *testing.T) {
	t.Parallel()
	r := newRig(t, byTwo)
	p := r.unlooked("a")
	if _, err := r.say(p, "ito", true); err != nil {
		t.Fatal(err)
	}
	r.forging(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `alter table resolutions disable trigger user;
			update resolutions set stated_at = stated_at - interval '61 minutes'; alter table resolutions enable trigger user`)
		return err
	})
	r.forged = false // the chain and the counters are whole
	r.settleable(p.ID)
	c, err := r.say(p, "ueda", false)
	if err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want a new proposal", c.Status, err)
	}
	if first := c.Executions[0].Standing(c.Now); first == nil || first.Name != "ueda" || first.Applied {
		t.Errorf("got %+v, want ueda's word standing", first)
	}
	if c, err = r.say(p, "sasaki", false); err != nil || c.Status != commit.StatusNotApplied || c.Executions[0].ResolvedBy != "ueda, sasaki" {
		t.Errorf("got %s by %q, %v, want not_applied by the two who agree", c.Status, c.Executions[0].ResolvedBy, err)
	}
}

func TestProofSettlesBetweenTwoWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, byTwo, silent)
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	r.settleable(p.ID)
	if _, err := r.say(p, "ito", false); err != nil {
		t.Fatal(err)
	}
	r.canLook()
	c, err := r.say(p, "ueda", false)
	wantCode(t, err, fault.Conflict)
	if c.Status != commit.StatusApplied || c.Executions[0].Evidence != commit.ByLookup {
		t.Errorf("got %s by %s, want the target's own proof before two words", c.Status, c.Executions[0].Evidence)
	}
}

func TestTwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, byTwo)
	p := r.unlooked("a")
	errs := make(chan error, 2)
	for _, who := range []string{"ito", "ueda"} {
		go func() { _, err := r.say(p, who, true); errs <- err }()
	}
	for range 2 {
		if err := receive(t, errs); err != nil {
			t.Error(err)
		}
	}
	if c := r.status(p.ID); c.Status != commit.StatusApplied || len(c.Executions[0].Statements) != 2 {
		t.Errorf("got %s with %d statements, want applied by two", c.Status, len(c.Executions[0].Statements))
	}
}

// Neither the requester, nor the human an agent acts for, nor its owner settles their own change, whatever they are spelt like and
// whoever knows them; and only human operators do.
func TestWhoMaySettle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.unlooked("a")
	elsewhere := operator("SATO")
	elsewhere.Issuer = "https://people.example"
	robot := agent("robot")
	robot.Roles = []string{actor.RoleOperator}
	foreign := operator("ito")
	foreign.Tenant = "other"
	approver := person("kim", "leads")
	auditor := operator("audrey")
	auditor.Roles = []string{actor.RoleAuditor}
	for _, tc := range []struct {
		name, key string
		who       actor.Actor
		want      fault.Code
	}{
		{"the human the agent asked for", "fault.forbidden.own_change", operator("sato"), fault.Forbidden},
		{"the same in capitals at another issuer", "fault.forbidden.own_change", elsewhere, fault.Forbidden},
		{"an agent with the role", "", robot, fault.NotFound},
		{"another tenant's operator", "", foreign, fault.NotFound},
		{"an approver", "fault.forbidden.operators_only", approver, fault.Forbidden},
		{"an auditor", "fault.forbidden.operators_only", auditor, fault.Forbidden},
	} {
		said := says(p.ID, tc.who, true)
		said.Tenant = tc.who.Tenant
		_, err := r.commits.Resolve(t.Context(), said)
		_, looked := r.commits.Probe(t.Context(), tc.who, p.ID)
		for _, err := range []error{err, looked} {
			if f := fault.From(err); f.Code != tc.want || tc.key != "" && f.Key != tc.key {
				t.Errorf("%s: got %s (%s), want %s (%s)", tc.name, f.Code, f.Key, tc.want, tc.key)
			}
		}
	}
	if c := r.status(p.ID); c.Status != commit.StatusUnknown || countOf(r.kinds(p.ID), "resolved") != 0 {
		t.Errorf("got %s with %v, want unknown as before", c.Status, r.kinds(p.ID))
	}
	admin := operator("adam")
	admin.Roles = []string{actor.RoleAdmin}
	if c, err := r.commits.Resolve(t.Context(), says(p.ID, admin, true)); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("an admin: got %s, %v, want applied", c.Status, err)
	}
}

func TestPostgresRefusesWordsThatDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, byTwo)
	p := r.unlooked("a")
	id := p.ID.UUID()
	word := func(person string, applied bool, after time.Duration) []statement {
		return []statement{
			run(moveSQL("state = state"), id),
			run(`insert into resolutions (preview_id, seq, item, tenant_id, person, name, applied, reason, evidence, stated_at)
				select id, audit_seq, 0, 'acme', $2, 'n', $3, 'seen', 'log', clock_timestamp() + $4::interval from previews where id = $1`,
				id, person, applied, after),
		}
	}
	settle := run(`update executions set state = 'applied', evidence = 'operator', finished_at = now(), resolved_by = 'n', resolved_why = 'w'
		where preview_id = $1`, id)
	join := func(parts ...[]statement) (all []statement) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	end := []statement{settle}
	for _, tc := range []struct {
		name       string
		statements []statement
		want       string
	}{
		{"the requester's human, at another issuer", word("https://people.example#Sato", true, 0), "CU006"},
		{"a word without its event", []statement{run(`insert into resolutions values ($1, 99, 0, 'acme', 'i#ito', 'n', true, 'r', 'e', now())`, id)}, "23503"},
		{"another tenant's word", []statement{run(`insert into resolutions values ($1, 1, 0, 'other', 'i#ito', 'n', true, 'r', 'e', now())`, id)}, "CU005"},
		{"nobody's word", join([]statement{run(moveSQL("state = state"), id)}, end), "CU008"},
		{"one word", join(word("i#ito", true, 0), end), "CU008"},
		{"one person twice", join(word("i#ito", true, 0), word("j#ITO", true, 0), end), "CU008"},
		{"two who disagree", join(word("i#ito", false, 0), word("i#ueda", true, 0), end), "CU008"},
		{"two who agree on the opposite", join(word("i#ito", false, 0), word("i#ueda", false, 0), end), "CU008"},
		{"a first word that has lapsed", join(word("i#ito", true, -61*time.Minute), word("i#ueda", true, 0), end), "CU008"},
		{"fewer asked for than at the claim", []statement{run(`update executions set resolvers = 1 where preview_id = $1`, id)}, "CU001"},
		{"two who agree", join(word("i#ito", true, 0), word("i#ueda", true, 0), end), ""},
		{"a word taken back", []statement{run(`delete from resolutions where preview_id = $1`, id)}, "CU001"},
		{"a word rewritten", []statement{run(`update resolutions set applied = false where preview_id = $1`, id)}, "CU001"},
		{"all words forgotten", []statement{run(`truncate resolutions`)}, "CU001"},
	} {
		if got := r.sqlState(tc.statements...); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	r.forged = true // an effect was stated that nobody made
}
