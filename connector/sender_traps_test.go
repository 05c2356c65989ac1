package connector

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Each test of this file shows what a plain client of net/http does, and then a Sender on the same case.

// plainPost is a call as most clients make it.
func plainPost(t *testing.T, client *http.Client, address string, body io.Reader) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "key-1")
	resp, err := client.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return resp, err
}

func TestANilBodyIsRepeatedByNetHTTP(t *testing.T) {
	t.Parallel()
	naive := serveDying(t)
	client := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		if _, err := plainPost(t, client, naive.url, nil); err != nil {
			t.Fatalf("the plain client failed: %v", err)
		}
	}
	if got := naive.executions.Load(); got != 3 {
		t.Errorf("two calls without a body gave %d executions, want 3 (the trap)", got)
	}
	ours := serveDying(t)
	s := sender(t, HTTPConfig{})
	for range 2 {
		out := keyed(ours.url, "")
		out.Body = nil
		if _, err := s.Send(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
	if got := ours.executions.Load(); got != 2 {
		t.Errorf("got %d executions of two sends without a body, want 2", got)
	}
}

func TestARedirectIsASecondEffectForAPlainClient(t *testing.T) {
	t.Parallel()
	var effects atomic.Int32
	effect := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { effects.Add(1) })
	there := httptest.NewServer(effect)
	t.Cleanup(there.Close)
	// A target that has done what it was asked for, and then names where the answer is.
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		effect(w, r)
		http.Redirect(w, r, there.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(here.Close)
	if _, err := plainPost(t, &http.Client{}, here.URL, http.NoBody); err != nil {
		t.Fatal(err)
	}
	if got := effects.Swap(0); got != 2 {
		t.Errorf("one call of a plain client had %d effects, want 2 (the trap)", got)
	}
	reply, err := sender(t, HTTPConfig{}).Send(t.Context(), keyed(here.URL, `{}`))
	if got := effects.Load(); got != 1 || err != nil || reply.Status != http.StatusTemporaryRedirect {
		t.Errorf("got %d effects, status %d, %v, want 1 and the redirect itself", got, reply.Status, err)
	}
}

// TestAProxyThatRefusesMayHavePassedItOn: "502" and a closed connection are the proxy's words, and the effect took place.
func TestAProxyThatRefusesMayHavePassedItOn(t *testing.T) {
	t.Parallel()
	var effects atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		effects.Add(1) // at the target behind it
		if r.Header.Get("X-Drop") != "" {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	through := HTTPConfig{Proxy: mustURL(t, proxy.URL)}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through.Proxy)}}
	resp, err := plainPost(t, client, "http://target.example/", http.NoBody)
	if err != nil || resp.StatusCode != http.StatusBadGateway || effects.Swap(0) != 1 {
		t.Fatalf("the plain client got %v, %v; it was expected to be told that the gateway failed, after the effect (the trap)", resp, err)
	}
	dropped := keyed("http://target.example/", `{}`)
	dropped.Header.Set("X-Drop", "1")
	_, err = sender(t, through).Send(t.Context(), dropped)
	wantClass(t, err, ClassUnknown)
	if got := effects.Load(); got != 1 {
		t.Errorf("got %d effects, want the one that nobody may call not sent", got)
	}
}
