package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// The development issuer speaks for everyone. Only the files of the development command may know it, and the files of the
// production command may know neither it nor what those files make of it.
func TestOnlyDevelopmentKnowsTheDevIssuer(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	forDevelopment := map[string]bool{} // what those files declare at the top
	uses := map[string][]*ast.Ident{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		development := strings.HasPrefix(name, "dev") || strings.HasPrefix(name, "demo")
		for _, i := range file.Imports {
			if strings.Contains(i.Path.Value, "internal/devissuer") && !development {
				t.Errorf("%s imports the development issuer", name)
			}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && development && f.Recv == nil {
				forDevelopment[f.Name.Name] = true
			}
		}
		if !development {
			uses[name] = file.Unresolved // what the file takes from the others
		}
	}
	if !forDevelopment["openCast"] {
		t.Fatal("the development command's files are not where this test looks")
	}
	for name, ids := range uses {
		for _, id := range ids {
			if forDevelopment[id.Name] && id.Name != "devCommand" && id.Name != "demoCommand" {
				t.Errorf("%s uses %s of the development command", name, id.Name)
			}
		}
	}
}

func TestRoutesAreMeasuredByTemplate(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile(`(?m)^  (/[^:\s]*):\s*$`).FindAllStringSubmatch(string(text), -1)
	if len(paths) < 10 {
		t.Fatalf("got %d paths of the API, want all", len(paths))
	}
	for _, m := range paths {
		r := httptest.NewRequest(http.MethodGet, strings.NewReplacer("{", "x", "}", "").Replace(m[1]), nil)
		if got := routeOf(r); got != m[1] {
			t.Errorf("%s: got the route %q, want its template", m[1], got)
		}
	}
	for path, want := range map[string]string{
		"/": "/", "/changes/pv_1/review": "/changes/{id}/review", "/wp-login.php": "other", "/v1/previews/x/y/z": "other", "/mcp": "/mcp",
		"/%2e%2e/etc": "other",
	} {
		if got := routeOf(httptest.NewRequest(http.MethodPost, path, nil)); got != want {
			t.Errorf("%s: got the route %q, want %q", path, got, want)
		}
	}
}

func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	const path = "../../docs/configuration.md"
	want := configurationPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md does not show the settings as they are: go test ./cmd/cutonce -run Documented -update")
	}
}

func configurationPage() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"`cutonce serve` is configured by environment variables, and by policy files in the folder that one of them names. " +
		"A variable that begins with `CUTONCE_` and is not below refuses the start and is named; all problems are listed at once. " +
		"The effective settings are logged at the start, without secrets. `cutonce serve --help` prints the same list.\n\n" +
		"`cutonce dev` brings its own database, secret, issuer and ad platform; the listeners, the clocks, the policy folder, the pool " +
		"and the log level can be set for it too, and its flags stand above them.\n\n" +
		"This page is rendered from the code (`go test ./cmd/cutonce -run Documented -update`).\n")
	group := "\x00"
	for _, row := range config.Table() {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n## %s\n\n| variable | default | meaning |\n| --- | --- | --- |\n", title(group))
		}
		fallback := "–"
		if row.Default != "" {
			fallback = "`" + row.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.Name, fallback, strings.ReplaceAll(row.Doc, "|", "\\|"))
	}
	b.WriteString("\n## The Go runtime\n\n" +
		"`GOGC` and `GOMEMLIMIT` are obeyed. Without them the process sets 400 and 1 GiB, or four fifths of its container's memory if that is less.\n")
	return b.String()
}

func title(group string) string {
	if group == "" {
		return "The process"
	}
	return strings.ToUpper(group[:1]) + group[1:]
}
