package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/internal/target"
)

// demoAudience is the service that the demo's tokens are for.
const demoAudience = "cutonce-demo"

// demoInstance is what the demo starts and ends.
type demoInstance struct {
	dir    string
	stops  []func(context.Context)
	issuer *devissuer.Issuer
	logs   *os.File
}

// startDemo starts everything. stop ends what was started, also when an error is returned.
func startDemo(ctx context.Context, out io.Writer) (d *demo, stop func(), err error) {
	dir, err := os.MkdirTemp("", "cutonce-demo-")
	if err != nil {
		return nil, func() {}, err
	}
	w := &demoInstance{dir: dir}
	if w.logs, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, w.stop, err
	}
	database, described, err := w.database(ctx)
	if err != nil {
		return nil, w.stop, err
	}
	fmt.Fprintf(out, "database: %s\n", described)
	d = &demo{out: out, secret: randomHex(), applied: map[string]int{}, ofDeploys: map[string]bool{}}
	var err1, err2 error
	d.control, err1 = w.startTarget(ctx, "ads")
	d.deploys, err2 = w.startTarget(ctx, "deploys")
	if err := errors.Join(err1, err2); err != nil {
		return nil, w.stop, w.withLog(err)
	}
	if err := w.startIssuer(); err != nil {
		return nil, w.stop, err
	}
	first, err1 := w.startService(d, database)
	second, err2 := w.startService(d, database)
	if err := errors.Join(err1, err2, demoWait(ctx, first+"/readyz"), demoWait(ctx, second+"/readyz")); err != nil {
		return nil, w.stop, w.withLog(err)
	}
	fmt.Fprintf(out, "two service processes: %s and %s; simulated ad platform: %s; simulated deployment platform: %s\n", first, second,
		d.control.BaseURL, d.deploys.BaseURL)
	return d, w.stop, w.people(ctx, d, first, second)
}

func (w *demoInstance) onStop(f func(context.Context)) { w.stops = append(w.stops, f) }

// stop ends everything in the opposite order of its start.
func (w *demoInstance) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i](ctx)
	}
	_ = w.logs.Close()
	_ = os.RemoveAll(w.dir)
}

// withLog adds the end of the children's log to an error.
func (w *demoInstance) withLog(err error) error {
	text, readErr := os.ReadFile(w.logs.Name())
	if readErr != nil || len(text) == 0 {
		return err
	}
	const most = 2000
	return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-most):])
}

// database makes a database of the demo's own on the Postgres that there is.
func (w *demoInstance) database(ctx context.Context) (address, described string, err error) {
	cluster, err := openDemoCluster(ctx)
	if err != nil {
		return "", "", err
	}
	w.onStop(func(ctx context.Context) { _ = cluster.Close(ctx) })
	name := "cutonce_demo_" + randomHex()[:12]
	run := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, cluster.URL())
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
		return err
	}
	if err := run(ctx, "create database "+name); err != nil {
		return "", "", fmt.Errorf("making the demo's database: %w", err)
	}
	w.onStop(func(ctx context.Context) { _ = run(ctx, "drop database "+name+" with (force)") })
	at, err := url.Parse(cluster.URL())
	if err != nil {
		return "", "", errors.New("the database URL is not readable")
	}
	at.Path = "/" + name
	return at.String(), cluster.Describe() + "; a database of the demo's own (" + name + "), dropped at the end", nil
}

// startTarget starts one simulated platform as a process of its own.
func (w *demoInstance) startTarget(ctx context.Context, name string) (target.Control, error) {
	address, err := demoAddress()
	if err != nil {
		return target.Control{}, err
	}
	control := target.Control{BaseURL: "http://" + address, Token: randomHex()}
	env := []string{targetToken + "=" + control.Token}
	if err := w.run(env, "target", name, "--listen", address, "--quiet", "--until-stdin-closes"); err != nil {
		return control, err
	}
	return control, demoWait(ctx, control.BaseURL+"/healthz")
}

// openDemoCluster takes the first cluster that no other demo is using.
func openDemoCluster(ctx context.Context) (cluster *pglocal.Cluster, err error) {
	for _, name := range []string{"demo", "demo-2", "demo-3", "demo-4"} {
		cluster, err = pglocal.Open(ctx, pglocal.Config{
			URL: os.Getenv("CUTONCE_DATABASE_URL"), Name: name, Cache: ".cache", ComposeFile: "docker-compose.yml",
		})
		var taken *pglocal.InUseError
		if !errors.As(err, &taken) {
			break
		}
	}
	return cluster, err
}

func (w *demoInstance) startIssuer() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.issuer, err = devissuer.New(devissuer.Config{
		Dir: filepath.Join(w.dir, "issuer"), URL: "http://" + listener.Addr().String(), Audience: demoAudience, Tenant: demoTenant,
		Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: w.issuer.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	w.onStop(func(context.Context) { _ = server.Close() })
	return nil
}

// startService starts one `cutonce serve`, as production would: by its environment.
func (w *demoInstance) startService(d *demo, database string) (url string, err error) {
	address, err := demoAddress()
	if err != nil {
		return "", err
	}
	rules := filepath.Join(w.dir, "policies")
	if err := os.CopyFS(rules, policies.FS); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	url = "http://" + address
	env := []string{
		"CUTONCE_DATABASE_URL=" + database, "CUTONCE_LISTEN=" + address, "CUTONCE_METRICS_LISTEN=off", "CUTONCE_PUBLIC_URL=" + url,
		"CUTONCE_SECRET=" + d.secret, "CUTONCE_POLICY_DIR=" + rules, "CUTONCE_AUDIENCES=" + demoAudience,
		"CUTONCE_ISSUER_URL=" + w.issuer.URL(), "CUTONCE_ISSUER_JWKS_URL=" + w.issuer.JWKSURL(),
		"CUTONCE_ISSUER_AGENT_CLIENTS=" + devissuer.AgentClient, "CUTONCE_ISSUER_HUMAN_CLIENTS=" + devissuer.ConsoleClient,
		"CUTONCE_ADS_URL=" + d.control.BaseURL, "CUTONCE_ADS_TOKEN=" + d.control.Token, "CUTONCE_ADS_SYSTEM=ads.example/demo",
		"CUTONCE_DEPLOYS_URL=" + d.deploys.BaseURL, "CUTONCE_DEPLOYS_TOKEN=" + d.deploys.Token, "CUTONCE_DEPLOYS_SYSTEM=deploys.example/demo",
		"CUTONCE_LOG_LEVEL=WARN",
	}
	for name, value := range demoClocks {
		env = append(env, "CUTONCE_CLOCK_"+name+"="+value)
	}
	return url, w.run(env, "serve")
}

// run starts this binary once more, with an environment of its own.
func (w *demoInstance) run(env []string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process, err := child.Start(child.Config{Path: self, Args: args, Env: env, Log: w.logs})
	if err != nil {
		return err
	}
	w.onStop(func(ctx context.Context) { _ = process.Stop(ctx) })
	return nil
}

func (w *demoInstance) people(ctx context.Context, d *demo, first, second string) (err error) {
	tokens := map[string]string{}
	for _, name := range []string{"agent", "kim", "oper", "mori", "mori-agent", "ono-agent", "hayashi"} {
		if tokens[name], err = w.issuer.Token(name); err != nil {
			return fmt.Errorf("making a token for %s: %w", name, err)
		}
	}
	for _, a := range []struct {
		agent     **demoAgent
		url, name string
	}{{&d.agent, first, "agent"}, {&d.second, second, "agent"}, {&d.mori, first, "mori-agent"}, {&d.ono, second, "ono-agent"}} {
		if *a.agent, err = newDemoAgent(ctx, a.url, tokens[a.name]); err != nil {
			return w.withLog(err)
		}
	}
	d.approver, d.operatorAt = demoPerson{first, tokens["kim"]}, demoPerson{second, tokens["oper"]}
	d.manager, d.moriHerself = demoPerson{second, tokens["hayashi"]}, demoPerson{first, tokens["mori"]}
	return nil
}

// demoAddress is a loopback address that was free a moment ago.
func demoAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// demoWait asks until the address answers 200.
func demoWait(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
		case <-ctx.Done():
			return fmt.Errorf("%s does not get ready", url)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// clockDefault is the documented default of a clock.
func clockDefault(name string) string {
	for _, row := range config.Table() {
		if row.Name == config.Prefix+"CLOCK_"+name {
			return row.Default
		}
	}
	return "none"
}
