package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/store"
)

// The two sides.
const (
	empty = iota
	full
)

// stage is the one target and the one issuer, and the two services, each as in production but for the loopback.
type stage struct {
	sides  [2]*side
	target string
	tokens map[string]string
	stops  []func()
}

// side is one service on its own database.
type side struct {
	name, url, database string
	// serve starts the service, and stop ends it.
	serve func(context.Context) error
	stop  func()
	// seeded is the campaign of all that is seeded: nobody measures on it.
	seeded string
	// began tells the calls of one run from those of another on a kept database.
	began int
}

const audience = "cutonce-scale"

// issuerName is in every token and with every stored change, so that a kept database knows its callers again; the keys are fetched from
// wherever the issuer listens.
const issuerName = "http://127.0.0.1:8799"

func setUp(ctx context.Context, dir, binary, address string) (_ *stage, err error) {
	s := &stage{tokens: map[string]string{}}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	token, secret := random(), random()
	if s.target, _, err = s.start(ctx, dir, binary, "/healthz", func(at string) ([]string, []string) {
		return []string{"target", "ads", "--listen", at, "--quiet", "--until-stdin-closes"}, []string{"CUTONCE_TARGET_TOKEN=" + token}
	}); err != nil {
		return nil, err
	}
	keys, err := s.startIssuer(dir)
	if err != nil {
		return nil, err
	}
	rules := filepath.Join(dir, "policies")
	if err := os.CopyFS(rules, policies.FS); err != nil {
		return nil, err
	}
	for n, name := range []string{"empty", "full"} {
		one := &side{name: name, seeded: target.PlainKRW(n), began: int(time.Now().Unix())}
		s.sides[n] = one
		if one.database, err = makeDatabase(ctx, address, "scale_"+name); err != nil {
			return nil, err
		}
		one.serve = func(ctx context.Context) (err error) {
			one.url, one.stop, err = s.start(ctx, dir, binary, "/readyz", func(at string) ([]string, []string) {
				return []string{"serve"}, []string{
					"CUTONCE_DATABASE_URL=" + one.database, "CUTONCE_LISTEN=" + at, "CUTONCE_METRICS_LISTEN=off", "CUTONCE_PUBLIC_URL=http://" + at,
					"CUTONCE_SECRET=" + secret, "CUTONCE_POLICY_DIR=" + rules, "CUTONCE_AUDIENCES=" + audience,
					"CUTONCE_ISSUER_URL=" + issuerName, "CUTONCE_ISSUER_JWKS_URL=" + keys,
					"CUTONCE_ISSUER_AGENT_CLIENTS=" + devissuer.AgentClient, "CUTONCE_ISSUER_HUMAN_CLIENTS=" + devissuer.ConsoleClient,
					"CUTONCE_ADS_URL=" + s.target, "CUTONCE_ADS_TOKEN=" + token, "CUTONCE_ADS_SYSTEM=ads.example/scale", "CUTONCE_LOG_LEVEL=WARN",
					"CUTONCE_LIMIT_ACTOR=0", "CUTONCE_LIMIT_TENANT=0", "CUTONCE_LIMIT_ACTION=0", "CUTONCE_LIMIT_OPEN=0",
				}
			})
			return err
		}
		if err := one.serve(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// stop ends everything in the opposite order of its start.
func (s *stage) stop() {
	for n := len(s.stops) - 1; n >= 0; n-- {
		s.stops[n]()
	}
	s.stops = nil
}

// start runs the program once more and waits until it answers.
func (s *stage) start(
	ctx context.Context, dir, binary, ready string, how func(address string) (args, env []string),
) (address string, stop func(), err error) {
	if address, err = freeAddress(); err != nil {
		return "", nil, err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return "", nil, err
	}
	args, env := how(address)
	log, err := os.Create(filepath.Join(dir, args[0]+"-"+address+".log"))
	if err != nil {
		return "", nil, err
	}
	process, err := child.Start(child.Config{Path: binary, Args: args, Env: env, Log: log})
	if err != nil {
		return "", nil, err
	}
	stop = sync.OnceFunc(func() {
		ending, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = process.Stop(ending)
		_ = log.Close()
	})
	s.stops = append(s.stops, stop)
	return "http://" + address, stop, answers(ctx, "http://"+address+ready, process)
}

// startIssuer makes the tokens, and says where the keys are that prove them.
func (s *stage) startIssuer(dir string) (keys string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	issuer, err := devissuer.New(devissuer.Config{
		Dir: filepath.Join(dir, "issuer"), URL: issuerName, Audience: audience, Tenant: "scale",
		Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: issuer.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	s.stops = append(s.stops, func() { _ = server.Close() })
	for _, name := range []string{"agent", "sato", "kim", "oper"} {
		if s.tokens[name], err = issuer.Token(name); err != nil {
			return "", err
		}
	}
	return "http://" + listener.Addr().String() + strings.TrimPrefix(issuer.JWKSURL(), issuerName), nil
}

func makeDatabase(ctx context.Context, address, name string) (string, error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var there bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&there); err != nil {
		return "", err
	}
	if !there {
		if _, err := conn.Exec(ctx, "create database "+name); err != nil {
			return "", err
		}
	}
	at, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the cluster's address is not readable")
	}
	at.Path = "/" + name
	return at.String(), store.Migrate(ctx, at.String())
}

// answers asks until the address answers 200.
func answers(ctx context.Context, address string, p *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s did not start: %w", address, p.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s does not get ready", address)
		case <-time.After(50 * time.Millisecond):
		}
	}
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

func (s *stage) machine() string {
	return fmt.Sprintf("%s, %s/%s, %d CPUs", time.Now().UTC().Format("2006-01-02 15:04 UTC"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

func (s *stage) version(ctx context.Context) string {
	conn, err := pgx.Connect(ctx, s.sides[full].database)
	if err != nil {
		return "Postgres"
	}
	defer conn.Close(ctx)
	var version, buffers string
	err = conn.QueryRow(ctx, `select current_setting('server_version'), current_setting('shared_buffers')`).Scan(&version, &buffers)
	if err != nil {
		return "Postgres"
	}
	return fmt.Sprintf("Postgres %s (fsync on, shared_buffers %s)", version, buffers)
}
