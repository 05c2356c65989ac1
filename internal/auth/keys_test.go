package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/fault"
)

func (r *rig) wantRequests(want int64) {
	r.t.Helper()
	if got := r.server.requests.Load(); got != want {
		r.t.Errorf("requests at the issuer: got %d, want %d", got, want)
	}
}

// wantUnreachable fails the test unless the token could not be judged.
func (r *rig) wantUnreachable(raw string) {
	r.t.Helper()
	_, err := r.verify(raw)
	f := fault.From(err)
	if !errors.Is(err, auth.ErrIssuerUnreachable) || f.Key != "fault.internal.issuer" || !f.Retryable || f.RetryAfter <= 0 {
		r.t.Errorf("got %v, want a retryable fault caused by an unreachable issuer", err)
	}
}

func TestKeysAreFetchedOnceAndLazily(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	r.wantRequests(0)
	for i := range 50 {
		r.wantAccepted(r.token(set("jti", i)))
	}
	r.wantRequests(1)
}

func TestFloodOfUnknownKeysCostsTheIssuerOneRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	r.wantAccepted(r.token())
	r.clock.advance(11 * time.Second)
	stranger := newSigner(t, "", "ES256")
	var wg sync.WaitGroup
	for i := range 200 {
		stranger.kid = fmt.Sprintf("flood-%d", i)
		raw := stranger.sign(t, r.claims())
		wg.Go(func() { r.wantRefused(raw, "key") })
	}
	wg.Wait()
	r.wantRequests(2)
	r.wantAccepted(r.token(set("jti", "still")))
	r.wantRequests(2)
}

func TestUnknownIssuersAndAlgorithmsCostNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	r.wantRefused(r.token(set("iss", "https://evil.example")), "issuer")
	r.wantRefused(swapHeader(t, r.token(), "HS256"), "algorithm")
	r.wantRequests(0)
}

func TestRotatedKeyWorksAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	r.wantAccepted(r.token())
	next := newSigner(t, "k2", "EdDSA")
	r.server.publish(t, r.signer, next)
	r.clock.advance(11 * time.Second)
	(&rig{t: t, verifier: r.verifier}).wantAccepted(next.sign(t, r.claims()))
	r.wantAccepted(r.token(set("jti", 2)))
}

func TestRemovedKeyStopsWorkingInTime(t *testing.T) {
	t.Parallel()
	for name, cacheFor := range map[string]time.Duration{"cached": time.Hour, "not cached": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "ES256", func(c *auth.Config) { c.CacheFor = cacheFor })
			raw := r.token()
			r.wantAccepted(raw)
			r.server.publish(t, newSigner(t, "k2", "ES256"))
			r.clock.advance(time.Minute)
			r.wantAccepted(raw) // within KeysRefresh
			r.clock.advance(4 * time.Minute)
			r.wantRefused(raw, "key") // at KeysRefresh, also after silence
		})
	}
}

func TestKeysAreRenewedWhileInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	r.wantAccepted(r.token())
	<-r.server.asked
	r.clock.advance(3 * time.Minute)
	r.wantAccepted(r.token()) // past half of KeysRefresh: asked for in the background
	select {
	case <-r.server.asked:
	case <-time.After(10 * time.Second):
		t.Error("the keys were not renewed")
	}
}

func TestIssuerDown(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	r.server.setDown(true)
	r.wantUnreachable(r.token())
	r.server.setDown(false)
	r.wantUnreachable(r.token()) // not asked again so soon
	r.wantRequests(1)
	r.clock.advance(11 * time.Second)
	raw := r.token()
	r.wantAccepted(raw)

	r.server.setDown(true)
	r.clock.advance(6 * time.Minute)
	r.wantAccepted(raw) // an outage of the issuer is not ours at once
	r.clock.advance(55 * time.Minute)
	r.wantUnreachable(r.token()) // but not for ever: a removed key would live on
}

func TestCallerThatHangsUpDoesNotStopTheFetch(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = r.verifier.Verify(gone, r.token())
	select {
	case <-r.server.asked:
	case <-time.After(10 * time.Second):
		t.Fatal("the issuer was not asked")
	}
	r.wantAccepted(r.token())
	r.wantRequests(1)
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	discover := func(c *auth.Config) { c.Issuers[0].JWKSURL = "" }
	r := newRig(t, "ES256", discover)
	r.wantAccepted(r.token())
	r.wantRequests(2)

	// Metadata of another issuer must not lend its keys.
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":"https://other.example","jwks_uri":%q}`, r.server.URL+"/keys")
	}))
	t.Cleanup(liar.Close)
	lied := newRig(t, "ES256", func(c *auth.Config) { c.Issuers = []auth.Issuer{{URL: liar.URL}} })
	lied.wantUnreachable(r.signer.sign(t, r.claims(set("iss", liar.URL))))
}

func TestKeyFetchFollowsNoRedirectAndReadsNoFlood(t *testing.T) {
	t.Parallel()
	home := newServer(t, newSigner(t, "k1", "ES256"))
	for name, handler := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, home.URL+"/keys", http.StatusFound) },
		"2 MiB":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"keys":[],"pad":"%2097152d"}`, 0) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no keys":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			r := newRig(t, "ES256", func(c *auth.Config) { c.Issuers = []auth.Issuer{{URL: server.URL, JWKSURL: server.URL}} })
			r.wantUnreachable(r.signer.sign(t, r.claims(set("iss", server.URL))))
		})
	}
	if got := home.requests.Load(); got != 0 {
		t.Errorf("requests at the redirect's target: got %d, want 0", got)
	}
}

func TestCacheHonoursExpiryExactly(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256", func(c *auth.Config) { c.CacheFor = time.Hour })
	raw := r.token(set("exp", r.clock.now().Add(10*time.Second).Unix()))
	a := r.wantAccepted(raw)
	a.Scopes[0] = "everything" // a caller's change stays its own
	r.clock.advance(40*time.Second - 1)
	for range 2 {
		a = r.wantAccepted(raw)
		if got := a.Scopes[0]; got != "ads:read" {
			t.Errorf("scope from the cache: got %q, want ads:read", got)
		}
		a.Scopes[0] = "everything"
	}
	r.clock.advance(1)
	r.wantRefused(raw, "expired")
}

func BenchmarkVerify(b *testing.B) {
	for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
		for name, cacheFor := range map[string]time.Duration{"fresh": -1, "remembered": time.Minute} {
			b.Run(alg+"/"+name, func(b *testing.B) {
				r := newRig(b, alg, func(c *auth.Config) { c.CacheFor = cacheFor })
				raw := r.token()
				b.ReportAllocs()
				for b.Loop() {
					if _, err := r.verifier.Verify(b.Context(), raw); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
