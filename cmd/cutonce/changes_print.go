package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/visible"
)

// screen writes lines for people. What comes from outside may hold anything, so every hidden character is made visible.
type screen struct{ io.Writer }

func (s screen) line(format string, args ...any) {
	fmt.Fprintln(s, visible.Text(fmt.Sprintf(format, args...)))
}

// apart leaves a line free before.
func (s screen) apart(format string, args ...any) {
	fmt.Fprintln(s)
	s.line(format, args...)
}

// stamp is a time in the viewer's own zone, with its offset.
func stamp(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05 -07:00") }

// fact is a labelled line, left out where there is nothing to say.
func (o *operating) fact(key, value string) {
	if value != "" {
		o.out.line("  %s: %s", o.t("cli."+key, nil), value)
	}
}

func (o *operating) when(key string, at *time.Time) {
	if at != nil {
		o.fact(key, stamp(*at))
	}
}

func (o *operating) heading(key string) { o.out.apart("%s", o.t("cli."+key, nil)) }

// word is a name of the service's in the reader's language, or the name itself.
func (o *operating) word(family, name string) string {
	if text := o.t(family+name, nil); text != family+name {
		return text
	}
	return name
}

func (o *operating) printList(page answer.Changes, l listFlags) {
	o.out.line("%s", page.Message)
	for _, c := range page.Items {
		o.printRow(c)
	}
	if page.NextCursor != "" {
		o.out.apart("%s", o.t("cli.more", nil))
		o.out.line("  cutonce changes list%s --cursor %s", l.again(), page.NextCursor)
	}
}

// again is how the same list is asked for.
func (l listFlags) again() string {
	again := ""
	if l.status != "" {
		again += " --status " + l.status
	}
	if l.needsOperator {
		again += " --needs-operator"
	}
	if l.target != "" {
		again += " --target " + l.target
	}
	return again + fmt.Sprintf(" --limit %d", l.limit)
}

func (o *operating) printRow(c answer.Change) {
	note := ""
	if out := c.Outcome; out != nil {
		switch {
		case out.Statement != nil:
			note = " · " + o.t("cli.waits_for_second", map[string]any{"by": out.Statement.Name})
		case out.NeedsOperator:
			note = " · " + o.t("web.outcomes.operator", nil)
		case out.Contradicted:
			note = " · " + o.t("cli.contradicted", nil)
		}
	}
	o.out.apart("%s  %s (%s)%s", c.PreviewID, o.word("web.status.", c.Status), c.Status, note)
	o.out.line("  %s", c.Summary)
	o.out.line("  %s: %s", o.t("cli.target", nil), o.targetLine(c.Target))
	if c.Outcome != nil {
		o.when("claimed", c.Outcome.StartedAt)
	} else {
		o.when("prepared", c.CreatedAt)
	}
}

func (o *operating) targetLine(t answer.Target) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s @ %s", o.word("cli.kind.", t.Kind), t.ID, t.Name, t.System))
}

func (o *operating) printWhole(b answer.Body, y answer.Why) {
	c := *b.Change
	o.out.line("%s  %s (%s)", c.PreviewID, o.word("web.status.", c.Status), c.Status)
	o.out.line("%s", b.Message)
	o.printMover(y)
	o.printAsked(c)
	o.printSent(c)
	o.printOutcome(c.Outcome)
	o.printEvents(c.Events)
	o.printNext(c)
}

// printMover says who moves next, and what stands in the way.
func (o *operating) printMover(y answer.Why) {
	o.heading("why")
	o.out.line("  %s", y.Message)
	o.fact("mover", o.t("cli.mover."+y.Mover, nil))
	o.when("since", &y.Since)
	o.when("until", y.Until)
	o.fact("waits_for", y.WaitsFor)
	o.fact("behind", strings.Join(y.Behind, ", "))
}

func (o *operating) printAsked(c answer.Change) {
	o.heading("asked")
	o.out.line("  %s", c.Summary)
	o.fact("target", o.targetLine(c.Target))
	for _, row := range c.Changes {
		o.out.line("  %s: %s → %s", row.Label, valueShown(row.Before), valueShown(row.After))
	}
	if who := c.RequestedBy; who != nil {
		name := who.Name
		if who.OnBehalfOf != "" {
			name = o.t("web.actor.for", map[string]any{"name": who.Name, "for": who.OnBehalfOf})
		}
		o.fact("requested_by", name)
	}
	if reason, ok := c.Input["reason"].(string); ok {
		o.fact("reason", reason)
	}
	if c.Approval != nil {
		o.fact("justification", c.Approval.Justification)
	}
	o.when("prepared", c.CreatedAt)
	o.fact("digest", c.Digest)
	for _, warning := range c.Warnings {
		o.out.line("  ▲ %s", warning.Message)
	}
	if c.Approval == nil {
		return
	}
	for _, v := range c.Approval.Votes {
		decision := map[bool]string{true: "approve", false: "reject"}[v.Approve]
		o.out.line("  %s: %s, %s %s", o.t("cli.vote."+decision, nil), v.Name, stamp(v.At), v.Reason)
	}
}

func valueShown(v *answer.Value) string {
	if v == nil {
		return "?"
	}
	return v.Shown
}

// printSent shows exactly what went to the target, when, and what became of each call.
func (o *operating) printSent(c answer.Change) {
	if c.Outcome == nil || c.Request == nil {
		return
	}
	o.heading("sent")
	o.out.line("  %s %s", c.Request.Method, c.Request.Path)
	o.fact("precondition", c.Request.Precondition)
	o.fact("body", c.Request.Body)
	o.fact("key", c.Outcome.Key)
	o.when("claimed", c.Outcome.StartedAt)
	o.when("lease", c.Outcome.LeaseUntil)
	for n, a := range c.Attempts {
		o.printAttempt(n+1, a)
	}
}

func (o *operating) printAttempt(n int, a answer.Attempt) {
	ended := "…"
	if a.FinishedAt != nil {
		ended = stamp(*a.FinishedAt)
	}
	result := a.Result
	if result == "" {
		result = "none"
	}
	o.out.line("  %d. %s: %s (%s)", n, o.word("web.attempt.", a.Kind), o.word("web.result.", result), result)
	o.out.line("     %s – %s", stamp(a.StartedAt), ended)
	if raw, err := json.Marshal(a.Evidence); err == nil && len(a.Evidence) > 0 {
		o.out.line("     %s", raw)
	}
}

func (o *operating) printOutcome(out *answer.Outcome) {
	if out == nil {
		return
	}
	o.heading("outcome")
	o.out.line("  %s (%s)", o.word("web.effect.", out.Effect), out.Effect)
	if out.Contradicted {
		o.out.line("  ▲ %s", o.t("cli.contradicted", nil))
	}
	if out.Evidence != "" {
		o.fact("known_by", o.word("web.evidence.", out.Evidence))
	}
	if out.Reason != "" {
		o.fact("reason", o.word("cli.because.", out.Reason))
	}
	o.fact("target_says", out.TargetSays)
	o.fact("resolved_by", out.ResolvedBy)
	o.fact("resolved_why", out.ResolvedWhy)
	o.fact("evidence", settledEvidence(out))
	o.when("next_probe", out.NextProbeAt)
	o.when("settles", out.SettlesAt)
	for _, column := range out.Columns {
		o.out.line("  %s: %s", column.Label, o.t("cli.columns", map[string]any{
			"before": valueShown(column.AtPreview), "now": valueShown(column.Now), "requested": valueShown(column.Requested),
		}))
	}
	if out.Resolvers > 1 {
		o.out.line("  %s", o.t("web.settle.two", nil))
	}
	for _, s := range statementsOf(out) {
		o.statement(o.out, s)
	}
}

// settledEvidence is what the operator who settled an outcome had looked at, empty where statements say it or nobody had to.
func settledEvidence(out *answer.Outcome) string {
	if out.ResolvedBy == "" || len(statementsOf(out)) > 0 {
		return ""
	}
	said, _ := out.Details["statement"].(map[string]any)
	text, _ := said["evidence"].(string)
	return text
}

// statementsOf are all statements, or the one that stands where the rest is not told.
func statementsOf(out *answer.Outcome) []answer.Statement {
	all := out.Statements
	if out.Statement != nil {
		if n := len(all); n > 0 {
			all = all[:n-1]
		}
		all = append(all, *out.Statement)
	}
	return all
}

func (o *operating) statement(to screen, s answer.Statement) {
	to.line("  %s %s", o.t("web.settle.proposed."+s.Outcome, map[string]any{"by": s.Name}), stamp(s.At))
	to.line("     %s: %s", o.t("cli.reason", nil), s.Reason)
	to.line("     %s: %s", o.t("cli.evidence", nil), s.Evidence)
	if s.Until != nil {
		to.line("     %s %s", o.t("web.settle.waits", nil), stamp(*s.Until))
	}
}

func (o *operating) printEvents(events []answer.Event) {
	o.heading("events")
	for _, e := range events {
		o.out.line("  %3d  %s  %s  %s", e.Seq, stamp(e.At), o.word("web.event.", e.Kind), e.Actor)
	}
}

// printNext gives the commands that may help now.
func (o *operating) printNext(c answer.Change) {
	if c.Outcome == nil || c.Outcome.Effect != "unknown" {
		return
	}
	o.heading("now")
	o.out.line("  cutonce changes probe %s", c.PreviewID)
	o.out.line("  cutonce changes resolve %s --applied|--not-applied --reason … --evidence …", c.PreviewID)
}

func (o *operating) printWhy(y answer.Why) {
	o.out.line("%s  %s (%s)", y.PreviewID, o.word("web.status.", y.Status), y.Status)
	o.printMover(y)
	o.printOutcome(y.Outcome)
}

// printSettled shows a change after a look or a statement.
func (o *operating) printSettled(b answer.Body) {
	o.out.line("%s  %s (%s)", b.PreviewID, o.word("web.status.", b.Status), b.Status)
	o.out.line("%s", b.Message)
	o.printOutcome(b.Change.Outcome)
	if n := len(b.Change.Attempts); n > 0 {
		o.heading("last_attempt")
		o.printAttempt(n, b.Change.Attempts[n-1])
	}
	o.printNext(*b.Change)
}
