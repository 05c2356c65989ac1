package target_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/target"
)

const token = "test-credential"

// caller calls one server, without connection reuse, so that nothing is sent twice by net/http itself.
type caller struct {
	url    string
	client *http.Client
}

func callerOf(url string) caller {
	return caller{url, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// sim is a platform behind a real server.
type sim struct {
	*target.Ads
	caller
}

func start(t *testing.T, change ...func(*target.AdsConfig)) sim {
	t.Helper()
	cfg := target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: token}, Seed: 7}
	for _, f := range change {
		f(&cfg)
	}
	ads := target.NewAds(cfg)
	server := httptest.NewServer(ads)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = ads.Close() }) // first, so that the server does not wait for held requests
	return sim{ads, callerOf(server.URL)}
}

func honourKeys(cfg *target.AdsConfig) { cfg.HonourKeys = true }

// got is a whole reply, or the error that came instead of one.
type got struct {
	status int
	header http.Header
	body   string
	err    error
}

func (s caller) send(method, path, body string, headers ...string) got {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return got{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return got{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(text), err}
}

func (s caller) get(path string) got { return s.send("GET", path, "") }

// set sends a budget change with a request key.
func (s sim) set(id, amount, currency, key string, headers ...string) got {
	body := `{"daily_budget":"` + amount + `","currency":"` + currency + `"}`
	if key != "" {
		headers = append(headers, "Idempotency-Key", key)
	}
	return s.send("PATCH", "/v1/campaigns/"+id, body, headers...)
}

// inBackground runs a request that will be held; the reply comes on the channel.
func inBackground(f func() got) <-chan got {
	reply := make(chan got, 1)
	go func() { reply <- f() }()
	return reply
}

func (s sim) wait(t *testing.T, stage target.Stage, op target.Op, key string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Wait(ctx, target.Event{Stage: stage, Match: target.Match{Op: op, Key: key}}, n); err != nil {
		t.Fatalf("waiting for %s of %s with key %q: %v", stage, op, key, err)
	}
}

func (s sim) script(t *testing.T, faults ...target.Fault) {
	t.Helper()
	if err := s.AddFault(faults...); err != nil {
		t.Fatal(err)
	}
}

func (g got) want(t *testing.T, status int, inBody string) {
	t.Helper()
	if g.err != nil || g.status != status || !strings.Contains(g.body, inBody) {
		t.Fatalf("got %d %q (error %v), want %d with %q", g.status, g.body, g.err, status, inBody)
	}
}

func (s sim) wantBudget(t *testing.T, id, want string) {
	t.Helper()
	if c, _ := s.Campaign(id); c.DailyBudget != want {
		t.Errorf("budget of %s: got %q, want %q", id, c.DailyBudget, want)
	}
}

func (s sim) wantTally(t *testing.T, key string, received, effects int) {
	t.Helper()
	want := target.Tally{Received: received, Effects: effects}
	if tally := s.CountersFor(key); tally != want {
		t.Errorf("tally of %q: got %+v, want %+v", key, tally, want)
	}
}

func decode[T any](t *testing.T, g got) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(g.body), &v); err != nil || g.err != nil {
		t.Fatalf("reply %q: %v, %v", g.body, g.err, err)
	}
	return v
}

func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}
