package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/metrics"
	"github.com/cutonce/cutonce/preview"
)

// What is refused for being one too many is counted by what was used up, and what is served is not.
func TestRefusedCallsAreCounted(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{Tenants: []string{"acme"}, Now: time.Now, Backlog: func(context.Context) (metrics.Backlog, error) { return metrics.Backlog{}, nil }, Pool: func() metrics.Pool { return metrics.Pool{} }})
	at := time.Now()
	l := limits{auth.NewLimiter(auth.Limits{Actor: 10, Action: 10, Now: func() time.Time { return at }}), m}
	bot := actor.Actor{Tenant: "acme", Kind: actor.Agent, Issuer: "https://id.example", Subject: "bot"}
	refused := 0
	for range 12 {
		if errors.Is(l.Call(bot, actor.Read), fault.RateLimited) {
			refused++
		}
		_ = l.Prepare(bot, "budget_change")
	}
	tooManyOpen(m, "acme", &preview.TooManyOpen{Limit: 1})
	tooManyOpen(m, "acme", errors.New("another error"))
	if refused != 2 {
		t.Errorf("got %d refused, want 2 of 12", refused)
	}
	text := scraped(t, m)
	for _, want := range []string{
		`cutonce_limited_total{limit="actor",tenant="acme"} 2`, `cutonce_limited_total{limit="action",tenant="acme"} 2`,
		`cutonce_limited_total{limit="open",tenant="acme"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("got no line %s", want)
		}
	}
}

func scraped(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
