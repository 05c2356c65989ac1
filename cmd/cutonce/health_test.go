package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/cutonce/cutonce/internal/pgtest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		}
	}))
	defer service.Close()
	address := strings.TrimPrefix(service.URL, "http://")
	for name, tc := range map[string]struct {
		env  []string
		args []string
	}{
		"a URL":              {nil, []string{"health", service.URL + "/healthz"}},
		"its own address":    {[]string{"CUTONCE_LISTEN=" + address}, []string{"health"}},
		"its own, any local": {[]string{"CUTONCE_LISTEN=0.0.0.0:" + address[strings.LastIndex(address, ":")+1:]}, []string{"health"}},
	} {
		if p := begin(t, t.TempDir(), tc.env, tc.args...); p.wait() != 0 {
			t.Errorf("%s: got %s, want 0", name, p.stderr)
		}
	}
	if said, want := refused(t, t.TempDir(), nil, "health", service.URL+"/readyz"), "503 Service Unavailable: the database"; !strings.Contains(said, want) {
		t.Errorf("unwell: got %q, want %q in it", said, want)
	}
	service.Close()
	if said := refused(t, t.TempDir(), []string{"CUTONCE_LISTEN=" + address}, "health"); !strings.Contains(said, "connection refused") {
		t.Errorf("gone: got %q, want the reason", said)
	}
}

// In containers, each simulator is a service of its own.
func TestDevTakesSimulatorsThatRunAlready(t *testing.T) {
	t.Parallel()
	const credential = "CUTONCE_TARGET_TOKEN=the-credential-of-both-simulators"
	args := []string{"dev", "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--open-dev-issuer"}
	var urls []string
	for _, name := range []string{"ads", "deploys"} {
		p := begin(t, t.TempDir(), []string{credential}, "target", name, "--listen", "127.0.0.1:0")
		urls = append(urls, p.saw(p.stderr, `url=(http://\S+)\n`)[1])
		args = append(args, "--"+name+"-url", urls[len(urls)-1])
	}
	env := []string{"CUTONCE_DATABASE_URL=" + pgtest.URL(t), "CUTONCE_ALLOW_UNSAFE_DATABASE=development"}
	if said := refused(t, t.TempDir(), env, args...); !strings.Contains(said, "CUTONCE_TARGET_TOKEN") {
		t.Errorf("without the credential: got %q, want the variable named", said)
	}
	p := begin(t, t.TempDir(), append(env, credential), args...)
	p.saw(p.stdout, `ready in`)
	s := started{process: p}
	said := p.stdout.String()
	s.at.main, s.token = find(t, said, `Console +http://([0-9.:]+)/\n`), find(t, said, `TOKEN='(\S+)'\n`)
	for _, url := range urls {
		if want := url + " (simulated platform, started by somebody else)"; !strings.Contains(said, want) {
			t.Errorf("got %s, want %q in it", said, want)
		}
	}
	s.prepare(t, 21000)
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	for _, url := range urls {
		if p := begin(t, t.TempDir(), nil, "health", url+"/healthz"); p.wait() != 0 {
			t.Errorf("%s ended with the instance: %s", url, p.stderr)
		}
	}
}
