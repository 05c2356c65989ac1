package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/target"
)

// bridged is a client at a bridge that was started with nothing in its environment but env.
type bridged struct {
	*mcp.ClientSession
	cmd            *exec.Cmd
	stdout, stderr *watched
}

func startBridge(t *testing.T, version string, env ...string) bridged {
	t.Helper()
	b := bridged{cmd: exec.Command(binary, "mcp"), stdout: newWatched(), stderr: newWatched()}
	b.cmd.Env, b.cmd.Dir, b.cmd.Stderr = env, t.TempDir(), b.stderr
	reads, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	writes, err := b.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	tee := struct {
		io.Reader
		io.Closer
	}{io.TeeReader(reads, b.stdout), reads}
	b.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: tee, Writer: writes}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting to the bridge: %v\n%s", err, b.stderr)
	}
	return b
}

func (b bridged) call(t *testing.T, tool string, arguments map[string]any) answer.Body {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var body answer.Body
	if err := (&demoAgent{session: b.ClientSession}).callInto(ctx, tool, arguments, &body); err != nil {
		t.Fatalf("%v\n%s", err, b.stderr)
	}
	return body
}

// end hangs up. The bridge must end by itself, having written nothing but the protocol.
func (b bridged) end(t *testing.T) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the bridge ended with %v, want none", err)
	}
	for line := range bytes.Lines([]byte(b.stdout.String())) {
		var m struct {
			Version string `json:"jsonrpc"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
			t.Errorf("standard output holds %q, want nothing but the protocol", line)
		}
	}
}

// The bridge needs a URL and a token, and nothing else: no database, no key, no PATH, no home.
func TestBridgeWithNothingElse(t *testing.T) {
	t.Parallel()
	s := newHome(t).start(t, anywhere)
	url := "http://" + s.at.main
	direct, err := newDemoAgent(t.Context(), url, s.token)
	if err != nil {
		t.Fatal(err)
	}
	want, err := direct.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var last bridged
	for i, version := range []string{"2026-07-28", "2025-11-25"} {
		b := startBridge(t, version, "CUTONCE_URL="+url, "CUTONCE_TOKEN="+s.token)
		if got := b.InitializeResult(); got.ProtocolVersion != version || got.Instructions == "" {
			t.Errorf("got protocol %s and instructions %q, want %s and the service's", got.ProtocolVersion, got.Instructions, version)
		}
		got, err := b.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(names(want), names(got)); diff != "" || len(got.Tools) == 0 {
			t.Errorf("%s: the tools are not the service's: %s", version, diff)
		}
		p := b.call(t, "budget_change_preview", map[string]any{
			"campaign_id": target.PlainJPY(i), "new_daily_budget_jpy": 12000, "reason": "Autumn campaign plan, week 48",
		})
		id := map[string]any{"preview_id": p.PreviewID}
		for _, tool := range []string{"budget_change_apply", "budget_change_apply", "change_status"} {
			if a := b.call(t, tool, id); a.Status != "applied" || a.Code != "" {
				t.Errorf("%s: %s: got %s %s (%s), want applied", version, tool, a.Status, a.Code, a.Message)
			}
		}
		if i == 0 {
			b.end(t)
		}
		last = b
	}
	s.signal(syscall.SIGTERM)
	s.wait()
	a := last.call(t, "budget_change_apply", map[string]any{"preview_id": "pv_1"})
	if a.Code != "target_unavailable" || a.Next != "retry_later" || a.NextTool != "budget_change_apply" || a.Retryable == nil || !*a.Retryable {
		t.Errorf("the service is down: got %+v, want that nothing was sent, and to call again", a)
	}
	last.end(t)
	if said := last.stderr.String(); strings.Count(said, "\n") != 1 || strings.Contains(said, s.token) {
		t.Errorf("got %q on standard error, want one line, without the token", said)
	}
}

func names(l *mcp.ListToolsResult) (out []string) {
	for _, tool := range l.Tools {
		out = append(out, tool.Name)
	}
	return out
}

func TestBridgeRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const url, token = "CUTONCE_URL=http://127.0.0.1:1", "CUTONCE_TOKEN=s3cr3t"
	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"no URL":           {env: []string{token}, want: "which service?"},
		"no token":         {env: []string{url}, want: "with which token?"},
		"plain http":       {env: []string{"CUTONCE_URL=http://cutonce.example", token}, want: "plain http to cutonce.example"},
		"two tokens":       {env: []string{url, token}, args: []string{"--token-file", empty}, want: "which one?"},
		"an empty file":    {env: []string{url, "CUTONCE_TOKEN_FILE=" + empty}, want: "is empty"},
		"a missing file":   {env: []string{url}, args: []string{"--token-file", dir + "/none"}, want: "reading the token"},
		"a database":       {env: []string{url, token, "CUTONCE_DATABASE_URL=postgres://u:s3cr3t@h/d"}, want: "unset CUTONCE_DATABASE_URL,"},
		"a key and others": {env: []string{url, token, "CUTONCE_SECRET=s3cr3t", "CUTONCE_ADS_TOKEN=s3cr3t"}, want: "unset CUTONCE_ADS_TOKEN, CUTONCE_SECRET,"},
		"a misspelt one":   {env: []string{url, token, "CUTONCE_TOKENS=s3cr3t"}, want: "unset CUTONCE_TOKENS,"},
	} {
		p := begin(t, dir, c.env, append([]string{"mcp"}, c.args...)...)
		if code := p.wait(); code != 1 {
			t.Errorf("%s: got exit code %d, want 1", name, code)
		}
		said := p.stderr.String()
		if !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 || strings.Contains(said, "s3cr3t") || p.stdout.String() != "" {
			t.Errorf("%s: got %q, want one line with %q and no secret, and nothing on standard output", name, said, c.want)
		}
	}
}
