package pglocal_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/internal/pgtest"
)

func TestRefuseForeign(t *testing.T) {
	t.Parallel()
	ours := func(schema, table string) bool { return schema == "public" && table == "preview" }
	for name, tc := range map[string]struct {
		sql  string
		want []string
	}{
		"empty":                  {sql: `select 1`},
		"ours":                   {sql: `create table preview (id int)`},
		"a view is no data":      {sql: `create view anything as select 1 as one`},
		"an extension's table":   {sql: ownedByAnExtension},
		"someone else's":         {sql: `create table preview (id int); create table customer (id int)`, want: []string{"public.customer"}},
		"our name, their schema": {sql: `create schema shop; create table shop.preview (id int)`, want: []string{"shop.preview"}},
		"partitioned": {sql: `create table sale (id int) partition by range (id); create table sale_1 partition of sale for values from (0) to (9)`,
			want: []string{"public.sale", "public.sale_1"}},
		"an awkward name": {sql: `create schema pgx; create table pgx."Order Item" (id int)`, want: []string{"pgx.Order Item"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			exec1(t, url, tc.sql)
			err := pglocal.RefuseForeign(t.Context(), url, ours)
			var foreign *pglocal.ForeignTablesError
			if errors.As(err, &foreign) != (tc.want != nil) {
				t.Fatalf("got %v, want foreign tables %v", err, tc.want)
			}
			if foreign != nil {
				if diff := cmp.Diff(tc.want, foreign.Tables); diff != "" {
					t.Errorf("tables (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// No contributed extension with a table is installed everywhere; plpgsql is, and a table can be put into it.
const ownedByAnExtension = `create table theirs (id int); alter extension plpgsql add table theirs`

func TestRefuseForeignNamesThreeTablesAndTheWayOut(t *testing.T) {
	t.Parallel()
	err := &pglocal.ForeignTablesError{Database: "shop", Tables: []string{"a.a", "a.b", "a.c", "a.d", "a.e"}}
	const want = `database "shop" holds tables that are not cutonce's (a.a, a.b, a.c and 2 more); create an empty database (createdb cutonce) and name that one`
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
