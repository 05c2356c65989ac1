package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const wellKnown = "/.well-known/oauth-protected-resource"

// MetadataConfig describes the protected resources that share one origin.
type MetadataConfig struct {
	// Resources are the resource identifiers, such as https://host and https://host/mcp. Each is also an audience.
	Resources []string
	// Issuers are the authorization servers that a client may get a token from.
	Issuers []string
	// Scopes are all the scopes that exist here.
	Scopes []string
	// Name is shown to the person who is asked to consent.
	Name string
	// Documentation is a page for developers; may be empty.
	Documentation string
}

// document is RFC 9728 §2.
type document struct {
	Resource      string   `json:"resource"`
	Issuers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported,omitempty"`
	Methods       []string `json:"bearer_methods_supported"`
	Name          string   `json:"resource_name,omitempty"`
	Documentation string   `json:"resource_documentation,omitempty"`
}

// MetadataURL is where the document of a resource is published: the well-known path goes between host and path.
func MetadataURL(resource string) (string, error) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.Fragment != "" || u.RawQuery != "" {
		return "", fmt.Errorf("%q cannot name a protected resource", resource)
	}
	return u.Scheme + "://" + u.Host + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), nil
}

// Metadata serves RFC 9728 documents at /.well-known/oauth-protected-resource and, for a resource with a path, at that
// path below it. Mount it at both; another path answers 404. The documents are public, so any origin may read them.
func Metadata(cfg MetadataConfig) (http.Handler, error) {
	documents := map[string][]byte{}
	for _, resource := range cfg.Resources {
		at, err := MetadataURL(resource)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(document{resource, cfg.Issuers, cfg.Scopes, []string{"header"}, cfg.Name, cfg.Documentation})
		if err != nil {
			return nil, fmt.Errorf("writing the metadata of %s: %w", resource, err)
		}
		documents[at[strings.Index(at, wellKnown):]] = body
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveDocument(w, r, documents) }), nil
}

func serveDocument(w http.ResponseWriter, r *http.Request, documents map[string][]byte) {
	body, known := documents[r.URL.EscapedPath()]
	switch {
	case !known:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(body)
	}
}
