package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// sources calls f for every Go file of the product, tests aside.
func sources(t *testing.T, f func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, path), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		f(path, set, file)
	})
}

func walk(t *testing.T, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "node_modules" || name == "bin" || strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if !d.IsDir() {
			relative, _ := filepath.Rel(root, path)
			f(filepath.ToSlash(relative))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsTooLong(t *testing.T) {
	t.Parallel()
	const longestFile, longestFunction = 500, 80
	sources(t, func(path string, set *token.FileSet, file *ast.File) {
		if n := set.Position(file.End()).Line; n > longestFile {
			t.Errorf("%s has %d lines, at most %d", path, n, longestFile)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			if !ok {
				return true
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > longestFunction {
				t.Errorf("%s: %s has %d lines, at most %d", path, f.Name.Name, lines, longestFunction)
			}
			return true
		})
	})
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	sources(t, func(path string, _ *token.FileSet, file *ast.File) {
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || file.Doc != nil
	})
	for dir, ok := range documented {
		if !ok {
			t.Errorf("the package in %s has no comment", dir)
		}
	}
}

// clocks are the places that may read the process's clock, each with its reason. Everything else gets the time from the
// database or from its caller.
var clocks = map[string]string{
	"connector/connectortest/connectortest.go": "it is a test suite and measures a connector's deadline",
	"internal/httpserve/body.go":               "a socket's deadline is on this process's clock",
	"commit/reconcile.go":                      "a replay's deadline, as a send's",
	"commit/send.go":                           "a send's deadline runs from the database's answer on this process's monotonic clock",
}

func TestTimeComesFromTheDatabase(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, set *token.FileSet, file *ast.File) {
		wiring := strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "bench/") || strings.HasPrefix(path, "internal/pglocal/") || strings.HasPrefix(path, "internal/pgtest/") ||
			strings.HasPrefix(path, "test/") // suites run and measure processes
		if wiring || clocks[path] != "" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Since") {
				t.Errorf("%s reads the process's clock (time.%s)", set.Position(call.Pos()), s.Sel.Name)
			}
			return true
		})
	})
}

var sqlNow = regexp.MustCompile(`(?i)(^|[^_a-z])now\(\)|current_timestamp|localtimestamp`)

// now() is the start of the transaction: behind a row lock it lets a deadline pass that is over.
func TestNoNowInSQL(t *testing.T) {
	t.Parallel()
	walk(t, func(path string) {
		ours := strings.HasPrefix(path, "store/") && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		if !ours && !strings.HasPrefix(path, "migrations/") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if loc := sqlNow.FindIndex(text); loc != nil {
			t.Errorf("%s uses now(): %q", path, text[loc[0]:min(loc[1]+20, len(text))])
		}
	})
}

func TestNoBannedPackageNames(t *testing.T) {
	t.Parallel()
	sources(t, func(path string, _ *token.FileSet, file *ast.File) {
		switch name := file.Name.Name; name {
		case "util", "utils", "common", "models", "types", "helper", "helpers", "manager":
			t.Errorf("%s: a package called %s says nothing", path, name)
		}
	})
}
