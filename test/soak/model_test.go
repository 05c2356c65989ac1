package main

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// told is an answered call of a history; the calls of a test come one after the other unless they say otherwise.
func told(at int, op Op, who, code, status string) Call {
	http := 200
	if code != "" {
		http = 409
	}
	if code == "outcome_unknown" {
		http = 504
	}
	return Call{Op: op, Who: who, Began: time.Duration(at), Ended: time.Duration(at + 1), HTTP: http, Code: code, Status: status}
}

// unanswered is a call whose reply was lost.
func unanswered(at int, op Op, who string) Call {
	return Call{Op: op, Who: who, Began: time.Duration(at), Lost: "cut"}
}

// TestTheModelExplainsWhatMayBeAndNothingElse holds the checker's positive controls: a history that no promise allows must be
// refused, one that the promises allow must not be.
func TestTheModelExplainsWhatMayBeAndNothingElse(t *testing.T) {
	t.Parallel()
	automatic := told(1, Prepare, "agent", "", approved)
	asked := []Call{told(1, Prepare, "agent", "", needsApproval), told(3, Request, "agent", "", pending)}
	agreed := append(slices.Clone(asked), told(5, Approve, "kim", "", approved))
	late := told(2, Apply, "agent", "", applied)
	late.Ended = 20
	for name, test := range map[string]struct {
		calls []Call
		want  bool
	}{
		"applied":                     {[]Call{automatic, told(3, Apply, "agent", "", applied), told(5, Apply, "agent", "", applied)}, true},
		"seen as under way meanwhile": {[]Call{automatic, late, told(4, Read, "kim", "", applying), told(6, Read, "kim", "", unknown)}, true},
		"never left, and applied again": {[]Call{
			automatic, told(3, Apply, "agent", "target_unavailable", approved), told(5, Apply, "agent", "", applied)}, true},
		"applied by a call whose reply was lost": {[]Call{automatic, unanswered(3, Apply, "agent"), told(9, Read, "kim", "", applied)}, true},
		"approved by a call whose reply was lost": {append(slices.Clone(asked), unanswered(5, Approve, "kim"),
			told(7, Apply, "agent", "approval_required", pending), told(9, Apply, "agent", "", applied)), true},
		"a prepare that was lost and repeated": {[]Call{unanswered(1, Prepare, "agent"), told(3, Prepare, "agent", "", approved)}, true},
		"not applied, contradicted": {[]Call{
			automatic, told(3, Apply, "agent", "outcome_unknown", unknown), told(5, Read, "kim", "", notApplied), told(7, Read, "kim", "", applied)}, true},
		"a veto":                        {append(slices.Clone(agreed), told(7, Reject, "kim", "", rejected), told(9, Apply, "agent", "rejected", rejected)), true},
		"a veto that came too late":     {append(slices.Clone(agreed), told(7, Apply, "agent", "", applied), told(9, Reject, "kim", "in_progress", applied)), true},
		"a vote repeated":               {append(slices.Clone(agreed), told(7, Apply, "agent", "", applied), told(9, Approve, "kim", "", applied)), true},
		"expired by itself":             {[]Call{automatic, told(3, Apply, "agent", "expired", expired), told(5, Cancel, "agent", "expired", expired)}, true},
		"an internal error, heard late": {[]Call{automatic, {Op: Cancel, Who: "agent", Began: 3, Ended: 4, HTTP: 500, Code: "internal", Status: approved}, told(9, Read, "kim", "", canceled)}, true},

		"applied without an apply":            {[]Call{automatic, told(3, Read, "kim", "", applied)}, false},
		"applied and then not":                {[]Call{automatic, told(3, Apply, "agent", "", applied), told(5, Read, "kim", "", notApplied)}, false},
		"unknown and then approved":           {[]Call{automatic, told(3, Apply, "agent", "outcome_unknown", unknown), told(5, Read, "kim", "", approved)}, false},
		"applied after a veto":                {append(slices.Clone(agreed), told(7, Reject, "kim", "", rejected), told(9, Apply, "agent", "", applied)), false},
		"canceled, and approved afterwards":   {[]Call{automatic, told(3, Cancel, "agent", "", canceled), told(5, Read, "kim", "", approved)}, false},
		"canceled while applied":              {[]Call{automatic, told(3, Apply, "agent", "", applied), told(5, Cancel, "agent", "", applied)}, false},
		"an acknowledged approval lost":       {append(slices.Clone(agreed), told(7, Read, "kim", "", pending)), false},
		"an acknowledged preparation lost":    {append(slices.Clone(asked), told(7, Prepare, "agent", "", needsApproval)), false},
		"approved by nobody":                  {append(slices.Clone(asked), told(5, Read, "kim", "", approved)), false},
		"applied while it needs an approval":  {append(slices.Clone(asked), unanswered(5, Apply, "agent"), told(9, Read, "kim", "", applied)), false},
		"expired and then applied":            {[]Call{automatic, told(3, Read, "kim", "", expired), told(5, Apply, "agent", "", applied)}, false},
		"told expired, but alive":             {[]Call{automatic, told(3, Cancel, "agent", "expired", approved)}, false},
		"told under way, but not even tried":  {[]Call{automatic, told(3, Cancel, "agent", "in_progress", approved)}, false},
		"a busy target, and applied":          {[]Call{automatic, told(3, Apply, "agent", "target_busy", approved), told(5, Read, "kim", "", applied)}, false},
		"denied and applied":                  {[]Call{told(1, Prepare, "agent", "policy_denied", denied), unanswered(3, Apply, "agent"), told(5, Read, "kim", "", applied)}, false},
		"a second opinion of the same person": {append(slices.Clone(agreed), told(7, Reject, "kim", "", rejected), told(9, Approve, "kim", "", rejected)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := porcupine.CheckOperationsTimeout(model, operations(test.calls), patience)
			if got == porcupine.Unknown || (got == porcupine.Ok) != test.want {
				t.Errorf("got %s, want explained: %v", got, test.want)
			}
		})
	}
}
