package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
)

// recorder stands before the platform and remembers what arrives.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	seen []arrived
	// astray, if set, is where every call is redirected to.
	astray string
}

// arrived is one request as it came.
type arrived struct {
	Method, URI string
	Header      http.Header
}

func newRecorder(platform string) (*recorder, error) {
	to, err := url.Parse(platform)
	if err != nil {
		return nil, err
	}
	r := &recorder{}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		r.mu.Lock()
		r.seen = append(r.seen, arrived{in.Method, in.RequestURI, in.Header.Clone()})
		astray := r.astray
		r.mu.Unlock()
		if astray != "" {
			http.Redirect(w, in, astray+in.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		proxy.ServeHTTP(w, in)
	}))
	return r, nil
}

// arrivals are the requests so far.
func (r *recorder) arrivals() []arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]arrived(nil), r.seen...)
}

func (r *recorder) leadAstray(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.astray = to
}

// elsewhere is a server of the attacker's. It has keys of its own, for whoever would take them.
type elsewhere struct {
	*httptest.Server
	provider *provider
	mu       sync.Mutex
	calls    []string
}

func newElsewhere() (*elsewhere, error) {
	p, err := newProvider("acme")
	if err != nil {
		return nil, err
	}
	e := &elsewhere{provider: p}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.calls = append(e.calls, r.Method+" "+r.RequestURI)
		e.mu.Unlock()
		answer(w, claims{"keys": []any{p.jwk()}})
	}))
	return e, nil
}

// Close ends both servers.
func (e *elsewhere) Close() { e.Server.Close(); e.provider.Close() }

// called is how often somebody came.
func (e *elsewhere) called() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)
}
