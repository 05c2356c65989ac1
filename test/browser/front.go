package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// front is where TLS ends, as in production. It can lose streams of events, refuse them, and hold requests back.
type front struct {
	*httptest.Server
	to *url.URL

	mu      sync.Mutex
	streams map[*http.Request]context.CancelFunc
	opened  int
	refuses bool
	held    map[string]chan struct{}
	arrived map[string]chan struct{}
}

// newFront listens; what it leads to is told by lead, since a service is told its own address first.
func newFront() *front {
	f := &front{streams: map[*http.Request]context.CancelFunc{}, held: map[string]chan struct{}{}, arrived: map[string]chan struct{}{}}
	f.Server = httptest.NewUnstartedServer(f)
	f.Server.EnableHTTP2 = true // a browser opens few connections to one host, and a stream keeps one
	f.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	return f
}

// lead says which service stands behind.
func (f *front) lead(address string) error {
	to, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the service's address: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
	return nil
}

// publicKey is the certificate's, by which the browser knows it.
func (f *front) publicKey() []byte { return f.Certificate().RawSubjectPublicKeyInfo }

// ServeHTTP passes a request on.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	to, gate := f.to, f.held[r.Method+" "+r.URL.Path]
	refused := f.refuses && strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	f.mu.Unlock()
	if refused {
		http.Error(w, "no streams today", http.StatusServiceUnavailable)
		return
	}
	if gate != nil {
		f.arrive(r)
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	defer f.forget(r)
	proxy := &httputil.ReverseProxy{
		// A browser that goes away, and a stream that is cut, are no news.
		ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(to)
			out.Out.Host = out.In.Host
		},
		ModifyResponse: func(response *http.Response) error {
			if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
				f.keep(r, cancel)
			}
			return nil
		},
	}
	proxy.ServeHTTP(w, r)
}

func (f *front) keep(r *http.Request, cancel context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[r] = cancel
	f.opened++
}

func (f *front) forget(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, r)
}

// cut loses every stream that is open, as a network would, and says how many there were.
func (f *front) cut() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.streams)
	for _, cancel := range f.streams {
		cancel()
	}
	return n
}

// refuse makes new streams fail, or lets them through again.
func (f *front) refuse(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = on
}

// streaming is how many streams are open now, and how many there ever were.
func (f *front) streaming() (now, ever int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams), f.opened
}

// hold keeps requests with this method and path until the gate that it returns is called; arrived is closed when one has come.
func (f *front) hold(method, path string) (arrived <-chan struct{}, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := method + " " + path
	gate, come := make(chan struct{}), make(chan struct{})
	f.held[name], f.arrived[name] = gate, come
	return come, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.held, name)
		close(gate)
	})
}

func (f *front) arrive(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := r.Method + " " + r.URL.Path
	if come := f.arrived[name]; come != nil {
		close(come)
		delete(f.arrived, name)
	}
}
