package main

import (
	"encoding/json"
	"fmt"

	"github.com/cutonce/cutonce/audit"
)

// moves are what each kind of event does: from which status to which. An event that is not here moves nothing.
var moves = map[string]struct {
	from []string
	to   string
}{
	"approval_requested": {[]string{needsApproval}, pending},
	"approved":           {[]string{pending}, approved},
	"rejected":           {[]string{pending, approved}, rejected},
	"canceled":           {[]string{needsApproval, pending, approved}, canceled},
	"expired":            {[]string{needsApproval, pending, approved}, expired},
	"sent_back":          {[]string{approved}, needsApproval},
	"claimed":            {[]string{approved}, applying},
	"not_sent":           {[]string{applying}, approved},
	"unknown":            {[]string{applying}, unknown},
	"lease_lapsed":       {[]string{applying}, unknown},
	"applied":            {[]string{applying, unknown}, applied},
	"not_applied":        {[]string{applying, unknown}, notApplied},
	"contradicted":       {[]string{notApplied}, applied},
}

// still are the events that move nothing.
var still = map[string]bool{"vote": true, "probed": true, "handed_over": true, "proposed": true}

// replay is the status that the events of one change lead to.
func replay(events []audit.Event) (string, error) {
	status := absent
	for _, e := range events {
		next, err := after(status, e)
		if err != nil {
			return status, fmt.Errorf("event %d, %s: %w", e.Seq, e.Kind, err)
		}
		status = next
	}
	return status, nil
}

func after(status string, e audit.Event) (string, error) {
	if e.Kind == "prepared" {
		return born(status, e)
	}
	if e.Kind == "resolved" {
		return resolved(status, e)
	}
	if still[e.Kind] {
		return status, nil
	}
	move, known := moves[e.Kind]
	if !known {
		return status, fmt.Errorf("the suite does not know such an event")
	}
	for _, from := range move.from {
		if status == from {
			return move.to, nil
		}
	}
	return status, fmt.Errorf("a change cannot come to %s from %s", move.to, status)
}

func born(status string, e audit.Event) (string, error) {
	var body struct{ Verdict string }
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return status, err
	}
	to, ok := map[string]string{"allow": approved, "require": needsApproval, "deny": denied}[body.Verdict]
	if status != absent || !ok {
		return status, fmt.Errorf("prepared with the verdict %q after %s", body.Verdict, status)
	}
	return to, nil
}

func resolved(status string, e audit.Event) (string, error) {
	var body struct{ Applied bool }
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return status, err
	}
	if status != unknown && status != applying {
		return status, fmt.Errorf("resolved from %s", status)
	}
	if body.Applied {
		return applied, nil
	}
	return notApplied, nil
}
