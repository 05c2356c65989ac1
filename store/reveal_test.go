package store_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

const (
	oldSecret = "old-secret-4711"
	newSecret = "new-secret-4712"
)

// secretive has a text that is hidden.
func secretive(r *rig) {
	r.target.sensitive = true
	r.target.texts["a"] = oldSecret
	r.rules.ruling = people(policy.Seats{AnyOf: []string{"leads"}, Count: 1})
}

// asksSecretly is a change of it that waits for leads.
func (r *rig) asksSecretly() preview.Preview {
	r.t.Helper()
	p, err := r.approvals.Request(r.t.Context(), agent("bot"), r.prepare("a", newSecret).ID, "please")
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) reveal(p preview.Preview, who actor.Actor) (commit.Change, error) {
	return r.commits.Reveal(r.t.Context(), who, p.ID)
}

// leaks are the tables, beside the previews, that hold one of the texts.
func (r *rig) leaks(texts ...string) (found []string) {
	r.t.Helper()
	for _, text := range texts {
		for table, row := range map[string]string{
			"audit_events": `convert_from(t.body, 'UTF8') || t.kind || t.actor`, "attempts": `to_jsonb(t)::text`, "executions": `to_jsonb(t)::text`,
			"decisions": `to_jsonb(t)::text`, "previews": `(to_jsonb(t) - 'document')::text`,
		} {
			var n int
			if err := r.pool.QueryRow(r.t.Context(), `select count(*) from `+table+` t where strpos(`+row+`, $1) > 0`, text).Scan(&n); err != nil {
				r.t.Fatal(err)
			}
			if n > 0 {
				found = append(found, table+": "+text)
			}
		}
	}
	return found
}

func TestARevealIsOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, secretive)
	p := r.asksSecretly()
	c, err := r.reveal(p, person("kim", "leads"))
	if err != nil {
		t.Fatal(err)
	}
	if got := *c.Preview.Plan.Changes[0].After.Text; got != newSecret {
		t.Errorf("got %q, want the value", got)
	}
	events := r.eventsOf(t.Context(), p.ID)
	last := events[len(events)-1]
	var said map[string]any
	if err := json.Unmarshal(last.Body, &said); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"fields": []any{"text"}, "person": "https://id.example#kim"}
	if diff := cmp.Diff(want, said); last.Kind != "revealed" || last.Actor != person("kim").ID() || diff != "" {
		t.Errorf("got %s by %s (-want +got):\n%s", last.Kind, last.Actor, diff)
	}
	if len(c.Events) != len(events) {
		t.Errorf("got %d events with the values, want all %d: the record comes first", len(c.Events), len(events))
	}
	if got := r.leaks(oldSecret, newSecret); len(got) > 0 {
		t.Errorf("the values are in %v", got)
	}
	// Looking moves nothing: the digest of the real value is decided on and applied.
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.reveal(p, person("kim", "leads")); err != nil {
		t.Error(err)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied || r.target.now("a").Values["text"].Text == nil {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	if got := *r.target.now("a").Values["text"].Text; got != newSecret {
		t.Errorf("the target holds %q, want the real value", got)
	}
	if _, err := r.reveal(p, operator("ito")); err != nil || countOf(r.kinds(p.ID), "revealed") != 3 {
		t.Errorf("got %v, %v, want each reveal on record", r.kinds(p.ID), err)
	}
}

// Nobody is told otherwise of a change because somebody has looked at it: the feed passes looking over.
func TestARevealMovesNothingInTheFeed(t *testing.T) {
	t.Parallel()
	r := newRig(t, secretive)
	p := r.prepare("a", newSecret)
	for range 2 {
		if _, err := r.reveal(p, operator("ito")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), p.ID, "no"); err != nil {
		t.Fatal(err)
	}
	var last preview.Moved
	for deadline := time.Now().Add(15 * time.Second); last.Kind != "canceled" && time.Now().Before(deadline); {
		moved, _, err := r.store.Tail(t.Context(), preview.Place{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(moved) > 0 {
			last = moved[len(moved)-1]
		}
	}
	if last.Kind != "canceled" || last.Before != "prepared" || last.Seq != 4 {
		t.Errorf("got %+v, want the cancel, after the prepare", last)
	}
}

func TestWhoMayReveal(t *testing.T) {
	t.Parallel()
	r := newRig(t, secretive)
	p := r.asksSecretly()
	r.remove("park")
	with := func(role, name string) actor.Actor {
		a := operator(name)
		a.Roles = []string{role}
		return a
	}
	foreign, foreignLead := operator("ito"), person("kim", "leads")
	foreign.Tenant, foreignLead.Tenant = "other", "other"
	robot := agent("robot")
	robot.Roles, robot.Groups = []string{actor.RoleAdmin}, []string{"leads"}
	elsewhere := with(actor.RoleAuditor, "SATO")
	elsewhere.Issuer = "https://people.example"
	revealed := 0
	for name, tc := range map[string]struct {
		who  actor.Actor
		want fault.Code
	}{
		"somebody with a seat": {person("kim", "leads"), ""}, "an operator": {operator("ito"), ""},
		"an auditor": {with(actor.RoleAuditor, "audrey"), ""}, "an admin": {with(actor.RoleAdmin, "adam"), ""},
		"an approver without a seat":            {person("lee", "others"), fault.Forbidden},
		"a removed approver":                    {person("park", "leads"), fault.Forbidden},
		"the agent that sent it":                {agent("bot"), fault.Forbidden},
		"the human it asked for":                {person("sato", "leads"), fault.Forbidden},
		"they as an operator":                   {operator("sato"), fault.Forbidden},
		"they as an auditor of another issuer":  {elsewhere, fault.Forbidden},
		"an agent with role and group":          {robot, fault.NotFound},
		"somebody without a role":               {with("", "nobody"), fault.NotFound},
		"another tenant's operator":             {foreign, fault.NotFound},
		"another tenant's person with the seat": {foreignLead, fault.NotFound},
	} {
		c, err := r.reveal(p, tc.who)
		if tc.want == "" {
			revealed++
			if err != nil || c.Preview.ID != p.ID {
				t.Errorf("%s: got %v, want the change", name, err)
			}
			continue
		}
		wantCode(t, err, tc.want)
		if !reflect.DeepEqual(c, commit.Change{}) {
			t.Errorf("%s: got a change beside %v", name, err)
		}
	}
	if got := countOf(r.kinds(p.ID), "revealed"); got != revealed {
		t.Errorf("got %d on record, want the %d that were allowed", got, revealed)
	}
}

func TestNothingHiddenIsNothingToReveal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	_, err := r.reveal(p, operator("ito"))
	wantCode(t, err, fault.Conflict)
	if got := countOf(r.kinds(p.ID), "revealed"); got != 0 {
		t.Errorf("got %d reveals on record, want none", got)
	}
}

func TestWhatCannotBeRecordedIsNotShown(t *testing.T) {
	t.Parallel()
	r := newRig(t, secretive)
	p := r.asksSecretly()
	if _, err := r.pool.Exec(t.Context(), `
		create function no_record() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
		create trigger no_record before insert on audit_events for each row when (new.kind = 'revealed') execute function no_record()`); err != nil {
		t.Fatal(err)
	}
	c, err := r.reveal(p, operator("ito"))
	if err == nil || !reflect.DeepEqual(c, commit.Change{}) {
		t.Errorf("got %+v, %v, want an error and nothing beside it", c, err)
	}
	if strings.Contains(err.Error(), newSecret) {
		t.Errorf("the error holds the value: %v", err)
	}
}

// What a target says of a hidden field, in any of its answers, is kept without the value.
func TestNoRecordHoldsASensitiveValue(t *testing.T) {
	t.Parallel()
	echo := map[string]any{"said": "set to " + newSecret, "was": oldSecret, "ok": true}
	now := func(text string) map[string]connector.Value {
		return map[string]connector.Value{"text": connector.Text(text)}
	}
	type script = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error)
	for name, tc := range map[string]struct {
		execute script
		before  func(r *rig)
		want    commit.Status
		shows   string
	}{
		"a receipt": {func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
			return connector.Receipt{Evidence: echo}, do()
		}, nil, commit.StatusApplied, ""},
		"a refusal": {func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
			return connector.Receipt{}, connector.Rejected(422, newSecret+" is too weak")
		}, nil, commit.StatusNotApplied, ""},
		"a drift":                   {nil, func(r *rig) { r.target.move("a", "third-secret-4713") }, commit.StatusNotApplied, "other"},
		"a drift to the very value": {nil, func(r *rig) { r.target.move("a", newSecret) }, commit.StatusNotApplied, "requested"},
		"a look-up": {func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
			return connector.Receipt{}, context.DeadlineExceeded
		}, func(r *rig) {
			r.target.looks(func(connector.Call) (connector.Finding, error) {
				return connector.Finding{Found: connector.EffectUnsure, Evidence: echo, Now: now(oldSecret)}, nil
			})
		}, commit.StatusUnknown, "at_preview"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, secretive)
			p := r.asksSecretly()
			if _, err := r.approve(p, "kim"); err != nil {
				t.Fatal(err)
			}
			if tc.before != nil {
				tc.before(r)
			}
			r.target.script(tc.execute)
			c, err := r.apply(p)
			if err != nil || c.Status != tc.want {
				t.Fatalf("got %s, %v, want %s", c.Status, err, tc.want)
			}
			if tc.want == commit.StatusUnknown {
				if c, err = r.commits.Probe(t.Context(), operator("ito"), p.ID); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.leaks(oldSecret, newSecret, "third-secret-4713"); len(got) > 0 {
				t.Errorf("the values are in %v", got)
			}
			raw, _ := json.Marshal(c.Executions[0].Detail)
			if !strings.Contains(string(raw), `"shows":"`+tc.shows) && tc.shows != "" {
				t.Errorf("got %s, want it to show %s", raw, tc.shows)
			}
		})
	}
}
