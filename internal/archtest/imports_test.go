package archtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of ARCHITECTURE.md")

// architecture guards ARCHITECTURE.md, which two tests may write.
var architecture sync.Mutex

const module = "github.com/cutonce/cutonce"

// rooms says which rooms of ours each room may import, and which libraries. Every room may import "everywhere". A room is
// named by its path below the module; "connector/adbudget" follows its own entry, not connector's.
var rooms = map[string]room{
	"cmd/cutonce": {Any: true},
	"api":         {Ours: []string{"answer", "approvals", "commit", "connector", "preview", "internal/auth", "internal/catalog", "internal/intake"}, Libs: []string{"github.com/labstack/echo/v4", "gopkg.in/yaml.v3"}},
	// web shows whether a change's record holds by its chain and its seal; it reads no meaning into events there.
	"web":        {Ours: []string{"answer", "approvals", "audit", "commit", "connector", "preview", "internal/catalog", "internal/visible", "internal/session", "internal/signin"}},
	"mcpadapter": {Ours: []string{"answer", "commit", "connector", "preview", "internal/auth", "internal/catalog", "internal/intake"}, Libs: []string{"github.com/modelcontextprotocol/go-sdk"}},
	// verify holds the guarantees up against a configuration: it wires the core on a scratch schema, as cmd/cutonce does on the real one.
	"verify": {Ours: []string{"approvals", "audit", "commit", "connector", "policy", "preview", "store"}, Libs: []string{"github.com/jackc/pgx/v5", "github.com/google/uuid"}},
	// doctor looks at a deployment as it is configured, and at nothing through the services.
	"doctor": {Ours: []string{"audit", "connector", "policy", "store", "internal/auth", "internal/config"}},
	"answer": {Ours: []string{"commit", "connector", "preview", "policy", "internal/catalog", "internal/visible"}},
	// notify says what is told, post carries it, outbox keeps it until then: River and its driver are outbox's library.
	"notify":                     {Ours: []string{"answer", "approvals", "commit", "policy", "preview", "internal/catalog", "internal/visible"}, Libs: []string{"github.com/goccy/go-yaml"}},
	"notify/post":                {Ours: []string{"notify"}, Libs: []string{"github.com/wneessen/go-mail"}},
	"notify/outbox":              {Ours: []string{"notify", "preview"}, Libs: []string{"github.com/riverqueue/river", "github.com/jackc/pgx/v5"}},
	"store":                      {Ours: []string{"approvals", "audit", "commit", "connector", "preview", "migrations", "internal/session"}, Libs: []string{"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3", "github.com/google/uuid", "github.com/riverqueue/river"}},
	"commit":                     {Ours: []string{"connector", "preview"}, Libs: []string{"github.com/google/uuid"}},
	"approvals":                  {Ours: []string{"connector", "policy", "preview"}},
	"preview":                    {Ours: []string{"connector", "policy", "internal/intake"}, Libs: []string{"github.com/google/uuid"}},
	"policy":                     {Ours: []string{"connector", "internal/visible"}, Libs: []string{"cel.dev/cel-go", "github.com/goccy/go-yaml"}},
	"connector":                  {Ours: []string{"internal/visible"}},
	"connector/adbudget":         {Ours: []string{"connector", "connector/httptarget", "internal/visible"}},
	"connector/httptarget":       {Ours: []string{"connector", "internal/visible"}},
	"connector/rollback":         {Ours: []string{"connector", "connector/httptarget", "internal/visible"}},
	"connector/trial":            {Ours: []string{"connector"}},
	"connector/connectortest":    {Ours: []string{"connector", "connector/trial"}, Libs: []string{"github.com/google/go-cmp"}},
	"migrations":                 {},
	"audit":                      {},
	"examples/policies":          {},
	"internal/actor":             {},
	"internal/archtest":          {},
	"internal/auth":              {Libs: []string{"github.com/golang-jwt/jwt/v5", "github.com/MicahParks/keyfunc/v3", "github.com/MicahParks/jwkset", "golang.org/x/time"}, Ours: []string{"internal/visible"}},
	"internal/bridge":            {Ours: []string{"internal/config"}, Libs: []string{"github.com/modelcontextprotocol/go-sdk"}},
	"internal/canon":             {},
	"internal/catalog":           {Libs: []string{"github.com/nicksnyder/go-i18n/v2", "golang.org/x/text"}},
	"internal/child":             {},
	"internal/config":            {},
	"internal/devissuer":         {Libs: []string{"github.com/golang-jwt/jwt/v5", "github.com/MicahParks/jwkset"}},
	"internal/fault":             {},
	"internal/httpserve":         {},
	"internal/instance":          {},
	"internal/intake":            {Ours: []string{"internal/visible"}, Libs: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"internal/metrics":           {Libs: []string{"github.com/prometheus/client_golang"}},
	"internal/money":             {Libs: []string{"github.com/bojanz/currency"}},
	"internal/operate":           {},
	"internal/pglocal":           {Libs: []string{"github.com/jackc/pgx/v5"}},
	"internal/pgtest":            {Ours: []string{"internal/pglocal"}, Libs: []string{"github.com/jackc/pgx/v5", "github.com/testcontainers/testcontainers-go"}},
	"internal/session":           {},
	"internal/target":            {Libs: []string{"golang.org/x/text"}},
	"internal/testreport":        {},
	"internal/visible":           {Libs: []string{"golang.org/x/text"}},
	"internal/signin":            {Libs: []string{"github.com/coreos/go-oidc/v3", "golang.org/x/oauth2"}},
	"internal/signin/signintest": {Libs: []string{"github.com/zitadel/oidc/v3", "golang.org/x/text"}},
	"internal/wire":              {},
	"test/crash":                 {Ours: []string{"audit", "commit", "preview", "internal/devissuer", "internal/pglocal", "internal/target", "internal/wire", "test/fleet"}, Libs: []string{"github.com/jackc/pgx/v5", "github.com/google/uuid"}},
	"test/fleet":                 {Ours: []string{"answer", "commit", "preview", "examples/policies", "internal/child", "internal/devissuer", "internal/pglocal", "internal/target"}, Libs: []string{"github.com/jackc/pgx/v5"}},
	"test/security":              {Ours: []string{"internal/devissuer", "internal/target", "test/fleet"}, Libs: []string{"github.com/jackc/pgx/v5", "github.com/google/uuid"}},
	"test/failover":              {Ours: []string{"audit", "preview", "internal/pglocal", "internal/target", "test/fleet"}, Libs: []string{"github.com/jackc/pgx/v5"}},
	"test/soak":                  {Ours: []string{"audit", "preview", "internal/pglocal", "internal/target", "internal/wire", "test/fleet"}, Libs: []string{"github.com/jackc/pgx/v5", "github.com/anishathalye/porcupine"}},
	"test/mutants":               {Ours: []string{"internal/pglocal"}},
	"test/browser":               {Ours: []string{"commit", "preview", "internal/child", "internal/target", "test/fleet"}, Libs: []string{"github.com/chromedp/chromedp", "github.com/chromedp/cdproto"}},
	"test/clients":               {Ours: []string{"internal/child", "internal/devissuer"}},
}

// everywhere may be imported by every room.
var everywhere = []string{"internal/fault", "internal/canon", "internal/money", "internal/actor"}

type room struct {
	Ours, Libs []string
	// Any is for wiring.
	Any bool
}

type pkg struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

var packages = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
})

func TestImportMatrix(t *testing.T) {
	t.Parallel()
	list, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		r, known := rooms[name]
		if !known {
			t.Errorf("the room %s is not in the matrix: add it, and say who may import it", name)
			continue
		}
		for _, imported := range p.Imports {
			if !r.may(imported) {
				t.Errorf("%s imports %s, which the matrix does not allow", name, imported)
			}
		}
	}
}

func (r room) may(imported string) bool {
	if r.Any || !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return true
	}
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		return slices.Contains(r.Ours, ours) || slices.Contains(everywhere, ours)
	}
	return slices.ContainsFunc(r.Libs, func(lib string) bool { return imported == lib || strings.HasPrefix(imported, lib+"/") })
}

// The two edges that carry meaning, over all dependencies and not only the direct ones.
func TestWhatMustNotBeReachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, never string }{
		{"mcpadapter", module + "/approvals"},
		{"mcpadapter", module + "/store"},
		{"mcpadapter", "github.com/jackc/pgx/v5"},
		{"preview", "github.com/jackc/pgx/v5"},
		{"approvals", "github.com/jackc/pgx/v5"},
		{"commit", "github.com/jackc/pgx/v5"},
		{"commit", "github.com/labstack/echo/v4"},
		{"commit", "github.com/modelcontextprotocol/go-sdk/mcp"},
		{"commit", module + "/approvals"},
		{"policy", module + "/store"},
		{"internal/bridge", module + "/store"},
		{"internal/bridge", module + "/connector"},
		{"internal/bridge", "github.com/jackc/pgx/v5"},
	} {
		cmd := exec.Command("go", "list", "-deps", "./"+c.from)
		cmd.Dir = "../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", c.from, err)
		}
		if slices.Contains(strings.Fields(string(out)), c.never) {
			t.Errorf("%s reaches %s", c.from, c.never)
		}
	}
}

const (
	begin = "<!-- generated: import matrix -->\n"
	end   = "<!-- end of the import matrix -->\n"
)

func TestArchitectureShowsTheMatrix(t *testing.T) {
	architecture.Lock()
	defer architecture.Unlock()
	path := filepath.Join("..", "..", "ARCHITECTURE.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBetween(t, string(old), begin, end, matrix())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(old) != want {
		t.Error("ARCHITECTURE.md does not show the import matrix as it is: go test ./internal/archtest -update")
	}
}

func replaceBetween(t *testing.T, text, begin, end, body string) string {
	t.Helper()
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatalf("ARCHITECTURE.md has no place for %q", strings.TrimSpace(begin))
	}
	return text[:i+len(begin)] + body + text[j:]
}

func matrix() string {
	var b strings.Builder
	b.WriteString("| room | may import of ours | libraries |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		r := rooms[name]
		ours, libs := code(r.Ours), code(r.Libs)
		if r.Any {
			ours, libs = "everything (wiring)", "its own"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, ours, libs)
	}
	return b.String()
}

func code(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
