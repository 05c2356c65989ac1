package main

import (
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

// TestApprovers is somebody's last day, with the program as admins have it.
func TestApprovers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.approved(target.PlainJPY(0), 90000) // by kim
	run := func(who string, args ...string) printed {
		return s.run(who, nil, append([]string{"approvers"}, args...)...)
	}
	wantOutput(t, "by an operator", run("oper", "remove", "kim@agency.example", "--reason", "left the agency"), exitRefused, "Only an admin")
	wantOutput(t, "remove", run("admin", "remove", "Kim@agency.example", "--reason", "left the agency"), 0,
		"admin@agency.example has removed Kim@agency.example as an approver: left the agency. 1 open change has lost an approval")
	wantOutput(t, "list", run("auditor", "list"), 0, "1 approver is removed.", "left the agency")
	wantOutput(t, "why", s.changes("oper", nil, "why", id), 0, "is no approver any more")
	if b := s.apply(id); b.Code != "approval_required" || b.Change.Status != "needs_approval" {
		t.Errorf("applying: got %q %s, want approval_required", b.Code, b.Message)
	}
	wantOutput(t, "restore", run("admin", "restore", "kim@agency.example", "--reason", "came back"), 0, "may approve again")
	wantOutput(t, "restore again", run("admin", "restore", "kim@agency.example"), exitRefused, "Nobody of that name")
	wantOutput(t, "the trail", s.run("admin", []string{}, "approvers", "list"), 0, "0 approvers are removed.")
	for name, args := range map[string][]string{
		"nobody named": {"remove", "--reason", "left the agency"}, "no reason": {"remove", "kim"}, "two": {"restore", "kim", "lee"}, "no command": {"fire"},
	} {
		if got := run("admin", args...); got.code != exitUsage {
			t.Errorf("%s: got %+v, want wrong usage", name, got)
		}
	}
}
