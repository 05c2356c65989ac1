package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// rowsOf renders a transition table of Go as sorted "from to" lines.
func rowsOf[S ~string](table map[S][]S) []string {
	var rows []string
	for from, next := range table {
		for _, to := range next {
			rows = append(rows, string(from)+" "+string(to))
		}
	}
	slices.Sort(rows)
	return rows
}

func (r *rig) transitionRows(table string) []string {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), `select from_state || ' ' || to_state from `+table)
	if err != nil {
		r.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

func TestTransitionsAreTheSameInGoAndPostgres(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if diff := cmp.Diff(rowsOf(preview.Transitions()), r.transitionRows("preview_transitions")); diff != "" {
		t.Errorf("previews (-Go +Postgres):\n%s", diff)
	}
	if diff := cmp.Diff(rowsOf(commit.Transitions()), r.transitionRows("execution_transitions")); diff != "" {
		t.Errorf("executions (-Go +Postgres):\n%s", diff)
	}
}

func TestStatesAreTheSameInGoAndPostgres(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range preview.States() {
		var ok bool
		r.scalar(&ok, `select pg_get_constraintdef(oid) like '%''' || $1 || '''::text%' from pg_constraint where conname = 'previews_state_check'`, string(s))
		if !ok {
			t.Errorf("previews do not know the state %s", s)
		}
	}
	for _, s := range commit.States() {
		var ok bool
		r.scalar(&ok, `select pg_get_constraintdef(oid) like '%''' || $1 || '''::text%' from pg_constraint where conname = 'executions_state_check'`, string(s))
		if !ok {
			t.Errorf("executions do not know the state %s", s)
		}
	}
}

// attempt runs one statement in a transaction that is rolled back, and gives its SQLSTATE.
func (r *rig) attempt(sql string, args ...any) string {
	r.t.Helper()
	tx, err := r.pool.Begin(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer tx.Rollback(r.t.Context())
	_, err = tx.Exec(r.t.Context(), sql, args...)
	return stateOf(r.t, err)
}

func TestPostgresRefusesEveryIllegalMoveOfAPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	forged := map[preview.State]preview.ID{}
	r.forging(func(tx pgx.Tx) (err error) {
		for _, s := range preview.States() {
			if forged[s], err = forgePreview(t.Context(), tx, p.ID, inState(s)); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	for _, from := range preview.States() {
		for _, to := range preview.States() {
			ended := "null"
			if to.Final() {
				ended = "now()"
			}
			got := r.attempt(moveSQL(fmt.Sprintf("state = '%s', ended_at = %s", to, ended)), forged[from].UUID())
			want := "CU004"
			if from == to || from.CanBecome(to) {
				want = ""
			}
			if got != want {
				t.Errorf("%s to %s: got %q, want %q", from, to, got, want)
			}
		}
	}
}

func TestPreviewsAreBornOnlyInInitialStates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	for _, s := range preview.States() {
		f := inState(s)
		f["id"], f["audit_seq"] = preview.NewID().UUID().String(), 1
		got := r.attempt(`insert into previews select (jsonb_populate_record(p, $2::jsonb)).* from previews p where id = $1`, p.ID.UUID(), f)
		want := "CU004"
		if slices.Contains(preview.Initial(), s) {
			want = ""
		}
		if got != want {
			t.Errorf("born %s: got %q, want %q", s, got, want)
		}
	}
}

func TestPostgresRefusesEveryIllegalMoveOfAnExecution(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	forged := map[commit.State]preview.ID{}
	r.forging(func(tx pgx.Tx) (err error) {
		for _, s := range commit.States() {
			if forged[s], err = forgePreview(t.Context(), tx, p.ID, inState(preview.Claimed)); err != nil {
				return err
			}
			if err = forgeExecution(t.Context(), tx, forged[s], 0, s, time.Minute); err != nil {
				return err
			}
		}
		return nil
	})
	for _, from := range commit.States() {
		for _, to := range commit.States() {
			// All columns that the CHECKs of the new state ask for, and the contradiction said openly.
			got := r.attempt(`
				update executions set state = $2, contradicted = ($3 = 'not_applied' and $2 = 'applied'),
				  finished_at = case when $2 in ('applied', 'not_applied') then now() end,
				  evidence = case when $2 in ('applied', 'not_applied') then 'receipt' else '' end,
				  reason = case when $2 = 'not_applied' then 'refused' else '' end
				where preview_id = $1`, forged[from].UUID(), string(to), string(from))
			want := "CU004"
			if from == to || slices.Contains(commit.Transitions()[from], to) {
				want = ""
			}
			if got != want {
				t.Errorf("%s to %s: got %q, want %q", from, to, got, want)
			}
		}
	}
}

// TestTheStatusFilterAgreesWithStatusOf forges every state of a preview before and after its deadline, and every pair of
// executions before and after their leases, and asks the list for each status.
func TestTheStatusFilterAgreesWithStatusOf(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	type half struct {
		state commit.State
		lease time.Duration
	}
	halves := []half{{commit.Applying, time.Hour}, {commit.Applying, -time.Hour}}
	for _, s := range commit.States()[1:] {
		halves = append(halves, half{s, time.Hour})
	}
	forged := 1
	r.forging(func(tx pgx.Tx) error {
		for _, s := range preview.States() {
			if s == preview.Claimed { // never without an execution, and with every pair of them below
				continue
			}
			for _, until := range []time.Duration{-time.Hour, time.Hour} {
				f := inState(s)
				f["deadline"] = time.Now().Add(until).UTC()
				if _, err := forgePreview(t.Context(), tx, p.ID, f); err != nil {
					return err
				}
				forged++
			}
		}
		for i, a := range halves {
			for j := -1; j <= i; j++ {
				id, err := forgePreview(t.Context(), tx, p.ID, inState(preview.Claimed))
				if err != nil {
					return err
				}
				forged++
				if err := forgeExecution(t.Context(), tx, id, 0, a.state, a.lease); err != nil {
					return err
				}
				if j < 0 {
					continue
				}
				if err := forgeExecution(t.Context(), tx, id, 1, halves[j].state, halves[j].lease); err != nil {
					return err
				}
			}
		}
		return nil
	})
	listed, seen := 0, map[commit.Status]int{}
	for _, status := range commit.Statuses() {
		changes, _, err := r.store.List(t.Context(), commit.Filter{Tenant: "acme", Status: status, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			seen[status]++
			if c.Status != status {
				t.Errorf("filtered by %s: got a change with %s (%s, %v)", status, c.Status, c.Preview.State, c.Executions)
			}
		}
		listed += len(changes)
	}
	if got, want := listed, forged; got != want {
		t.Errorf("got %d changes over all statuses, want %d", got, want)
	}
	for _, status := range commit.Statuses() {
		if seen[status] == 0 {
			t.Errorf("no forged change has the status %s", status)
		}
	}
}
