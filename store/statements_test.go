package store_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/store"
)

// sources parses the package without its tests.
func sources(t *testing.T, files *token.FileSet) []*ast.File { return sourcesIn(t, files, ".") }

func sourcesIn(t *testing.T, files *token.FileSet, room string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(room, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	return parsed
}

// sqlConstants evaluates every string constant of the package's sources, however it is put together. Imports are not
// resolved: no statement depends on one.
func sqlConstants(t *testing.T) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	config := types.Config{Error: func(error) {}}
	info := types.Info{Defs: map[*ast.Ident]types.Object{}}
	_, _ = config.Check("store", files, sources(t, files), &info) // the missing imports are its errors
	found := map[string]string{}
	for name, object := range info.Defs {
		c, ok := object.(*types.Const)
		if ok && c.Val().Kind() == constant.String {
			found[name.Name] = constant.StringVal(c.Val())
		}
	}
	return found
}

var statementStart = regexp.MustCompile(`(?i)^\s*(select|with|insert|update|delete)\s`)

// fragment is for constants that are parts of statements; each statement that uses one is prepared whole.
var fragment = map[string]bool{"sqlOutcomes": true, "locked": true, "heldNow": true}

// TestEveryStatementIsPrepared sends every statement of the store to the migrated schema, so that no typo hides on a path that
// no test takes.
func TestEveryStatementIsPrepared(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, pgtest.Migrated(migrations.FS, store.Migrate))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	prepared := 0
	for name, sql := range sqlConstants(t) {
		if !statementStart.MatchString(sql) || fragment[name] {
			continue
		}
		rewritten, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), conn.Conn(), sql, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := conn.Conn().Prepare(t.Context(), name, rewritten); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		prepared++
	}
	if prepared < 25 {
		t.Errorf("got %d statements, want at least 25: are they found at all?", prepared)
	}
}

// TestEveryStatementNamesAConstant: SQL outside a constant would escape the test above.
func TestEveryStatementNamesAConstant(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	known := map[string]bool{`select clock_timestamp()`: true, `select current_setting('transaction_isolation')`: true}
	for _, f := range sources(t, files) {
		ast.Inspect(f, func(n ast.Node) bool {
			if _, ok := n.(*ast.GenDecl); ok {
				return false
			}
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING && statementStart.MatchString(strings.Trim(text.Value, "`\"")) && !known[strings.Trim(text.Value, "`\"")] {
				t.Errorf("%s: a statement outside a constant: %s", files.Position(text.Pos()), text.Value)
			}
			return true
		})
	}
}

// TestNoGuardUsesTheTransactionsClock bans now() and its kin: they stand still from the transaction's first statement on.
func TestNoGuardUsesTheTransactionsClock(t *testing.T) {
	t.Parallel()
	still := regexp.MustCompile(`(?i)\b(now\s*\(\)|current_timestamp|localtimestamp|transaction_timestamp|statement_timestamp)`)
	for name, sql := range sqlConstants(t) {
		if still.MatchString(sql) {
			t.Errorf("%s uses a clock that stands still: %s", name, still.FindString(sql))
		}
	}
}

// TestEveryWriteIsTrustedOnlyAfterACleanEnd: what changes something goes through write or pipeline, which look for the server's
// warning. Sessions are no record of anything, and a place in the feed that is lost is a delivery made twice.
func TestEveryWriteIsTrustedOnlyAfterACleanEnd(t *testing.T) {
	t.Parallel()
	writes := regexp.MustCompile(`(?i)\b(insert into|update \w+ |delete from)`)
	constants, files, found := sqlConstants(t), token.NewFileSet(), 0
	allowed := map[string]bool{"bounded.go": true, "sessions.go": true, "outbox.go": true}
	for _, f := range sources(t, files) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			how, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || how.Sel.Name != "QueryRow" && how.Sel.Name != "Exec" && how.Sel.Name != "read" {
				return true
			}
			if on, ok := how.X.(*ast.SelectorExpr); !ok || on.Sel.Name != "pool" && on.Sel.Name != "reserve" {
				return true
			}
			found++
			at := files.Position(n.Pos())
			sql, named := call.Args[1].(*ast.Ident)
			switch {
			case allowed[at.Filename]:
			case named && writes.MatchString(constants[sql.Name]):
				t.Errorf("%s: %s changes something and trusts whatever comes back", at, sql.Name)
			case named && constants[sql.Name] == "" && how.Sel.Name != "read":
				t.Errorf("%s: a statement that is not named: it may change something", at)
			}
			return true
		})
	}
	if found < 5 {
		t.Errorf("got %d calls, want more: are they found at all?", found)
	}
}
