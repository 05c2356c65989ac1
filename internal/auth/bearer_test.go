package auth_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/fault"
)

func TestFromRequest(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		target  string
		headers []string
		want    string
		key     string
	}{
		{"a token", "/mcp", []string{"Bearer a.b.c"}, "a.b.c", ""},
		{"scheme in any case", "/mcp", []string{"bEARER a.b-c_d~+/="}, "a.b-c_d~+/=", ""},
		{"none", "/mcp", nil, "", "fault.unauthenticated.missing"},
		{"in the query only", "/mcp?access_token=a.b.c", nil, "", "fault.unauthenticated.missing"},
		{"two headers", "/mcp", []string{"Bearer a.b.c", "Bearer d.e.f"}, "", "fault.unauthenticated.header"},
		{"two headers, the same", "/mcp", []string{"Bearer a.b.c", "Bearer a.b.c"}, "", "fault.unauthenticated.header"},
		{"two in one header", "/mcp", []string{"Bearer a.b.c, Bearer d.e.f"}, "", "fault.unauthenticated.header"},
		{"another scheme", "/mcp", []string{"Basic YTpi"}, "", "fault.unauthenticated.header"},
		{"no scheme", "/mcp", []string{"a.b.c"}, "", "fault.unauthenticated.header"},
		{"scheme alone", "/mcp", []string{"Bearer"}, "", "fault.unauthenticated.header"},
		{"scheme and spaces", "/mcp", []string{"Bearer   "}, "", "fault.unauthenticated.header"},
		{"empty", "/mcp", []string{""}, "", "fault.unauthenticated.header"},
		{"control character", "/mcp", []string{"Bearer a.b\x01c"}, "", "fault.unauthenticated.header"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, c.target, nil)
			r.Header["Authorization"] = c.headers
			got, err := auth.FromRequest(r)
			if got != c.want {
				t.Errorf("token: got %q, want %q", got, c.want)
			}
			key := ""
			if err != nil {
				key = fault.From(err).Key
			}
			if key != c.key {
				t.Errorf("key: got %q, want %q", key, c.key)
			}
		})
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	challenge := auth.Challenge{
		ResourceMetadataURL: "https://cutonce.example/.well-known/oauth-protected-resource/mcp",
		ReadScopes:          []string{"ads:read", "deploy:read"},
	}
	const metadata = `resource_metadata="https://cutonce.example/.well-known/oauth-protected-resource/mcp"`
	missing := fault.New(fault.Unauthenticated, nil).WithKey("fault.unauthenticated.missing")
	stepUp := fault.New(fault.InsufficientScope, nil)
	stepUp.Scopes = []string{"ads:read", "ads:budget"}
	cases := []struct {
		name string
		c    auth.Challenge
		err  error
		want string
	}{
		{"no token", challenge, missing, `Bearer scope="ads:read deploy:read", ` + metadata},
		{"bad token", challenge, fault.New(fault.Unauthenticated, nil).WithKey("fault.unauthenticated.expired"),
			`Bearer error="invalid_token", scope="ads:read deploy:read", ` + metadata},
		{"bad header", challenge, fault.New(fault.Unauthenticated, nil).WithKey("fault.unauthenticated.header"),
			`Bearer error="invalid_request", scope="ads:read deploy:read", ` + metadata},
		{"step-up", challenge, stepUp, `Bearer error="insufficient_scope", scope="ads:read ads:budget", ` + metadata},
		{"another refusal", challenge, fault.New(fault.NotFound, nil), ""},
		{"not a fault", challenge, errors.New("broken"), ""},
		{"nothing", challenge, nil, ""},
		{"a value cannot break out", auth.Challenge{ResourceMetadataURL: "https://a\"\r\nX: y\\"}, missing, `Bearer resource_metadata="https://aX: y"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.c.Header(c.err); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	handler, err := auth.Metadata(auth.MetadataConfig{
		Resources: []string{"https://cutonce.example", "https://cutonce.example/mcp"},
		Issuers:   []string{"https://idp.example"}, Scopes: []string{"ads:read", "ads:budget"}, Name: "cutonce",
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	for path, resource := range map[string]string{
		"/.well-known/oauth-protected-resource":     "https://cutonce.example",
		"/.well-known/oauth-protected-resource/mcp": "https://cutonce.example/mcp",
	} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		err = json.NewDecoder(res.Body).Decode(&got)
		res.Body.Close()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		want := map[string]any{
			"resource": resource, "authorization_servers": []any{"https://idp.example"}, "resource_name": "cutonce",
			"scopes_supported": []any{"ads:read", "ads:budget"}, "bearer_methods_supported": []any{"header"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if got := res.Header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s: allowed origin: got %q, want *", path, got)
		}
	}
	for path, want := range map[string]int{"/.well-known/oauth-protected-resource/other": 404, "/": 404} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, res.StatusCode, want)
		}
	}
}

func TestMetadataURL(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]string{
		"https://h.example":          "https://h.example/.well-known/oauth-protected-resource",
		"https://h.example/":         "https://h.example/.well-known/oauth-protected-resource",
		"http://127.0.0.1:8080/mcp":  "http://127.0.0.1:8080/.well-known/oauth-protected-resource/mcp",
		"https://h.example/mcp#frag": "",
		"mcp":                        "",
	} {
		got, err := auth.MetadataURL(resource)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v, want %q", resource, got, err, want)
		}
	}
}
