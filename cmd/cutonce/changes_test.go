package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/target"
)

// TestChanges is a night's work of an operator, with the program as they have it.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.unlooked(target.PlainJPY(0), 12000)
	behind := s.prepare(target.PlainJPY(0), 13000).PreviewID
	open := s.prepare(target.PlainJPY(1), 11000).PreviewID

	list := s.changes("oper", nil, "list", "--status", "unknown,applying")
	wantOutput(t, "list", list, 0, "Shown: 1.", id+"  Outcome unknown (unknown)", target.PlainJPY(0), "+09:00")
	if strings.Contains(list.out, open) {
		t.Errorf("the list by status holds an approved change:\n%s", list.out)
	}
	page := s.changes("oper", nil, "list", "--limit", "1")
	cursor := find(t, page.out, `cutonce changes list --limit 1 --cursor (\S+)`)
	if next := s.changes("oper", nil, "list", "--limit", "1", "--cursor", cursor); !strings.Contains(next.out, behind) {
		t.Errorf("the next page: got %+v, want the change before the newest", next)
	}
	wantOutput(t, "by target", s.changes("oper", nil, "list", "--target", target.PlainJPY(1)), 0, open)

	show := s.changes("oper", nil, "show", id)
	key := find(t, show.out, `Key at the target \(search its log for it\): ([0-9a-f]{64})\n`)
	wantOutput(t, "show", show, 0, "Waiting behind it: "+behind, "PATCH /v1/campaigns/"+target.PlainJPY(0), "1. Send: no proof either way (unknown)",
		"10,000 JPY → 12,000 JPY", "dev-agent for sato@agency.example", "Claimed for sending", "Claimed: 20", "“Did not happen” counts from: 20",
		"cutonce changes resolve "+id)
	if tally, err := s.ads.CountersFor(t.Context(), key); err != nil || tally.Effects != 1 {
		t.Errorf("the platform knows %+v, %v under the key that was shown, want the effect", tally, err)
	}
	wantOutput(t, "why", s.changes("oper", nil, "why", id), 0, "Moves next: ", "Waiting behind it: "+behind)
	probe := s.changes("oper", nil, "probe", id)
	wantOutput(t, "probe", probe, 0, "at the preview 10,000 JPY, at the last look 12,000 JPY, requested 12,000 JPY", "Look-up: ")

	wantOutput(t, "the requester", s.changes("sato", nil, "probe", id), exitRefused, "")
	wantOutput(t, "no such change", s.changes("oper", nil, "show", "pv_1"), exitRefused, "")
	wantOutput(t, "a bad status", s.changes("oper", nil, "list", "--status", "unknwon"), exitRefused, "?status", "unknown, applied")
	wantOutput(t, "a short reason", s.changes("oper", nil, "resolve", id, "--applied", "--reason", "no", "--evidence", "ticket OPS-112"),
		exitRefused, "/reason")
	resolve := s.changes("oper", nil, "resolve", id, "--applied", "--reason", "the log has the key", "--evidence", "ticket OPS-112")
	wantOutput(t, "resolve", resolve, 0, "Applied (applied)", "Settled by: oper@agency.example", "Because: the log has the key", "Evidence: ticket OPS-112")
	wantOutput(t, "probing what is settled", s.changes("oper", nil, "probe", id), exitRefused, "")
	wantOutput(t, "nothing open", s.changes("oper", nil, "list", "--status", "unknown"), 0, "Nothing matches.")
	checkWaysToSay(t, s, id)
}

// checkWaysToSay looks at languages, machines' output and the token's two places.
func checkWaysToSay(t *testing.T, s *stage, id string) {
	t.Helper()
	for name, got := range map[string]printed{
		"by locale": s.changes("oper", []string{"LANG=ja_JP.UTF-8"}, "show", id),
		"by flag":   s.changes("oper", nil, "show", id, "--lang", "ja"),
	} {
		wantOutput(t, name, got, 0, "送信内容", "次に動く人", "対象: キャンペーン ")
	}
	wantOutput(t, "by the token", s.changes("oper", []string{"LANG=C"}, "why", id), 0, "Moves next: nobody")
	var body answer.Body
	decode(t, s.changes("oper", nil, "show", id, "--json").out, &body)
	if body.PreviewID != id || body.Change.Outcome.Key == "" || len(body.Change.Attempts) == 0 {
		t.Errorf("got %+v, want the service's answer as it is", body)
	}
	refused := s.changes("oper", nil, "show", "pv_1", "--json")
	var problem map[string]any
	if decode(t, refused.out, &problem); refused.code != exitRefused || problem["code"] != "not_found" || refused.err != "" {
		t.Errorf("got %+v, want the problem as it is, and the exit code of a refusal", refused)
	}
	byFile := s.changes("oper", []string{"CUTONCE_TOKEN=", "CUTONCE_URL="}, "why", id, "--url", s.url+"/", "--token-file", filepath.Join(s.tokens, "oper"))
	wantOutput(t, "a token file", byFile, 0, id)
	wantOutput(t, "another's token", s.changes("oper", []string{"CUTONCE_TOKEN=not.a.token"}, "why", id), exitRefused, "")
}

func wantOutput(t *testing.T, name string, got printed, code int, parts ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("%s: got exit code %d, want %d\n%s%s", name, got.code, code, got.out, got.err)
	}
	text := got.out
	if code != 0 {
		text = got.err
		if got.out != "" || !regexp.MustCompile(`(?m)^cutonce: .+\n`).MatchString(got.err) || !strings.Contains(got.err, "\n  ") {
			t.Errorf("%s: got %q and %q, want what was refused and what to do next, on standard error", name, got.out, got.err)
		}
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: got\n%s\nwant %q in it", name, text, part)
		}
	}
}

func TestChangesMisusedAndUnheard(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const url, token = "CUTONCE_URL=http://127.0.0.1:1", "CUTONCE_TOKEN=s3cr3t"
	for name, c := range map[string]struct {
		env, args []string
		code      int
		want      string
	}{
		"no URL":            {[]string{token}, []string{"list"}, exitUsage, "which service?"},
		"no token":          {[]string{url}, []string{"list"}, exitUsage, "with which token?"},
		"an empty token":    {[]string{url}, []string{"list", "--token-file", empty}, exitUsage, "is empty"},
		"plain http":        {[]string{"CUTONCE_URL=http://cutonce.example", token}, []string{"list"}, exitUsage, "plain http"},
		"no such command":   {[]string{url, token}, []string{"delete"}, exitUsage, "list, show, why, probe or resolve"},
		"no ID":             {[]string{url, token}, []string{"show"}, exitUsage, "which change?"},
		"an unknown flag":   {[]string{url, token}, []string{"list", "--al"}, exitUsage, "--al"},
		"no outcome":        {[]string{url, token}, []string{"resolve", "pv_1", "--reason", "r", "--evidence", "e"}, exitUsage, "--applied or --not-applied"},
		"both outcomes":     {[]string{url, token}, []string{"resolve", "pv_1", "--applied", "--not-applied"}, exitUsage, "--applied or --not-applied"},
		"no reason":         {[]string{url, token}, []string{"resolve", "pv_1", "--applied", "--evidence", "e"}, exitUsage, "--reason"},
		"no evidence":       {[]string{url, token}, []string{"resolve", "pv_1", "--applied", "--reason", "r"}, exitUsage, "--evidence"},
		"nobody there":      {[]string{url, token}, []string{"probe", "pv_1"}, exitNotHeard, "The service was not reached"},
		"a language":        {[]string{url, token}, []string{"list", "--lang", "fr"}, exitUsage, "--lang en or"},
		"nobody to read":    {[]string{url, token}, []string{"list"}, exitNotHeard, "The service was not reached.\n"},
		"somebody else":     {[]string{"CUTONCE_URL=" + elsewhere.URL, token}, []string{"list", "--lang", "ja"}, exitNotHeard, "サービスに接続できませんでした"},
		"not known if told": {[]string{url, token}, []string{"resolve", "pv_1", "--applied", "--reason", "seen it", "--evidence", "log"}, exitNotHeard, "it is not known whether it heard"},
	} {
		p := begin(t, dir, c.env, append([]string{"changes"}, c.args...)...)
		if code := p.wait(); code != c.code {
			t.Errorf("%s: got exit code %d, want %d", name, code, c.code)
		}
		said := p.stderr.String()
		if !strings.HasPrefix(said, "cutonce: ") || !strings.Contains(said, c.want) || strings.Contains(said, "s3cr3t") || p.stdout.String() != "" {
			t.Errorf("%s: got %q, want %q, no token, and nothing on standard output", name, said, c.want)
		}
	}
}
