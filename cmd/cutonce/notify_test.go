package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

// hooked is a receiver of webhooks and of Slack's messages.
type hooked struct {
	*httptest.Server
	mu sync.Mutex
	// ids are those of each message, by its type; slack is what came without one.
	ids    map[string][]string
	slack  []string
	answer int
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	h := &hooked{ids: map[string][]string{}, answer: http.StatusOK}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(body, &m) // Slack's have no type
		h.mu.Lock()
		defer h.mu.Unlock()
		if m.Type == "" {
			h.slack = append(h.slack, string(body))
		} else {
			h.ids[m.Type] = append(h.ids[m.Type], r.Header.Get("webhook-id"))
		}
		w.WriteHeader(h.answer)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hooked) came(kind string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids[kind]
}

func (h *hooked) set(answer int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

// givenUp is the bot's decision in a list.
var givenUp = regexp.MustCompile(`(?m)^\d+ +bot +decided .* given up `)

const (
	hookSecret  = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	slackSecret = "T0-B0-the-address-is-the-secret"
)

// receiverFile writes a file of receivers at one address, and the settings that go with it.
func receiverFile(t *testing.T, url string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify.yaml")
	text := `
receivers:
  - {name: bot, tenant: dev, everything: true, webhook: {url: "` + url + `", secret_envs: [HOOK_SECRET]}}
  - {name: leads-slack, tenant: dev, groups: [ads-approvers], locale: ja, zone: Asia/Tokyo, slack: {url_env: SLACK_URL}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"CUTONCE_NOTIFY_FILE=" + path, "HOOK_SECRET=" + hookSecret, "SLACK_URL=" + url + "/services/" + slackSecret}
}

// TestNotifyFromEndToEnd runs the real service with two receivers: what happens is told, what a killed process had not told yet is told by
// the next one, and what a receiver refuses for good is listed and tried again by hand.
func TestNotifyFromEndToEnd(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	env := receiverFile(t, h.URL)
	s := newStage(t, env...)
	ask := func(campaign string) string {
		id := s.prepare(campaign, 16000).PreviewID
		s.post("agent", "/v1/previews/"+id+"/approval-request", map[string]any{"justification": "please"})
		return id
	}
	decide := func(id string) {
		s.post("kim", "/v1/previews/"+id+"/decisions", map[string]any{"decision": "approve", "digest": s.change(id).Digest})
	}
	first := ask(target.PlainJPY(0))
	until(t, "the bot is asked", func() bool { return len(h.came("change.approval_wanted")) == 1 })
	decide(first)
	if b := s.apply(first); b.Status != "applied" {
		t.Fatalf("got %s %s, want applied", b.Status, b.Message)
	}
	until(t, "the bot is told of the rest", func() bool { return len(h.came("change.decided")) == 1 && len(h.came("change.settled")) == 1 })
	until(t, "the channel is told", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.slack) >= 1 })

	// A receiver that does not answer well, and a process that is killed over it.
	h.set(http.StatusServiceUnavailable)
	second := ask(target.PlainJPY(1))
	run := func(args ...string) printed {
		p := begin(t, t.TempDir(), append(env, s.database()), append([]string{"notify"}, args...)...)
		return printed{code: p.wait(), out: p.stdout.String(), err: p.stderr.String()}
	}
	triedBot := regexp.MustCompile(`bot +approval_wanted +` + second + `.* 503`)
	until(t, "the bot was tried in vain", func() bool { return triedBot.MatchString(run("list").out) })
	s.kill()
	h.set(http.StatusOK)
	s.start()
	until(t, "it is tried again", func() bool { return len(h.came("change.approval_wanted")) >= 3 })
	if ids := h.came("change.approval_wanted"); ids[1] != ids[2] {
		t.Errorf("got the IDs %v, want the same for each try", ids[1:])
	}

	h.set(http.StatusGone)
	decide(second)
	until(t, "it is given up", func() bool { return givenUp.MatchString(run("list").out) })
	wantOutput(t, "list", run("list"), 0, "bot", "decided", second, "410")
	h.set(http.StatusOK)
	wantOutput(t, "retry", run("retry", "--all"), 0, "tried again")
	until(t, "it is told after all", func() bool { return len(h.came("change.decided")) >= 3 })
	said := s.stdout.String() + s.stderr.String()
	for _, secret := range []string{hookSecret, slackSecret} {
		if strings.Contains(said, secret) {
			t.Error("a secret was printed")
		}
	}
	reply, err := http.Get(s.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || !strings.Contains(string(text), `cutonce_notifications_total{outcome="delivered",receiver="bot"}`) || !strings.Contains(string(text), "cutonce_notify_lag_seconds ") {
		t.Errorf("got %v and no numbers of deliveries in the metrics", err)
	}
}

func TestNotifyCommands(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	env := receiverFile(t, h.URL)
	run := func(env []string, args ...string) printed {
		p := begin(t, t.TempDir(), env, append([]string{"notify"}, args...)...)
		return printed{code: p.wait(), out: p.stdout.String(), err: p.stderr.String()}
	}
	wantOutput(t, "check", run(env, "check"), 0, "bot", "everything", "webhook", "leads-slack", "ads-approvers", "slack", "approval_wanted, expiring, decided")
	if got := run(env, "test", "bot"); got.code != 0 || len(h.came("change.test")) != 1 {
		t.Errorf("got %+v and %v, want a test message", got, h.came("change.test"))
	}
	if got := run(env, "test", "leads-slack"); got.code != 0 || len(h.slack) != 1 || !strings.Contains(h.slack[0], "テスト通知") {
		t.Errorf("got %+v and %v, want a test message in Japanese", got, h.slack)
	}
	h.set(http.StatusInternalServerError)
	if got := run(env, "test", "bot"); got.code != 1 || !strings.Contains(got.err, "500") {
		t.Errorf("got %+v, want the answer", got)
	}
	for name, c := range map[string]struct {
		env  []string
		args []string
		want string
		code int
	}{
		"no file":          {nil, []string{"check"}, "CUTONCE_NOTIFY_FILE", exitUsage},
		"a file elsewhere": {[]string{"CUTONCE_NOTIFY_FILE=/nowhere.yaml"}, []string{"check"}, "/nowhere.yaml", exitUsage},
		"no secret":        {env[:1], []string{"check"}, "HOOK_SECRET", exitUsage},
		"no such receiver": {env, []string{"test", "nobody"}, "bot, leads-slack", 1},
		"no database":      {nil, []string{"list"}, "CUTONCE_DATABASE_URL", exitUsage},
		"no delivery":      {nil, []string{"retry"}, "which deliveries", exitUsage},
	} {
		if got := run(c.env, c.args...); got.code != c.code || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: got %+v, want exit code %d and %q", name, got, c.code, c.want)
		}
	}
}

func TestServeRefusesAFileOfReceiversThatItCannotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify.yaml")
	if err := os.WriteFile(path, []byte("receivers:\n  - {name: r, tenant: acme, groups: [g], urgent: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := refused(t, t.TempDir(), with(production(t), "CUTONCE_NOTIFY_FILE="+path), "serve"); !strings.Contains(said, "urgent") {
		t.Errorf("got %q, want the unknown key named", said)
	}
}

// database is the setting of the stage's database.
func (s *stage) database() string {
	s.t.Helper()
	for _, one := range s.env {
		if strings.HasPrefix(one, "CUTONCE_DATABASE_URL=") {
			return one
		}
	}
	s.t.Fatal("the stage has no database")
	return ""
}
