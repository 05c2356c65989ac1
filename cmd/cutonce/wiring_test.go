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
		"`cutonce dev` brings its own database, secret, issuer and platforms; the listeners, the clocks, the policy folder, the pool " +
		"and the log level can be set for it too, and its flags win over them.\n\n" +
		"## A minimal production configuration\n\n```sh\n" +
		"export CUTONCE_DATABASE_URL_FILE=/run/secrets/cutonce-database-url  # an empty Postgres database of its own\n" +
		"export CUTONCE_SECRET_FILE=/run/secrets/cutonce-secret              # openssl rand -hex 32, the same on every replica\n" +
		"export CUTONCE_PUBLIC_URL=https://cutonce.example                   # TLS ends in front of the service\n" +
		"export CUTONCE_LISTEN=0.0.0.0:8780\n" +
		"export CUTONCE_ISSUER_URL=https://issuer.example                    # its tokens name https://cutonce.example as audience\n" +
		"export CUTONCE_ISSUER_HUMAN_CLIENTS=cutonce-console                 # people sign in through these clients; others are agents\n" +
		"export CUTONCE_ISSUER_TENANT=agency-jp                              # or leave it out, and its tokens carry a tenant claim\n" +
		"export CUTONCE_SIGNIN_CLIENT_ID=cutonce-console                     # redirect URL: https://cutonce.example/sign-in/done\n" +
		"export CUTONCE_SIGNIN_CLIENT_SECRET_FILE=/run/secrets/cutonce-console\n" +
		"export CUTONCE_POLICY_DIR=/etc/cutonce/policies\n" +
		"export CUTONCE_ADS_URL=https://ads.example/api\n" +
		"export CUTONCE_ADS_TOKEN_FILE=/run/secrets/ads-token\n" +
		"export CUTONCE_ADS_SYSTEM=ads.example/agency-jp\n" +
		"cutonce serve\n```\n\n" +
		"- *Tokens.* An access token names the public URL as its audience and carries scopes (`ads:read`, `ads:budget`, `deploy:read`, " +
		"`deploy:rollback`), `groups` (who may decide, as the policy names them), `roles` ([roles](roles.md)), and the tenant. Other names " +
		"for the claims: `CUTONCE_ISSUER_CLAIM_…`.\n" +
		"- *Schema.* `serve` brings it up to date at its start; replicas wait for one another. Where its role may not change tables, set " +
		"`CUTONCE_MIGRATE=false` and run `cutonce migrate` first, with a role that may. Work is done as two roles, which the first migration creates or asks for ([runbook](runbook.md#serve-with-a-login-that-owns-nothing)). A database that holds somebody else's tables and none of ours is refused.\n" +
		"- *Probes.* `/healthz` says that the process runs, `/readyz` that the database answers and that the policy loaded here is the one in force.\n" +
		"- *Stop.* SIGTERM drains: no new connections, requests and sends under way are finished, waits are answered as things stand. A second signal ends at once; " +
		"what was being sent then reads as unknown and is settled by evidence. Give the supervisor more time than `CUTONCE_DRAIN`.\n" +
		"- *Policy.* A new policy is in force once a process starts with it; a process that loaded another one refuses to apply until it is restarted. " +
		"A superseded policy is put back only with `CUTONCE_POLICY_REINSTATE=true`: set it for that start, and not for good.\n" +
		"- *Container.* The image holds the program alone and runs as 65532 without a shell; it needs neither capabilities nor a writable root file system: " +
		"`docker run --read-only --cap-drop ALL …`. Set `CUTONCE_LISTEN=0.0.0.0:8780`. For a supervisor that can only run a program, " +
		"`/cutonce health` asks `/healthz`, and `/cutonce health http://127.0.0.1:8780/readyz` the other. " +
		"TLS authorities are built in; a bundle in its usual place, or where `SSL_CERT_FILE` says, replaces them.\n\n" +
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
