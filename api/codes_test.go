package api_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
)

// row is what one of the four sources says of a code.
type row struct {
	Kind      fault.Kind
	HTTP      int
	Retryable bool
	Next      fault.Next
}

// The codes are written down in four places: package fault, this package's table, openapi.yaml and docs/errors.md.
func TestCodesAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	want := map[string]row{}
	for code, rule := range fault.Codes() {
		status := api.Status(code)
		if http.StatusText(status) == "" || status < 400 {
			t.Errorf("%s: got HTTP status %d, want one of a refusal", code, status)
		}
		want[string(code)] = row{Kind: rule.Kind, HTTP: status, Retryable: rule.Retryable, Next: rule.Next}
	}
	if diff := cmp.Diff(want, documented(t)); diff != "" {
		t.Errorf("docs/errors.md (-code +docs):\n%s", diff)
	}
	statuses := map[string]int{}
	for code, r := range want {
		statuses[code] = r.HTTP
	}
	if diff := cmp.Diff(statuses, openAPICodes(t)); diff != "" {
		t.Errorf("openapi.yaml (-code +openapi.yaml):\n%s", diff)
	}
	var enum []string
	for _, code := range under(document(t), "components", "schemas", "Code", "enum").([]any) {
		enum = append(enum, code.(string))
	}
	slices.Sort(enum)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), enum); diff != "" {
		t.Errorf("openapi.yaml's enum (-code +openapi.yaml):\n%s", diff)
	}
}

var line = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| (\\d+) \\| (isError|HTTP 401|HTTP 403) \\| (yes|no) \\| `([a-z_]+)` \\| (.+) \\| (.+) \\|$")

// documented reads docs/errors.md.
func documented(t *testing.T) map[string]row {
	t.Helper()
	raw, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]row{}
	for _, m := range line.FindAllStringSubmatch(string(raw), -1) {
		if _, twice := all[m[1]]; twice {
			t.Errorf("docs/errors.md has %s twice", m[1])
		}
		status, _ := strconv.Atoi(m[3])
		all[m[1]] = row{Kind: fault.Kind(m[2]), HTTP: status, Retryable: m[5] == "yes", Next: fault.Next(m[6])}
		if challenged := m[4] != "isError"; challenged != (m[1] == "unauthenticated" || m[1] == "insufficient_scope") {
			t.Errorf("docs/errors.md says %s of %s over MCP", m[4], m[1])
		}
	}
	return all
}

// openAPICodes reads the responses' lists of codes.
func openAPICodes(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	for name, response := range under(document(t), "components", "responses").(map[string]any) {
		status, err := strconv.Atoi(toText(under(response, "x-status")))
		if err != nil {
			t.Fatalf("%s: x-status: %v", name, err)
		}
		for _, code := range under(response, "x-codes").([]any) {
			all[code.(string)] = status
		}
	}
	return all
}

func toText(v any) string {
	switch n := v.(type) {
	case uint64:
		return strconv.FormatUint(n, 10)
	case int64:
		return strconv.FormatInt(n, 10)
	case int:
		return strconv.Itoa(n)
	}
	return ""
}

// Each response stands under the one status that its codes have.
func TestOpenAPIUsesEachResponseUnderItsStatus(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for path, item := range under(doc, "paths").(map[string]any) {
		for method, op := range item.(map[string]any) {
			for status, response := range under(op, "responses").(map[string]any) {
				ref, _ := under(response, "$ref").(string)
				name := strings.TrimPrefix(ref, "#/components/responses/")
				if want := toText(under(doc, "components", "responses", name, "x-status")); ref != "" && status != want {
					t.Errorf("%s %s: %s stands under %s, want %s", method, path, name, status, want)
				}
			}
		}
	}
}

func TestEveryCodeHasATitleAndASentence(t *testing.T) {
	t.Parallel()
	all, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range catalog.Languages {
		for code := range fault.Codes() {
			for _, key := range []string{"problem." + string(code), "fault." + string(code)} {
				if got := all.In(lang).T(key, nil); got == key {
					t.Errorf("%s: there is no text %s", lang, key)
				}
			}
		}
	}
}
