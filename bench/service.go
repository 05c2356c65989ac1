package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/devissuer"
)

// stage is everything beside Postgres: the target, the issuer and the service, each as in production but for the loopback.
type stage struct {
	target  targetAt
	url     string
	metrics string
	tokens  map[string]string
	// pids are the processes whose CPU is counted.
	pids  map[string]int
	stops []func()
	serve *child.Process
}

const audience = "cutonce-bench"

// startStage starts everything. caps is one more policy file, empty if there is none.
func startStage(ctx context.Context, dir, binary, database, caps string) (_ *stage, err error) {
	s := &stage{pids: map[string]int{}, tokens: map[string]string{}}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if err := s.startTarget(ctx); err != nil {
		return nil, err
	}
	issuer, err := s.startIssuer(dir)
	if err != nil {
		return nil, err
	}
	return s, s.startService(ctx, dir, binary, database, caps, issuer)
}

// stop ends everything in the opposite order of its start.
func (s *stage) stop() {
	for n := len(s.stops) - 1; n >= 0; n-- {
		s.stops[n]()
	}
	s.stops = nil
}

func (s *stage) startTarget(ctx context.Context) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.target = targetAt{url: "http://" + address, token: random(), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second,
	}}
	process, err := child.Start(child.Config{Path: self, Args: []string{"target", address}, Env: []string{"TARGET_TOKEN=" + s.target.token}, Log: os.Stderr})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { stopChild(process) })
	s.pids["target"] = process.PID
	return ready(ctx, s.target.url+"/tally", process)
}

func (s *stage) startIssuer(dir string) (*devissuer.Issuer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	issuer, err := devissuer.New(devissuer.Config{
		Dir: filepath.Join(dir, "issuer"), URL: "http://" + listener.Addr().String(), Audience: audience, Tenant: "bench",
		Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: issuer.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	s.stops = append(s.stops, func() { _ = server.Close() })
	for _, person := range []string{"agent", "kim"} {
		if s.tokens[person], err = issuer.Token(person); err != nil {
			return nil, err
		}
	}
	return issuer, nil
}

// startService starts `cutonce serve` by its environment. It logs problems only; everything else is as it is by default.
func (s *stage) startService(ctx context.Context, dir, binary, database, caps string, issuer *devissuer.Issuer) error {
	address, err1 := freeAddress()
	metrics, err2 := freeAddress()
	log, err3 := os.Create(filepath.Join(dir, "serve.log"))
	rules := filepath.Join(dir, "policies")
	if err := errors.Join(err1, err2, err3, os.CopyFS(rules, os.DirFS("policies"))); err != nil {
		return err
	}
	if caps != "" {
		if err := os.WriteFile(filepath.Join(rules, "caps.yaml"), []byte(caps), 0o600); err != nil {
			return err
		}
	}
	s.url, s.metrics = "http://"+address, "http://"+metrics
	env := []string{
		"CUTONCE_DATABASE_URL=" + database, "CUTONCE_DATABASE_POOL=" + strconv.Itoa(poolSize), "CUTONCE_LISTEN=" + address,
		"CUTONCE_METRICS_LISTEN=" + metrics, "CUTONCE_PUBLIC_URL=" + s.url, "CUTONCE_SECRET=" + random(), "CUTONCE_POLICY_DIR=" + rules,
		"CUTONCE_AUDIENCES=" + audience, "CUTONCE_ISSUER_URL=" + issuer.URL(), "CUTONCE_ISSUER_JWKS_URL=" + issuer.JWKSURL(),
		"CUTONCE_ISSUER_AGENT_CLIENTS=" + devissuer.AgentClient, "CUTONCE_ISSUER_HUMAN_CLIENTS=" + devissuer.ConsoleClient,
		"CUTONCE_ADS_URL=" + s.target.url, "CUTONCE_ADS_TOKEN=" + s.target.token, "CUTONCE_ADS_SYSTEM=ads.example/bench",
		"CUTONCE_LIMIT_ACTOR=0", "CUTONCE_LIMIT_TENANT=0", "CUTONCE_LIMIT_ACTION=0", // one agent does what a thousand would
		"CUTONCE_LOG_LEVEL=WARN",
	}
	process, err := child.Start(child.Config{Path: binary, Args: []string{"serve"}, Env: append(env, extraEnv()...), Log: log})
	if err != nil {
		return err
	}
	s.serve = process
	s.stops = append(s.stops, func() { stopChild(process); _ = log.Close() })
	s.pids["serve"] = process.PID
	return ready(ctx, s.url+"/readyz", process)
}

// extraEnv passes on what tunes a Go process, for experiments.
func extraEnv() (env []string) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "CUTONCE_METRICS_PROFILE"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func stopChild(p *child.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = p.Stop(ctx)
}

// ready asks until the address answers 200.
func ready(ctx context.Context, url string, p *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if ok := answers(ctx, url); ok {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s did not start: %w", url, p.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s does not get ready", url)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK
}

func random() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	return hex.EncodeToString(raw)
}

// freeAddress is a loopback address that was free a moment ago.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
