package store_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/store"
)

// growing are the tables that grow with every change ever made.
var growing = []string{"previews", "executions", "attempts", "decisions", "audit_events", "resolutions", "tombstones", "seal_leaves"}

// small are the indexes that hold only what is open, or rare: reading one whole costs the same whatever is stored.
var small = []string{
	"previews_open_input", "previews_queue", "previews_lapsing", "executions_target_lock", "executions_leases", "executions_probes",
	"executions_open", "executions_contradicted",
}

// whole are the statements that read everything on purpose.
var whole = map[string]string{
	"sqlUncovered": "the first seal of a cluster", "sqlDeclareRestore": "once after a restore", "sqlExportEvents": "an export", "sqlExportBare": "an export",
	"sqlExportLeaves": "an export", "sqlExportTombstones": "an export", "sqlRuled": "a replay of a policy",
}

// plan is a node of EXPLAIN's JSON.
type plan struct {
	NodeType  string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	IndexCond string `json:"Index Cond"`
	Plans     []plan `json:"Plans"`
}

// reads names the places where a plan reads all of a table that grows.
func (p plan) reads() (places []string) {
	for _, below := range p.Plans {
		places = append(places, below.reads()...)
	}
	switch {
	case !strings.HasSuffix(p.NodeType, "Scan"), p.NodeType == "Bitmap Heap Scan": // whose indexes are below it
	case p.IndexCond != "", slices.Contains(small, p.Index):
	case slices.ContainsFunc(growing, func(table string) bool { return p.Relation == table || strings.HasPrefix(p.Index, table+"_") }):
		places = append(places, strings.TrimSpace(p.NodeType+" of "+p.Relation+" "+p.Index))
	}
	return places
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// explain plans a statement for any arguments, in a session that has been told to avoid reading tables whole: what does so all the
// same has no index to go by.
func explain(t *testing.T, conn *pgx.Conn, name, sql string) (found []plan) {
	t.Helper()
	rewritten, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), conn, sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]bool{}
	for _, m := range parameter.FindAllString(rewritten, -1) {
		count[m] = true
	}
	arguments := ""
	if len(count) > 0 {
		arguments = "(" + strings.TrimSuffix(strings.Repeat("null,", len(count)), ",") + ")"
	}
	if _, err := conn.Exec(t.Context(), `prepare planned as `+rewritten); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var raw []byte
	err = conn.QueryRow(t.Context(), `explain (format json, costs off) execute planned`+arguments, pgx.QueryExecModeSimpleProtocol).Scan(&raw)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if _, err := conn.Exec(t.Context(), `deallocate planned`); err != nil {
		t.Fatal(err)
	}
	var explained []struct {
		Plan plan `json:"Plan"`
	}
	if err := json.Unmarshal(raw, &explained); err != nil {
		t.Fatal(err)
	}
	for _, e := range explained {
		found = append(found, e.Plan)
	}
	return found
}

// many multiplies an applied change, so that the planner has something to weigh.
func (r *rig) many(n int) {
	r.t.Helper()
	p := r.prepare("a", "new")
	if _, err := r.apply(p); err != nil {
		r.t.Fatal(err)
	}
	r.forging(func(tx pgx.Tx) error {
		for _, sql := range []string{
			`alter table audit_events disable trigger user; alter table attempts disable trigger user`,
			`create temporary table copies on commit drop as select gen_random_uuid() as id from generate_series(1, ` + strconv.Itoa(n) + `)`,
			`insert into previews select (jsonb_populate_record(p, jsonb_build_object('id', c.id))).* from previews p, copies c`,
			`insert into audit_events select (jsonb_populate_record(v, jsonb_build_object('preview_id', c.id))).* from audit_events v, copies c`,
			`insert into executions select (jsonb_populate_record(e, jsonb_build_object('preview_id', c.id))).* from executions e, copies c`,
			`insert into attempts select (jsonb_populate_record(a, jsonb_build_object('preview_id', c.id))).* from attempts a, copies c`,
		} {
			if _, err := tx.Exec(r.t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	})
	r.exec(`alter table audit_events enable trigger user`)
	r.exec(`alter table attempts enable trigger user`)
	r.exec(`analyze`)
}

var forTenant = regexp.MustCompile(`@tenant\b`)

// takeRole has a statement planned as whom it is run: the policies are part of its plan.
func takeRole(t *testing.T, conn *pgx.Conn, name, sql string) {
	t.Helper()
	role := "cutonce_worker"
	if forTenant.MatchString(sql) && !strings.HasPrefix(name, "sqlExport") && name != "sqlReplaced" {
		role = "cutonce_app"
	}
	if _, err := conn.Exec(t.Context(), `set role `+role+`; set cutonce.tenant = 'acme'`); err != nil {
		t.Fatal(err)
	}
}

// TestNoStatementReadsATableWhole plans every statement of the store for any arguments: each way into a table that grows is an index
// that the statement gives a condition for, or one that holds only what is open or rare. What a plan costs with a million rows is
// measured by the scale benchmark.
func TestNoStatementReadsATableWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.many(1000)
	acquired, err := r.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer acquired.Release()
	conn := acquired.Conn()
	if _, err := conn.Exec(t.Context(), `set enable_seqscan = off; set plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}
	statements := maps.Clone(store.ListStatements())
	for name, sql := range sqlConstants(t) {
		if statementStart.MatchString(sql) && !fragment[name] {
			statements[name] = sql
		}
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		var places []string
		takeRole(t, conn, name, statements[name])
		for _, p := range explain(t, conn, name, statements[name]) {
			places = append(places, p.reads()...)
		}
		if why, on := whole[name]; on {
			if len(places) == 0 {
				t.Errorf("%s reads nothing whole: it needs no exception (%s)", name, why)
			}
			continue
		}
		if len(places) > 0 {
			t.Errorf("%s: %s", name, strings.Join(places, "; "))
		}
	}
	// The positive control: a count that no index serves.
	if got := explain(t, conn, "control", `select count(*) from executions where needs_operator`); len(got[0].reads()) == 0 {
		t.Error("a statement that reads a table whole was not noticed")
	}
}

// waysIn collects the indexes that a plan goes by.
func (p plan) waysIn(into map[string]bool) {
	if p.Index != "" && p.IndexCond != "" {
		into[p.Index] = true
	}
	for _, below := range p.Plans {
		below.waysIn(into)
	}
}

// TestAPlanOfEmptyTablesIsRightForFullOnes: a connection keeps the plan of its first calls, when a new installation holds nothing and
// every index costs the same. Only one may be there to take.
func TestAPlanOfEmptyTablesIsRightForFullOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	acquired, err := r.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer acquired.Release()
	if _, err := acquired.Exec(t.Context(), `set plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}
	constants := sqlConstants(t)
	for name, want := range map[string][]string{
		"sqlReplaced":    {"executions_pkey", "executions_replaced"},
		"sqlReplayByKey": {"decisions_one_each", "previews_idempotency", "removed_approvers_pkey"},
		"sqlCreate":      {"previews_open_input"},
		"sqlOpen":        {"previews_open_input"},
		"sqlPreview":     {"decisions_one_each", "previews_pkey", "removed_approvers_pkey"},
		"sqlCheckLease":  {"executions_pkey"},
	} {
		ways := map[string]bool{}
		for _, p := range explain(t, acquired.Conn(), name, constants[name]) {
			p.waysIn(ways)
		}
		if got := slices.Sorted(maps.Keys(ways)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
