package metrics_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/metrics"
)

// scene is metrics over a database that may fail, at a time that the test sets.
type scene struct {
	now     time.Time
	backlog metrics.Backlog
	err     error
	reads   int
	*metrics.Metrics
}

func newScene() *scene {
	s := &scene{now: time.Unix(1_800_000_000, 0)}
	s.Metrics = metrics.New(metrics.Config{
		Version: "1.2.3", Tenants: []string{"acme", "rival"},
		Backlog: func(context.Context) (metrics.Backlog, error) { s.reads++; return s.backlog, s.err },
		Pool:    func() metrics.Pool { return metrics.Pool{Max: 16, Acquired: 3, Waited: 7} },
		Now:     func() time.Time { return s.now },
	})
	return s
}

func (s *scene) scrape(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d, %v", w.Code, err)
	}
	return string(text)
}

func has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

func TestCountsAndGauges(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.backlog = metrics.Backlog{Pending: 2, PendingAge: 90 * time.Second, Unknown: 1, UnknownAge: 5 * time.Second, NeedsOperator: 1,
		SealLag: 7500 * time.Millisecond, Restoring: true, Held: 3, FoundEnded: 2,
		Waiting: map[string]metrics.Waiting{"acme": {Pending: 2}, "whoever": {NeedsOperator: 1}, "else": {NeedsOperator: 2}}}
	s.Count("acme", "budget_change", "applied")
	s.Count("acme", "budget_change", "applied")
	s.Count("whoever", "budget_change", "applied")
	s.Count("other", "budget_change", "applied")
	s.Sent("budget_change", "unknown", 20*time.Millisecond)
	s.Limited("acme", "actor")
	s.Limited("whoever", "open")
	has(t, s.scrape(t),
		`cutonce_changes_total{action="budget_change",outcome="applied",tenant="acme"} 2`,
		`cutonce_changes_total{action="budget_change",outcome="applied",tenant="other"} 2`,
		`cutonce_waiting{for="pending",tenant="acme"} 2`, `cutonce_waiting{for="unknown",tenant="rival"} 0`,
		`cutonce_waiting{for="needs_operator",tenant="other"} 3`,
		`cutonce_target_send_seconds_count{action="budget_change",class="unknown"} 1`,
		`cutonce_limited_total{limit="actor",tenant="acme"} 1`, `cutonce_limited_total{limit="open",tenant="other"} 1`,
		`cutonce_pending 2`, `cutonce_pending_oldest_seconds 90`, `cutonce_unknown 1`, `cutonce_unknown_oldest_seconds 5`,
		`cutonce_needs_operator 1`, `cutonce_seal_lag_seconds 7.5`, `cutonce_restoring 1`, `cutonce_restore_held 3`, `cutonce_restore_found_ended 2`,
		`cutonce_contradicted 0`, `cutonce_backlog_age_seconds 0`,
		`cutonce_pool_connections{state="acquired"} 3`, `cutonce_pool_waits_total 7`, `cutonce_build_info{version="1.2.3"} 1`)
}

// A dead database must not look like an empty backlog.
func TestADeadDatabaseIsNoZero(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.err = errors.New("down")
	if text := s.scrape(t); strings.Contains(text, "cutonce_unknown ") {
		t.Error("an unread backlog is reported")
	}
	s.err, s.backlog.Unknown = nil, 4
	has(t, s.scrape(t), `cutonce_unknown 4`)
	s.err, s.now = errors.New("down"), s.now.Add(time.Minute)
	has(t, s.scrape(t), `cutonce_unknown 4`, `cutonce_backlog_age_seconds 60`)
}

func TestScrapersShareAReading(t *testing.T) {
	t.Parallel()
	s := newScene()
	for range 3 {
		s.scrape(t)
	}
	if s.reads != 1 {
		t.Errorf("got %d readings, want one", s.reads)
	}
	s.now = s.now.Add(5 * time.Second)
	if s.scrape(t); s.reads != 2 {
		t.Errorf("got %d readings, want another after a while", s.reads)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := newScene()
	h := s.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.now = s.now.Add(30 * time.Millisecond)
		if r.URL.Path == "/teapot" {
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
		}
		_ = http.NewResponseController(w).Flush()
	}), func(*http.Request) string { return "/route" }, func() time.Time { return s.now })
	for _, request := range []string{"/teapot", "/"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", request, nil))
	}
	has(t, s.scrape(t),
		`cutonce_http_request_seconds_count{method="other",route="/route",status="418"} 1`,
		`cutonce_http_request_seconds_count{method="other",route="/route",status="200"} 1`)
}
