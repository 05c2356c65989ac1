package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

func innerAddresses(w *world) {
	w.quiet(func() {
		for _, setting := range []string{
			"CUTONCE_ISSUER2_JWKS_URL=http://169.254.169.254/latest/meta-data/", "CUTONCE_ISSUER2_JWKS_URL=file:///etc/passwd", "CUTONCE_ISSUER3_URL=http://10.0.0.1/",
			"CUTONCE_ISSUER3_URL=http://issuer.example", "CUTONCE_ISSUER3_URL=https://user:password@issuer.example", "CUTONCE_ADS_URL=http://169.254.169.254/",
			"CUTONCE_ADS_URL=file:///etc/passwd", "CUTONCE_ADS_URL=gopher://127.0.0.1:25/", "CUTONCE_ADS_URL=https://user:password@ads.example", "CUTONCE_PUBLIC_URL=http://cutonce.example",
			"CUTONCE_MCP_ALLOWED_ORIGINS=*", "CUTONCE_MCP_ALLOWED_ORIGINS=null", "CUTONCE_SIGNIN_ISSUER=https://elsewhere.example", "CUTONCE_DEV=true",
			"CUTONCE_METRICS_PROFILE=yes please",
		} {
			r := w.replica()
			r.Env = append(r.Env, setting)
			p, err := w.f.Launch(r)
			w.must(err)
			w.onClose(p.Kill)
			select {
			case <-p.Done():
			case <-time.After(patience / 4):
				w.fail("the service starts with %s", setting)
			}
			log := p.Log()
			if !strings.Contains(log, "\ncutonce: ") && !strings.HasPrefix(log, "cutonce: ") || strings.Contains(log, "user:password") {
				w.fail("the refusal of %s is not said, or says too much: %s", setting, log)
			}
		}
	})
}

func platformAstray(w *world) {
	ready := w.ready()
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	before := w.elsewhere.called()
	counters := w.picture().Target
	w.recorder.leadAstray(w.elsewhere.URL)
	defer w.recorder.leadAstray("")
	w.quiet(func() {
		r, err := w.caller(w.agent()).Prepare(w.ctx, campaign, small, "")
		w.must(err)
		want(w, "preparing what is elsewhere ("+r.Message+")", r.HTTP/100, 5)
	})
	r, err := w.caller(w.agent()).Apply(w.ctx, ready.PreviewID)
	w.must(err)
	if r.Status == "applied" {
		w.fail("a redirect passes for an effect")
	}
	want(w, "calls to the other server", w.elsewhere.called(), before)
	want(w, "the platform's counters", w.picture().Target, counters)
	w.recorder.leadAstray("")
	other := w.ready()
	w.applies(other.PreviewID)
}

func issuerAstray(w *world) {
	led, err := newProvider(fleet.Tenant)
	w.must(err)
	w.onClose(led.Close)
	led.moved = w.elsewhere.URL + "/keys"
	before := w.elsewhere.called()
	w.apart("CUTONCE_ISSUER3_URL="+led.URL, "CUTONCE_ISSUER3_TENANTS="+fleet.Tenant)
	w.quiet(func() {
		for _, key := range []*provider{w.elsewhere.provider, led} {
			r := w.send("GET", "/v1/previews", "", bearer(key.sign(w.agent().with("iss", led.URL)))...)
			want(w, "a token by keys from elsewhere ("+r.text+")", r.status, http.StatusServiceUnavailable, http.StatusUnauthorized)
		}
	})
	want(w, "calls to the other server", w.elsewhere.called(), before)
	led.mu.Lock()
	asked := led.asked
	led.mu.Unlock()
	if asked == 0 {
		w.fail("the issuer was not asked at all")
	}
}

// slowly holds connections open, and has honest calls answered meanwhile.
func slowly(w *world) {
	const connections = 40
	token := w.token(w.agent())
	ready := w.ready()
	began := time.Now()
	var all sync.WaitGroup
	failures := make(chan string, 2*connections)
	w.quiet(func() {
		for i := range connections {
			all.Go(func() {
				limit, opening := 15*time.Second, "GET /v1/previews HTTP/1.1\r\nHost: cutonce.example\r\nX-Slow: "
				if i%2 == 1 {
					limit = 45 * time.Second
					opening = "POST /v1/previews/" + ready.PreviewID + "/apply HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
						"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
				}
				if open := w.dribbles(opening, limit); open {
					failures <- fmt.Sprintf("a connection that began with %.20q was still open after %s", opening, limit)
				}
			})
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		for served := 0; ; served++ {
			want(w, "an honest call meanwhile", w.send("GET", "/v1/previews", "", bearer(token)...).status, http.StatusOK)
			select {
			case <-ended:
				if len(failures) > 0 {
					w.fail("%s", <-failures)
				}
				if time.Since(began) < 4*time.Second || served < 3 {
					w.fail("the connections were gone after %s: nothing was shown", time.Since(began))
				}
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	w.applies(ready.PreviewID)
}

// dribbles sends an opening and then a byte now and then. It reports whether the connection was still open when the limit was over.
func (w *world) dribbles(opening string, limit time.Duration) (open bool) {
	conn, err := net.Dial("tcp", w.p.Listen)
	if err != nil {
		return true
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	gone := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, conn); close(gone) }() // returns when the service hangs up
	_, _ = io.WriteString(conn, opening)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return false
		case <-ctx.Done():
			return true
		case <-tick.C:
			_, _ = io.WriteString(conn, "x")
		}
	}
}

func smuggling(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	hidden := "POST /v1/previews/" + ready.PreviewID + "/apply HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 0\r\n\r\n"
	opening := "GET /healthz HTTP/1.1\r\nHost: x\r\n"
	w.quiet(func() {
		for what, head := range map[string]string{
			"two lengths":             opening + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
			"two lengths in one":      opening + "Content-Length: 0, 5\r\n\r\n",
			"a signed length":         opening + "Content-Length: +0\r\n\r\n",
			"a length in hex":         opening + "Content-Length: 0x0\r\n\r\n",
			"an unknown encoding":     opening + "Transfer-Encoding: xchunked\r\n\r\n",
			"two encodings":           opening + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
			"a space before a colon":  opening + "Content-Length : 0\r\n\r\n",
			"no host":                 "GET /healthz HTTP/1.1\r\n\r\n",
			"two hosts":               opening + "Host: y\r\n\r\n",
			"a NUL in a header":       opening + "X-A: a\x00b\r\n\r\n",
			"a broken chunk":          opening + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
			"a line feed in a header": opening + "X-A\n: b\r\n\r\n",
		} {
			answers := w.raw(head + hidden)
			if len(answers) > 1 || len(answers) == 1 && answers[0] == http.StatusOK && what != "a broken chunk" {
				w.fail("%s: got the answers %v, want one refusal", what, answers)
			}
		}
		// A length beside chunks: the chunks count, and what follows is not taken for the body's end by the length.
		answers := w.raw(opening + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden))
		if len(answers) > 1 {
			w.fail("a length and chunks: got the answers %v", answers)
		}
	})
	w.applies(ready.PreviewID)
}

// raw sends bytes and returns the statuses of all answers until the service hangs up or falls silent.
func (w *world) raw(bytes string) (answers []int) {
	conn, err := net.Dial("tcp", w.p.Listen)
	w.must(err)
	defer func() { _ = conn.Close() }()
	w.must(conn.SetDeadline(time.Now().Add(2 * time.Second)))
	_, err = io.WriteString(conn, bytes)
	w.must(err)
	r := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		w.keep(string(text))
		answers = append(answers, response.StatusCode)
	}
}

func developmentDoors(w *world) {
	link, err := w.f.Issuer.SignInPath("kim")
	w.must(err)
	at, err := url.Parse(link)
	w.must(err)
	b := w.browser()
	w.quiet(func() {
		for _, path := range []string{
			link, "/dev/sign-in", "/dev/issuer/jwks.json", "/dev/issuer/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/dev/issuer",
			"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/dev/", "/DEV/sign-in?" + at.RawQuery, "//dev/sign-in?" + at.RawQuery,
		} {
			r := b.get(path, "X-Forwarded-For", "127.0.0.1")
			want(w, path, r.status, http.StatusNotFound, 301, 307, 308)
			if b.cookie != "" {
				w.fail("%s set a session", path)
			}
		}
		r := b.get("/sign-in")
		if strings.Contains(r.text, "/dev/") {
			w.fail("the way in offers the development sign-in")
		}
		want(w, "posting to the development sign-in", b.post(link, nil).status, http.StatusNotFound, http.StatusMethodNotAllowed)
	})
}

func innerDoors(w *world) {
	w.quiet(func() {
		for _, path := range []string{
			"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/_sim/counters", "/_sim/reset", "/.env", "/.git/config", "/admin", "/v1/", "/v2/previews",
			"/assets/../web.go", "/assets/..%2fweb.go", "/assets/", "/actuator", "/server-status", "/v1/audit", "/internal",
		} {
			for _, method := range []string{"GET", "POST"} {
				r := w.send(method, path, "", "Host", "cutonce.example", "Sec-Fetch-Site", "same-origin")
				want(w, method+" "+path, r.status, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnauthorized, 301, 307, 308)
			}
		}
		at := strings.TrimSuffix(w.p.Metrics, "/metrics")
		for path, status := range map[string]int{"/metrics": http.StatusOK, "/debug/pprof/": http.StatusNotFound, "/v1/previews": http.StatusNotFound, "/": http.StatusNotFound} {
			response, err := http.Get(at + path)
			w.must(err)
			_ = response.Body.Close()
			want(w, path+" at the metrics listener", response.StatusCode, status)
		}
	})
}
