package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/examples/policies"
)

// here runs a command inside this process.
func here(t *testing.T, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err := cmd.ExecuteContext(t.Context())
	var ended exitCode
	switch {
	case errors.As(err, &ended):
		code = int(ended)
	case err != nil:
		t.Fatalf("%v: %v", args, err)
	}
	return code, stdout.String(), stderr.String()
}

func TestPolicyTestSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, policies.FS); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := here(t, "policy", "test", dir); code != 0 || out != "policy: 12/12 cases ok\n" {
		t.Errorf("the shipped policy: got %d, %q", code, out)
	}
	edit(t, filepath.Join(dir, "budgets.yaml"), "percent(50)", "percent(40)")
	const want = `budgets.test.yaml: exactly +50 % is automatic
  verdict
    - expected allow
    + got      require
  rule
    - expected small-change
    + got      large-raise
  large-raise saw before.daily_budget = 200,000 KRW, change.daily_budget = +50%
policy: 11/12 cases ok
`
	if code, out, _ := here(t, "policy", "test", dir); code != 1 || out != want {
		t.Errorf("a stricter policy: got %d, %s, want 1, %s", code, out, want)
	}
	code, out, _ := here(t, "policy", "test", "--json", dir)
	var report policyReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || report.OK != 11 || report.Total != 12 || report.Code != 1 ||
		len(report.Cases[0].Differences) != 2 || report.Cases[0].OK || !report.Cases[1].OK {
		t.Errorf("as JSON: got %d, %v, %s", code, err, out)
	}
}

func TestPolicyTestRefusesWhatShowsNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(dir string)
		says  string
	}{
		"no policy":         {func(dir string) { remove(t, dir, "budgets.yaml", "rollback.yaml") }, "no policy file"},
		"no cases":          {func(dir string) { remove(t, dir, "budgets.test.yaml", "rollback.test.yaml") }, "there are no cases"},
		"an unknown key":    {func(dir string) { edit(t, filepath.Join(dir, "budgets.test.yaml"), "    before:", "    befor:") }, "befor"},
		"an unknown action": {func(dir string) { edit(t, filepath.Join(dir, "budgets.yaml"), "[budget_change]", "[budget_chnage]") }, "budget_chnage"},
		"another currency": {func(dir string) {
			edit(t, filepath.Join(dir, "budgets.yaml"), "daily_budget.krw > krw(", "daily_budget.krw > jpy(")
		}, "ceiling"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, policies.FS); err != nil {
			t.Fatal(err)
		}
		tc.spoil(dir)
		if code, out, problems := here(t, "policy", "test", dir); code != 2 || !strings.Contains(problems, tc.says) {
			t.Errorf("%s: got %d, %q, %q, want 2 and %q", name, code, out, problems, tc.says)
		}
	}
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func edit(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), from, to)
	if changed == string(text) {
		t.Fatalf("%s does not hold %q", file, from)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}
