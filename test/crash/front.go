package main

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// front is a gateway before the platform. It keeps connections alive, as gateways do, and can misbehave.
type front struct {
	url string
	// env lets a replica trust its certificate.
	env []string
	// refuse makes it break off every TLS handshake.
	refuse atomic.Bool

	mu sync.Mutex
	// changes are what it does with a change instead of passing it on, by the campaign's path.
	changes map[string]http.HandlerFunc
	seen    map[string]int
	pass    http.Handler
}

func (w *world) front(with func(*httptest.Server)) *front {
	platform, err := url.Parse(w.f.Ads.BaseURL)
	w.must(err)
	f := &front{changes: map[string]http.HandlerFunc{}, seen: map[string]int{}}
	quiet := log.New(io.Discard, "", 0) // what it breaks off is meant to break
	f.pass = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(platform) }, ErrorLog: quiet}
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = quiet
	with(server)
	w.onClose(server.Close)
	w.onClose(server.CloseClientConnections)
	f.url = server.URL
	if certificate := server.Certificate(); certificate != nil {
		file := filepath.Join(w.scratch("tls-"), "ca.pem")
		w.must(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600))
		f.env = []string{"SSL_CERT_FILE=" + file}
	}
	return f
}

func (w *world) plainFront() *front { return w.front((*httptest.Server).Start) }

func (w *world) tlsFront() *front {
	var f *front
	f = w.front(func(s *httptest.Server) {
		s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if f.refuse.Load() {
				return nil, errors.New("no TLS today")
			}
			return nil, nil
		}}
		s.StartTLS()
	})
	return f
}

// at says what becomes of changes of a campaign.
func (f *front) at(campaign string, do http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes["/v1/campaigns/"+campaign] = do
}

// count is how many requests for changes of a campaign came.
func (f *front) count(campaign string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen["/v1/campaigns/"+campaign]
}

// ServeHTTP passes on what is not to be misdone.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	do := f.pass.ServeHTTP
	if r.Method == http.MethodPatch {
		f.mu.Lock()
		f.seen[r.URL.Path]++
		if other := f.changes[r.URL.Path]; other != nil {
			do = other
		}
		f.mu.Unlock()
	}
	do(w, r)
}

// doneThenCut passes a change on and closes the connection without an answer.
func (f *front) doneThenCut(_ http.ResponseWriter, r *http.Request) {
	f.pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// onlyCut closes the connection.
func onlyCut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// answering answers without passing anything on.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}
