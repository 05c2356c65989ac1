package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cutonce/cutonce/connector/trial"
	"github.com/cutonce/cutonce/internal/target"
)

func TestConnectorTestOnASimulator(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"budget_change", "deploys"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, t.TempDir(), []string{"CUTONCE_ADS_HONOURS_KEYS=true", "CUTONCE_DEPLOYS_HONOURS_KEYS=true"}, "connector", "test", name, "--simulator", "--json")
			if code := p.wait(); code != 0 {
				t.Errorf("got exit code %d, want 0: %s", code, p.stdout)
			}
			var r trial.Report
			if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
				t.Fatal(err)
			}
			if len(r.Results) < 9 || r.Count(trial.Pass) != len(r.Results) {
				t.Errorf("got %d PASS of %d, want all", r.Count(trial.Pass), len(r.Results))
			}
		})
	}
}

// A target that nobody called a sandbox is not even dialled, whatever flags there are.
func TestConnectorTestSendsNothingWithoutASandbox(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			_ = conn.Close()
		}
	}()
	input := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(input, []byte(`{"campaign_id":"2001001","new_daily_budget_jpy":12000,"reason":"a trial"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"CUTONCE_ADS_URL=http://" + listener.Addr().String(), "CUTONCE_ADS_TOKEN=x", "CUTONCE_ADS_SYSTEM=ads.example/real"}
	p := begin(t, t.TempDir(), env, "connector", "test", "ads", "--input", input, "--for", target.UserSato)
	if code := p.wait(); code != 3 {
		t.Errorf("got exit code %d, want 3: nothing was shown", code)
	}
	_ = listener.Close()
	<-ended
	if n := dialled.Load(); n != 0 {
		t.Errorf("the target was dialled %d times, want never", n)
	}
	if said := p.stdout.String(); strings.Count(said, "the target is not declared a sandbox, so nothing is sent to it") < 8 {
		t.Errorf("got %s, want the reason at each check", said)
	}
}

// A declared sandbox is another process here. It is put back after each check.
func TestConnectorTestOnASandbox(t *testing.T) {
	t.Parallel()
	const token = "the-sandbox-credential"
	sim := begin(t, t.TempDir(), []string{targetToken + "=" + token}, "target", "ads", "--listen", "127.0.0.1:0")
	control := target.Control{BaseURL: sim.saw(sim.stderr, `url=(http://[0-9.:]+)`)[1], Token: token}
	id := target.PlainJPY(0)
	before, err := control.Campaign(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "input.json"), []byte(`{"campaign_id":"`+id+`","new_daily_budget_jpy":12000,"reason":"a trial"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{
		"CUTONCE_ADS_URL=" + control.BaseURL, "CUTONCE_ADS_TOKEN=" + token, "CUTONCE_ADS_SYSTEM=ads.example/sandbox", "CUTONCE_ADS_SANDBOX=true",
		"CUTONCE_ADS_SETTLE=1s",
	}
	p := begin(t, dir, env, "connector", "test", "ads", "--input", "input.json", "--for", target.UserSato)
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	if said := p.stdout.String(); !strings.Contains(said, "11 PASS, 0 FAIL, 1 N-A of 12") || !strings.Contains(said, "settles by itself:\n      yes (look-up by key") {
		t.Errorf("got %s, want all checks passed and the guarantee", said)
	}
	after, err := control.Campaign(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if after.DailyBudget != before.DailyBudget {
		t.Errorf("got the budget %s afterwards, want %s as before", after.DailyBudget, before.DailyBudget)
	}
}

func TestConnectorTestRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"an unknown name": {nil, []string{"nope", "--simulator"}, "budget_change (ads), deployment_rollback (deploys)"},
		"no target":       {nil, []string{"ads"}, "CUTONCE_ADS_URL"},
		"a sandbox without input": {
			[]string{"CUTONCE_ADS_URL=http://127.0.0.1:1", "CUTONCE_ADS_TOKEN=x", "CUTONCE_ADS_SYSTEM=s", "CUTONCE_ADS_SANDBOX=true"}, []string{"ads"}, "--input",
		},
		"an unknown setting": {[]string{"CUTONCE_ADS_SANDBOXX=true"}, []string{"ads", "--simulator"}, "CUTONCE_ADS_SANDBOX"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, t.TempDir(), c.env, append([]string{"connector", "test"}, c.args...)...)
			if code := p.wait(); code != 2 {
				t.Errorf("got exit code %d, want 2", code)
			}
			if said := p.stderr.String(); !strings.Contains(said, c.want) {
				t.Errorf("got %q, want %q in it", said, c.want)
			}
		})
	}
}
