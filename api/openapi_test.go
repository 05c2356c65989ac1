package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/api"
)

// described is openapi.yaml as the tests hold exchanges up to it: objects that name their members are closed, so that an
// answer with a member that is not described fails. (Published, they stay open: members may be added.)
var described = sync.OnceValues(func() (routers.Router, error) {
	for _, media := range []string{"application/x-ndjson", "text/csv"} { // tests read these themselves
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	var doc any
	if err := yaml.Unmarshal(api.OpenAPI, &doc); err != nil {
		return nil, err
	}
	closeObjects(doc)
	delete(doc.(map[string]any), "servers") // the tests' own hosts
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	parsed, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(parsed)
})

func closeObjects(value any) {
	switch v := value.(type) {
	case map[string]any:
		_, named := v["properties"].(map[string]any)
		if _, said := v["additionalProperties"]; named && !said && v["type"] != nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

// checkExchange holds one exchange up to openapi.yaml: every response, and every request that was not refused as such.
func checkExchange(t testing.TB, req *http.Request, sent []byte, got reply) {
	t.Helper()
	router, err := described()
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	route, params, err := router.FindRoute(req)
	if err != nil {
		checkUnrouted(t, got)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(sent))
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true,
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: options}
	if got.status < 300 {
		if err := openapi3filter.ValidateRequest(req.Context(), in); err != nil {
			t.Errorf("%s %s was answered %d, but openapi.yaml refuses it: %v", req.Method, req.URL, got.status, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.status, Header: got.header, Options: options}
	out.SetBodyBytes(got.raw)
	if err := openapi3filter.ValidateResponse(req.Context(), out); err != nil {
		t.Errorf("%s %s: the answer (%d) is not as openapi.yaml says: %v\n%s", req.Method, req.URL, got.status, err, got.raw)
	}
}

// checkUnrouted is for what no operation describes: the router's own refusals.
func checkUnrouted(t testing.TB, got reply) {
	t.Helper()
	if got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
		t.Errorf("got %d from what openapi.yaml does not describe, want 404 or 405", got.status)
	}
	if media := got.header.Get("Content-Type"); media != "application/problem+json" || !bytes.Contains(got.raw, []byte(`"type":"urn:cutonce:error:`)) {
		t.Errorf("got %d %s %s, want a problem", got.status, media, got.raw)
	}
}

// document is openapi.yaml, read plainly.
func document(t testing.TB) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(api.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func under(value any, path ...string) any {
	for _, name := range path {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return value
}

func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		t.Errorf("openapi.yaml: %v", err)
	}
}

func TestOpenAPIDescribesExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for path, item := range under(document(t), "paths").(map[string]any) {
		for method, op := range item.(map[string]any) {
			want[strings.ToUpper(method)+" "+path] = queryOf(t, op)
		}
	}
	if diff := cmp.Diff(want, api.Routes()); diff != "" {
		t.Errorf("openapi.yaml and the routes differ (-openapi.yaml +routes):\n%s", diff)
	}
}

func TestPrefixesCoverTheRoutes(t *testing.T) {
	t.Parallel()
	for route := range api.Routes() {
		_, path, _ := strings.Cut(route, " ")
		if !slices.ContainsFunc(api.Prefixes(), func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			t.Errorf("%s is under no prefix of %v", path, api.Prefixes())
		}
	}
}

// queryOf lists the query parameters of an operation in their order.
func queryOf(t *testing.T, op any) []string {
	t.Helper()
	names := []string{}
	parameters, _ := under(op, "parameters").([]any)
	for _, p := range parameters {
		name := strings.TrimPrefix(under(p, "$ref").(string), "#/components/parameters/")
		full := under(document(t), "components", "parameters", name)
		if under(full, "in") == "query" {
			names = append(names, under(full, "name").(string))
		}
	}
	return names
}

// The bodies are checked by the files in schema/; what openapi.yaml says of them must be the same but for descriptions.
func TestOpenAPIDescribesExactlyTheBodies(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(os.DirFS("schema"), "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v, want the schemas", files, err)
	}
	names := map[string]string{
		"none.json": "Nothing", "approval_request.json": "ApprovalRequest", "cancel.json": "Cancel", "decision.json": "Decision",
		"resolution.json": "Resolution", "undo.json": "Undo", "freeze.json": "Freezing", "removal.json": "Removing",
	}
	for _, file := range files {
		raw, err := os.ReadFile("schema/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		delete(want, "$schema")
		if file == "param.json" {
			continue // a query parameter, not a body
		}
		got := plain(t, under(document(t), "components", "schemas", names[file]))
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Errorf("%s (-file +openapi.yaml):\n%s", file, diff)
		}
	}
}

// plain is a schema through JSON, without descriptions.
func plain(t *testing.T, schema any) any {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	strip(out)
	return out
}

func strip(value any) {
	m, ok := value.(map[string]any)
	if !ok {
		return
	}
	if _, text := m["description"].(string); text {
		delete(m, "description")
	}
	for _, inner := range m {
		strip(inner)
	}
}
