package connector_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/connectortest"
	"github.com/cutonce/cutonce/internal/actor"
)

// flagService is the target of the example: one switch, with a version, a log by key, and permissions.
type flagService struct {
	mu      sync.Mutex
	state   string
	version int
	retired bool
	log     map[string]int
}

func (s *flagService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch path := r.URL.Path; {
	case path == "/flags":
		answer(w, http.StatusOK, map[string]any{"dark-mode": s.state})
	case path == "/flags/dark-mode" && r.Method == http.MethodPut:
		s.set(w, r)
	case path == "/flags/dark-mode":
		answer(w, http.StatusOK, s.shown())
	case strings.HasPrefix(path, "/log/"):
		key := strings.TrimPrefix(path, "/log/")
		changes := make([]string, s.log[key])
		answer(w, http.StatusOK, map[string]any{"key": key, "changes": changes})
	case strings.HasPrefix(path, "/may/alice@example.com/"):
		answer(w, http.StatusOK, map[string]any{"allowed": true, "reason": "granted"})
	default:
		answer(w, http.StatusNotFound, map[string]any{"error": "unknown"})
	}
}

func (s *flagService) shown() map[string]any {
	return map[string]any{"flag": "dark-mode", "state": s.state, "version": fmt.Sprint("v", s.version)}
}

func (s *flagService) set(w http.ResponseWriter, r *http.Request) {
	var body struct{ State string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "unreadable"})
		return
	}
	switch {
	case r.Header.Get("If-Match") != fmt.Sprint("v", s.version):
		answer(w, http.StatusPreconditionFailed, map[string]any{"error": "moved"})
	case s.retired:
		answer(w, http.StatusUnprocessableEntity, map[string]any{"error": "retired"})
	default:
		s.state = body.State
		s.version++
		s.log[r.Header.Get("Idempotency-Key")]++
		answer(w, http.StatusOK, s.shown())
	}
}

func answer(w http.ResponseWriter, status int, document any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

// TestTheExampleKeepsThePromise runs the whole suite on the connector that docs/wrap-in-go.md shows.
func TestTheExampleKeepsThePromise(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Subject{New: newFlagRig})
}

func newFlagRig(t *testing.T) connectortest.Rig {
	t.Helper()
	s := &flagService{state: "off", log: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	locked := func(do func()) { s.mu.Lock(); defer s.mu.Unlock(); do() }
	return connectortest.Rig{
		Address: strings.TrimPrefix(server.URL, "http://"),
		At:      newFlags,
		Actor:   actor.Actor{Tenant: "t1", Kind: actor.Human, Issuer: "https://issuer.example", Subject: "alice@example.com"},
		Action:  "flag_set", Input: connector.Input{"flag": "dark-mode", "state": "on", "reason": "the suite"},
		Effects: func(key string) (n int) { locked(func() { n = s.log[key] }); return n },
		State:   func() (all string) { locked(func() { all = fmt.Sprint(s.state, s.version, s.log) }); return all },
		Move:    func(*testing.T) { locked(func() { s.version++ }) },
		Refuse:  func(*testing.T) { locked(func() { s.retired = true }) },
		Finds:   map[string]connector.Input{"flags_find": {}},
		Hollow:  []string{`{"changes":[]}`, `{"key":"other","changes":[]}`, `{"key":"connectortest-key-1"}`, `{"key":"connectortest-key-1","changes":null}`},
	}
}

func newFlags(t *testing.T, address string) connector.Connector {
	t.Helper()
	sender, err := connector.NewSender(connector.HTTPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := connector.NewReader(connector.HTTPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	return &flags{base: "http://" + address, sender: sender, reader: reader}
}

// TestTheGuideShowsTheExampleAsItIs: what docs/wrap-in-go.md quotes is the code that was just tested.
func TestTheGuideShowsTheExampleAsItIs(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/wrap-in-go.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(guide), "<!-- connector/example_test.go -->\n```go\n")
	quoted, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed || quoted != string(code) {
		t.Error("docs/wrap-in-go.md does not show connector/example_test.go as it is: copy the file into its fence")
	}
}
