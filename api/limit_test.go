package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/internal/auth"
)

// limited serves a caller sixty units a minute, by a clock that stands still.
func limited(d *api.Deps) {
	at := time.Now()
	d.Limit = auth.NewLimiter(auth.Limits{Actor: 60, Now: func() time.Time { return at }}).Call
}

func TestLimitOfACaller(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDeps(limited))
	for n := range 12 { // a prepare is five units
		r.post("agent", previewsPath, raise(n, 10500)).want(t, http.StatusCreated, "")
	}
	got := r.post("agent", previewsPath, raise(12, 10500))
	got.want(t, http.StatusTooManyRequests, "rate_limited")
	if retry := got.header.Get("Retry-After"); retry != "5" || got.at("retryable") != true || got.text("next") != "retry_later" || got.text("data", "limit") != "actor" {
		t.Errorf("got Retry-After %q and %s, want 5 seconds and that it may be repeated", retry, got.raw)
	}
	got = r.get("agent", "/v1/previews")
	got.want(t, http.StatusTooManyRequests, "rate_limited")
	if retry := got.header.Get("Retry-After"); retry != "1" {
		t.Errorf("a read: got Retry-After %q, want 1", retry)
	}
	r.get("kim", "/v1/approvals").want(t, http.StatusOK, "")
	r.get("", "/healthz").want(t, http.StatusOK, "")
}

func TestLimitOfAnActionAndOfOpenChanges(t *testing.T) {
	t.Parallel()
	at := time.Now()
	limiter := auth.NewLimiter(auth.Limits{Action: 10, Now: func() time.Time { return at }})
	r := newRig(t, func(s *settings) { s.limit, s.maxOpen = limiter.Prepare, 9 })
	for n := range 9 {
		r.post("agent", previewsPath, raise(n, 10500)).want(t, http.StatusCreated, "")
	}
	got := r.post("agent", previewsPath, raise(9, 10500))
	got.want(t, http.StatusConflict, "too_many_open")
	arguments := fmt.Sprint(got.at("next_arguments"))
	if got.text("next_tool") != "changes_find" || arguments != "map[status:approved]" || got.header.Get("Retry-After") == "" || got.at("retryable") != true {
		t.Errorf("got %s, want where to look and when to come again", got.raw)
	}
	got = r.post("agent", previewsPath, raise(9, 10500)) // the refused one counts: it had asked the platform
	got.want(t, http.StatusTooManyRequests, "rate_limited")
	if got.text("data", "limit") != "action" || got.header.Get("Retry-After") != "6" {
		t.Errorf("got %s, want the action's limit and 6 seconds", got.raw)
	}
	r.post("agent", previewsPath, raise(0, 10500)).want(t, http.StatusTooManyRequests, "rate_limited")
}
