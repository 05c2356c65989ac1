package main

import (
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

// TestFreeze is an incident, with the program as operators have it.
func TestFreeze(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	flying := s.unlooked(target.PlainJPY(0), 12000)
	waiting := s.prepare(target.PlainJPY(1), 11000).PreviewID
	run := func(who string, args ...string) printed {
		return s.run(who, nil, append([]string{"freeze"}, args...)...)
	}

	set := run("oper", "set", "--action", "budget_change", "--reason", "the platform bills twice, OPS-118", "--for", "2h")
	wantOutput(t, "set", set, 0, "oper@agency.example has frozen the action budget_change until 20", "the platform bills twice, OPS-118. 1 change", "1 change was claimed before", flying)
	if b := s.apply(waiting); b.Code != "frozen" {
		t.Errorf("applying under the freeze: got %q %s, want frozen", b.Code, b.Message)
	}
	wantOutput(t, "why", s.changes("oper", nil, "why", waiting), 0, "oper@agency.example has frozen the action budget_change until 20", "Moves next: an operator")
	wantOutput(t, "list", run("kim", "list"), 0, "1 freeze is in force.", "the platform bills twice, OPS-118")
	wantOutput(t, "an approver lifts", run("kim", "lift", "--action", "budget_change"), exitRefused, "Only an operator")
	wantOutput(t, "everything by an operator", run("oper", "set", "--everything", "--reason", "all of it"), exitRefused, "admin")
	wantOutput(t, "misspelt", run("oper", "set", "--action", "budget_chnage", "--reason", "all of it"), exitRefused, "/name")
	wantOutput(t, "lift", run("oper", "lift", "--action", "budget_change", "--reason", "they mended it"), 0, "lifted")
	wantOutput(t, "lift again", run("oper", "lift", "--action", "budget_change"), exitRefused, "frozen")
	if b := s.apply(waiting); b.Status != "applied" {
		t.Errorf("after the thaw: got %s %s, want applied", b.Status, b.Message)
	}
	for name, args := range map[string][]string{
		"nothing named": {"set", "--reason", "why"}, "two named": {"lift", "--tenant", "--everything"}, "no reason": {"set", "--tenant"},
		"half a second": {"set", "--tenant", "--reason", "why not", "--for", "500ms"}, "no command": {"melt"},
	} {
		if got := run("oper", args...); got.code != exitUsage {
			t.Errorf("%s: got %+v, want wrong usage", name, got)
		}
	}
}
