package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

// home is a working directory with a folder for Postgres beside it that the account of Postgres can enter.
type home struct{ dir, postgres string }

func newHome(t *testing.T) home {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "cutonce-dev-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	h := home{dir: filepath.Join(base, "work"), postgres: filepath.Join(base, "postgres")}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h home) state(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, ".cutonce", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// addresses of one instance; zero ports are any free ones.
type addresses struct{ main, metrics, ads, deploys string }

var anywhere = addresses{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}

func (h home) args(a addresses) []string {
	return []string{
		"dev", "--listen", a.main, "--metrics-listen", a.metrics, "--ads-listen", a.ads, "--deploys-listen", a.deploys,
		"--postgres-port", "0", "--postgres-dir", h.postgres,
	}
}

// started is a development instance that said how to use it.
type started struct {
	*process
	at           addresses
	token, ready string
	adsPID       int
	deploysPID   int
	postgresPID  int
	links        map[string]string // by role
}

func (h home) start(t *testing.T, a addresses) started {
	t.Helper()
	// A plain DATABASE_URL is somebody else's.
	p := begin(t, h.dir, []string{"DATABASE_URL=postgres://nobody:x@127.0.0.1:1/none"}, h.args(a)...)
	s := started{process: p, ready: p.saw(p.stdout, `ready in ([0-9.]+) s\n`)[1], links: map[string]string{}}
	said := p.stdout.String()
	s.at.main = find(t, said, `Console +http://([0-9.:]+)/\n`)
	s.at.metrics = find(t, said, `Metrics +http://([0-9.:]+)/metrics\n`)
	s.at.ads = find(t, said, `Ads +http://([0-9.:]+) `)
	s.at.deploys = find(t, said, `Deploys +http://([0-9.:]+) `)
	s.token = find(t, said, `TOKEN='(\S+)'\n`)
	s.adsPID = number(t, find(t, said, `Ads .*process (\d+);`))
	s.deploysPID = number(t, find(t, said, `Deploys .*process (\d+);`))
	data := find(t, said, `Postgres +private Postgres .*, data in (\S+)\n`)
	pidFile, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	s.postgresPID = number(t, strings.SplitN(string(pidFile), "\n", 2)[0])
	for _, m := range regexp.MustCompile(`(?m)^  .*\((\w+)[^()]*\)\n +(http://\S+)$`).FindAllStringSubmatch(said, -1) {
		s.links[m[1]] = m[2]
	}
	return s
}

func find(t *testing.T, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing matches %q in:\n%s", pattern, text)
	}
	return m[1]
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// call asks the API as the agent.
func (s started) call(ctx context.Context, t *testing.T, method, path string, body any) (int, map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var reader io.Reader = bytes.NewReader(text)
	if body == nil {
		reader = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.at.main+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(reply.Body).Decode(&out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply.StatusCode, out
}

func (s started) prepare(t *testing.T, won int) string {
	t.Helper()
	status, body := s.call(t.Context(), t, "POST", "/v1/actions/budget_change/previews", map[string]any{
		"campaign_id": target.CampaignAutumnSearch, "new_daily_budget_jpy": won, "expect_campaign_name": "秋の特価_検索", "reason": "test",
	})
	if status != http.StatusCreated || body["status"] != "approved" {
		t.Fatalf("prepare: got %d %v, want 201 approved", status, body)
	}
	return body["preview_id"].(string)
}

func (s started) childrenGone() bool {
	return gone(s.adsPID) && gone(s.deploysPID) && gone(s.postgresPID)
}

func TestDev(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first := h.start(t, anywhere)
	if seconds, err := strconv.ParseFloat(first.ready, 64); err != nil || seconds >= 20 {
		t.Errorf("ready in %s s, want less than 20", first.ready)
	}
	t.Run("says how to use it", func(t *testing.T) { checkBanner(t, first) })
	t.Run("a second run beside it names it", func(t *testing.T) {
		said := refused(t, h.dir, nil, h.args(anywhere)...)
		for _, want := range []string{"already running", "process " + strconv.Itoa(first.cmd.Process.Pid), "http://" + first.at.main} {
			if !strings.Contains(said, want) {
				t.Errorf("got %q, want %q in it", said, want)
			}
		}
	})
	id := first.prepare(t, 21000)
	t.Run("Ctrl-C finishes the send under way", func(t *testing.T) { interruptDuringSend(t, h, first, id) })
	t.Run("nothing secret was said", func(t *testing.T) { checkSecrets(t, h, first) })

	second := h.start(t, first.at)
	if second.token != first.token {
		t.Error("the agent's token did not survive the restart")
	}
	if _, body := second.call(t.Context(), t, "GET", "/v1/previews/"+id, nil); body["status"] != "applied" {
		t.Errorf("after the restart: got %v, want the change applied", body)
	}
	second.signal(syscall.SIGKILL)
	second.wait()
	until(t, "the children of a killed instance end", second.childrenGone)

	third := h.start(t, first.at)
	if _, body := third.call(t.Context(), t, "GET", "/v1/previews/"+id, nil); body["status"] != "applied" || third.token != first.token {
		t.Errorf("after SIGKILL: got %v, want the change and the token kept", body)
	}
	_ = syscall.Kill(third.adsPID, syscall.SIGKILL)
	until(t, "the ad platform is started again", func() bool {
		reply, err := http.Get("http://" + third.at.ads + "/healthz")
		if err != nil {
			return false
		}
		defer reply.Body.Close()
		return reply.StatusCode == http.StatusOK && gone(third.adsPID)
	})
	third.signal(syscall.SIGTERM)
	if code := third.wait(); code != 0 {
		t.Errorf("SIGTERM: got exit code %d, want 0", code)
	}
	until(t, "the children end", third.childrenGone)
}

func checkBanner(t *testing.T, s started) {
	said := s.stdout.String()
	var client struct {
		Servers map[string]struct {
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(find(t, said, `(?s)(\{\n.*\n\})\n`)), &client); err != nil {
		t.Fatalf("the client configuration: %v", err)
	}
	server := client.Servers["cutonce"]
	if server.URL != "http://"+s.at.main+"/mcp" || server.Headers["Authorization"] != "Bearer "+s.token {
		t.Errorf("got the client configuration %+v", server)
	}
	for _, name := range []string{"agent", "kim", "oper", "mori-agent", "hayashi"} {
		token, err := os.ReadFile(filepath.Join(find(t, s.stdout.String(), `is in a file of (\S+),`), name))
		if err != nil || strings.Count(string(token), ".") != 2 {
			t.Errorf("%s: got %q, %v, want a token", name, token, err)
		}
	}
	for _, role := range []string{"requester", "approver", "operator", "auditor", "admin"} {
		link := s.links[role]
		jar, _ := cookiejar.New(nil)
		browser := http.Client{Jar: jar}
		reply, err := browser.Get(link)
		if err != nil {
			t.Errorf("%s: %v", role, err)
			continue
		}
		reply.Body.Close()
		if reply.StatusCode != http.StatusOK || reply.Request.URL.Path != "/" {
			t.Errorf("%s: got %d at %s, want the console", role, reply.StatusCode, reply.Request.URL)
		}
	}
	reply, err := http.Get("http://" + s.at.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if text, _ := io.ReadAll(reply.Body); !strings.Contains(string(text), "cutonce_pending 0") {
		t.Errorf("the metrics do not tell the backlog:\n%s", text)
	}
}

// interruptDuringSend applies while the platform holds the request, interrupts, and lets the platform go on.
func interruptDuringSend(t *testing.T, h home, s started, id string) {
	control := target.Control{BaseURL: "http://" + s.at.ads, Token: h.state(t, "ads-token")}
	gate := target.Once(target.OpChange, target.CampaignAutumnSearch, target.Step{Action: target.HoldBefore, Gate: "open"})
	if err := control.AddFault(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	answered := make(chan map[string]any, 1)
	go func() {
		_, body := s.call(context.WithoutCancel(t.Context()), t, "POST", "/v1/previews/"+id+"/apply", map[string]any{})
		answered <- body
	}()
	if err := control.Wait(t.Context(), target.Event{Stage: target.StageHeld, Match: target.Match{Op: target.OpChange}}, 1); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGINT)
	s.saw(s.stderr, "draining")
	if err := control.Release(t.Context(), "open"); err != nil {
		t.Fatal(err)
	}
	if body := <-answered; body["status"] != "applied" {
		t.Errorf("got %v, want the caller told that it is applied", body)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	until(t, "the children end", s.childrenGone)
}

func checkSecrets(t *testing.T, h home, s started) {
	never := []string{h.state(t, "secret"), h.state(t, "ads-token"), h.state(t, "deploys-token"), h.state(t, "instance")}
	passwords, err := filepath.Glob(filepath.Join(h.postgres, "*", "password"))
	if err != nil || len(passwords) != 1 {
		t.Fatalf("got %v, %v, want the cluster's password file", passwords, err)
	}
	password, err := os.ReadFile(passwords[0])
	if err != nil {
		t.Fatal(err)
	}
	never = append(never, strings.TrimSpace(string(password)))
	for _, secret := range never {
		if len(secret) < 16 {
			t.Fatalf("%q is no secret", secret)
		}
		if strings.Contains(s.stdout.String(), secret) || strings.Contains(s.stderr.String(), secret) {
			t.Errorf("a secret was printed: %s…", secret[:4])
		}
	}
	// The dev token and links are printed once, on purpose; the log never holds them.
	logged := s.stderr.String()
	for role, link := range s.links {
		if code := find(t, link, `code=([^&]+)`); strings.Contains(logged, code) {
			t.Errorf("the log holds the sign-in code of %s", role)
		}
	}
	if strings.Contains(logged, s.token) {
		t.Error("the log holds the agent's token")
	}
}

func TestDevNamesATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for flag, value := range map[string]string{
		"--listen": "127.0.0.1:" + port, "--metrics-listen": "127.0.0.1:" + port, "--ads-listen": "127.0.0.1:" + port, "--deploys-listen": "127.0.0.1:" + port,
		"--postgres-port": port,
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			args := h.args(anywhere)
			args[slices.Index(args, flag)+1] = value
			said := refused(t, h.dir, nil, args...)
			if !strings.Contains(said, port) || !strings.Contains(said, "taken") || !strings.Contains(said, flag) {
				t.Errorf("got %q, want the port and %s named", said, flag)
			}
		})
	}
}

func TestDevRefusesHalfAProductionConfiguration(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"CUTONCE_SECRET=" + strings.Repeat("x", 32), "CUTONCE_ADS_TOKEN=t", "CUTONCE_ISSUER_URL=https://issuer.example"} {
		name, _, _ := strings.Cut(set, "=")
		if said := refused(t, t.TempDir(), []string{set}, "dev"); !strings.Contains(said, name) {
			t.Errorf("got %q, want %s named", said, name)
		}
	}
	if said := refused(t, t.TempDir(), []string{"CUTONCE_CLOCK_PREVIEWTTL=1m"}, "dev"); !strings.Contains(said, "CUTONCE_CLOCK_PREVIEW_TTL?") {
		t.Errorf("got %q, want the right name suggested", said)
	}
}
