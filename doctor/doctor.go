// Package doctor looks at a deployment before it serves, and says what to mend.
//
// It promises that it changes nothing: the database is read in a transaction that can only read, identity providers are asked for
// what they publish, and of targets only the host is dialled. Nothing is sent to them, no credential is shown to anybody, and what
// was not looked at is said. A finding is ok, a warning, or a failure, and then it says what to do.
//
// It does not promise that a deployment works: that is what verify shows. Start at Run and Checks.
package doctor

import (
	"context"
	"fmt"
	"strings"
)

// Level is how a finding is to be taken.
type Level string

// The levels. A failure is what serve refuses, or what breaks the promise; a warning is what its operator should know.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Failed  Level = "failed"
)

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Says  string `json:"says"`
	// Fix is what to do, empty where there is nothing.
	Fix string `json:"fix,omitempty"`
}

// String is the finding as one line.
func (f Finding) String() string {
	line := fmt.Sprintf("%-7s  %s: %s", f.Level, f.Check, f.Says)
	if f.Fix != "" {
		line += "; to do: " + f.Fix
	}
	return line
}

// Report is everything that was found.
type Report struct {
	Findings []Finding `json:"findings"`
	OK       int       `json:"ok"`
	Warnings int       `json:"warnings"`
	Failed   int       `json:"failed"`
	Code     int       `json:"exit_code"`
}

// Summary is the report's last line.
func (r Report) Summary() string {
	return fmt.Sprintf("doctor: %d ok, %d warnings, %d failed", r.OK, r.Warnings, r.Failed)
}

// Check looks at one thing.
type Check struct {
	Name string
	Look func(ctx context.Context, see *Seen)
}

// Seen collects what a check finds.
type Seen struct {
	check string
	found func(Finding)
}

func (s *Seen) ok(format string, args ...any) {
	s.found(Finding{Check: s.check, Level: OK, Says: fmt.Sprintf(format, args...)})
}

func (s *Seen) warn(fix, format string, args ...any) {
	s.found(Finding{Check: s.check, Level: Warning, Says: fmt.Sprintf(format, args...), Fix: fix})
}

func (s *Seen) fail(fix, format string, args ...any) {
	s.found(Finding{Check: s.check, Level: Failed, Says: fmt.Sprintf(format, args...), Fix: fix})
}

// unseen says that something was not looked at, and why.
func (s *Seen) unseen(why error) { s.warn("mend that first", "not looked at: %v", why) }

// Run looks at all of it, in order, and tells each finding as it comes.
func Run(ctx context.Context, checks []Check, told func(Finding)) Report {
	r := Report{Findings: []Finding{}}
	for _, c := range checks {
		c.Look(ctx, &Seen{check: c.Name, found: func(f Finding) {
			f.Says = strings.Join(strings.Fields(f.Says), " ") // an error may have lines of its own
			r.Findings = append(r.Findings, f)
			r.count(f.Level)
			told(f)
		}})
	}
	return r
}

func (r *Report) count(l Level) {
	switch l {
	case OK:
		r.OK++
	case Warning:
		r.Warnings++
	case Failed:
		r.Failed, r.Code = r.Failed+1, 1
	}
}
