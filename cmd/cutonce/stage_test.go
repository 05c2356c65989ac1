package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/target"
)

// stage is one development instance in a process of its own, upon a Postgres and a counting ad platform that outlive it.
type stage struct {
	t           *testing.T
	dir, listen string
	env         []string
	ads         target.Control
	// The rest is of the present process.
	*process
	url, metrics, tokens string
	links                map[string]string // by role
}

// stageClocks leave time to look at what is being applied, and none to spare.
var stageClocks = map[string]string{
	"SEND": "3s", "LEASE": "5s", "SEND_MARGIN": "500ms", "SETTLE": "500ms", "SWEEP": "300ms", "PROBE_BASE": "200ms", "APPLY_WAIT": "20s",
}

func newStage(t *testing.T, settings ...string) *stage {
	t.Helper()
	const credential = "the-credential-of-the-simulator"
	ads := begin(t, t.TempDir(), []string{targetToken + "=" + credential}, "target", "ads", "--listen", "127.0.0.1:0")
	s := &stage{
		t: t, dir: t.TempDir(), listen: "127.0.0.1:0",
		ads: target.Control{BaseURL: ads.saw(ads.stderr, `url=(http://\S+)\n`)[1], Token: credential},
		env: append(settings, targetToken+"="+credential, "CUTONCE_DATABASE_URL="+pgtest.URL(t), "CUTONCE_ALLOW_UNSAFE_DATABASE=development"),
	}
	for name, value := range stageClocks {
		s.env = append([]string{"CUTONCE_CLOCK_" + name + "=" + value}, s.env...) // a test's own settings come later and win
	}
	s.start()
	return s
}

// start runs the instance, at the same address as before.
func (s *stage) start() {
	s.t.Helper()
	s.process = begin(s.t, s.dir, s.env, "dev", "--listen", s.listen, "--metrics-listen", "127.0.0.1:0", "--ads-url", s.ads.BaseURL,
		"--deploys-listen", "127.0.0.1:0")
	s.saw(s.stdout, `ready in`)
	said := s.stdout.String()
	s.listen = find(s.t, said, `Console +http://([0-9.:]+)/\n`)
	s.url, s.metrics = "http://"+s.listen, find(s.t, said, `Metrics +(\S+)\n`)
	s.tokens, s.links = find(s.t, said, `is in a file of (\S+),`), map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  .*\((\w+)[^()]*\)\n +(http://\S+)$`).FindAllStringSubmatch(said, -1) {
		s.links[m[1]] = m[2]
	}
}

// kill ends the instance as a power cut would.
func (s *stage) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	s.wait()
}

func (s *stage) token(person string) string {
	s.t.Helper()
	token, err := os.ReadFile(filepath.Join(s.tokens, person))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

func (s *stage) as(person string) demoPerson { return demoPerson{s.url, s.token(person)} }

// mcp is the agent as its host would connect it.
func (s *stage) mcp() *demoAgent {
	s.t.Helper()
	a, err := newDemoAgent(s.t.Context(), s.url, s.token("agent"))
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *stage) get(person, path string) answer.Body {
	s.t.Helper()
	b, err := s.as(person).get(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *stage) post(person, path string, in any) answer.Body {
	s.t.Helper()
	b, err := s.as(person).post(s.t.Context(), path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// change reads a change in detail, as an operator.
func (s *stage) change(id string) answer.Change {
	s.t.Helper()
	return *s.get("oper", "/v1/previews/"+id+"?response_format=detailed").Change
}

// prepare asks for a campaign's daily budget in yen.
func (s *stage) prepare(campaign string, yen int) answer.Body {
	s.t.Helper()
	return s.post("agent", "/v1/actions/budget_change/previews", map[string]any{
		"campaign_id": campaign, "new_daily_budget_jpy": yen, "reason": "Autumn campaign plan, week 48",
	})
}

func (s *stage) apply(id string) answer.Body {
	s.t.Helper()
	return s.post("agent", "/v1/previews/"+id+"/apply", map[string]any{})
}

// fault scripts the platform.
func (s *stage) fault(faults ...target.Fault) {
	s.t.Helper()
	if err := s.ads.AddFault(s.t.Context(), faults...); err != nil {
		s.t.Fatal(err)
	}
}

// held waits until the platform has got a change and sits on it.
func (s *stage) held(campaign string) {
	s.t.Helper()
	e := target.Event{Stage: target.StageHeld, Match: target.Match{Op: target.OpChange, Resource: campaign}}
	if err := s.ads.Wait(s.t.Context(), e, 1); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) release() {
	s.t.Helper()
	if err := s.ads.Release(s.t.Context(), ""); err != nil {
		s.t.Fatal(err)
	}
}

// tally is what the platform itself counted for a campaign.
func (s *stage) tally(campaign string) target.Tally {
	s.t.Helper()
	counters, err := s.ads.Counters(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return counters.ByResource[campaign]
}

// page reads a page of the console, signed in by the role's link.
func (s *stage) page(role, path string) string {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	browser := http.Client{Jar: jar, Timeout: time.Minute}
	for _, at := range []string{s.links[role], s.url + path} {
		reply, err := browser.Get(at)
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: got %d, %v", at, reply.StatusCode, err)
		}
		if at == s.url+path {
			return string(text)
		}
	}
	return ""
}

// metric is one number of /metrics.
func (s *stage) metric(name string) string {
	s.t.Helper()
	reply, err := http.Get(s.metrics)
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// printed is what a command printed, and its exit code.
type printed struct {
	code     int
	out, err string
}

// changes runs `cutonce changes` as somebody, with nothing but a URL and a token. env wins.
func (s *stage) changes(person string, env []string, args ...string) printed {
	s.t.Helper()
	return s.run(person, env, append([]string{"changes"}, args...)...)
}

// run is the program, asking the stage's service as a person.
func (s *stage) run(person string, env []string, args ...string) printed {
	s.t.Helper()
	given := append([]string{"CUTONCE_URL=" + s.url, "CUTONCE_TOKEN=" + s.token(person), "LANG=en_US.UTF-8", "TZ=Asia/Tokyo"}, env...)
	p := begin(s.t, s.dir, given, args...)
	return printed{code: p.wait(), out: p.stdout.String(), err: p.stderr.String()}
}

// unlooked makes a change whose effect happened, whose reply was lost, and which nobody can look up.
func (s *stage) unlooked(campaign string, yen int) string {
	s.t.Helper()
	s.fault(
		target.Fault{Match: target.Match{Op: target.OpLookup, Resource: campaign}, Times: target.Forever, Do: []target.Step{{Action: target.HideLookup}}},
		target.Once(target.OpChange, campaign, target.Step{Action: target.DropAfter}),
	)
	id := s.prepare(campaign, yen).PreviewID
	if b := s.apply(id); b.Status != string(commit.StatusUnknown) || b.Code != "outcome_unknown" {
		s.t.Fatalf("apply: got %s %s, want unknown", b.Status, b.Code)
	}
	return id
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
