package answer

import (
	"encoding/json"
	"strings"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/preview"
)

// Change writes a change as it stands.
func (w Writer) Change(c commit.Change) Change {
	p := c.Preview
	t := p.Plan.Target
	out := Change{
		PreviewID: p.ID.String(), Action: p.Action, Status: string(c.Status),
		Target:  Target{System: t.System, Kind: t.Kind, ID: t.ID, Name: visible.Text(t.Name)},
		Changes: []Row{}, Summary: w.Say(p.Impact.Summary), Warnings: w.warnings(p), Approval: w.approval(p), Outcome: w.outcome(c),
	}
	for _, change := range p.Plan.Changes {
		out.Changes = append(out.Changes, w.row(p, change))
	}
	if p.State.Open() {
		out.ExpiresAt = when(p.Deadline)
	}
	if w.Detailed {
		w.detail(&out, c)
	}
	return out
}

// Asked writes a change for whoever decides on it: even the concise format says who asked, with which words, and the digest.
func (w Writer) Asked(c commit.Change) Change {
	out := w.Change(c)
	out.Digest, out.RequestedBy, out.Input = c.Preview.Digest.String(), requester(c.Preview), w.input(c.Preview)
	return out
}

func requester(p preview.Preview) *Requester {
	return &Requester{Kind: string(p.Requester.Kind), Name: visible.Text(p.Requester.Subject), OnBehalfOf: visible.Text(p.Requester.For)}
}

func (w Writer) warnings(p preview.Preview) []Warning {
	out := []Warning{}
	for _, list := range [][]connector.Warning{p.Impact.Warnings, p.Ruling.Warnings} {
		for _, warning := range list {
			out = append(out, Warning{Code: warning.Code, Message: w.Say(connector.Say("warning."+warning.Code, warning.Args))})
		}
	}
	return out
}

// Value writes a value, nil if it is not known.
func (w Writer) Value(v connector.Value) *Value {
	switch {
	case v.Amount != nil:
		return &Value{Amount: v.Amount.Decimal(), Currency: string(v.Amount.Currency), Shown: v.Amount.Format(w.Texts.Lang)}
	case v.Text != nil:
		shown := visible.Text(*v.Text)
		return &Value{Text: *v.Text, Shown: shown}
	}
	return nil
}

func (w Writer) approval(p preview.Preview) *Approval {
	if len(p.Ruling.Needs) == 0 && len(p.Votes) == 0 && p.EndedBy == "" && !p.Ruling.Confirm {
		return nil
	}
	a := &Approval{
		Needs: SeatsOf(p.Ruling.Needs), Votes: []Vote{}, Justification: p.Justification, EndedBy: p.EndedBy, EndReason: p.EndReason,
		Confirm: p.Ruling.Confirm,
	}
	if p.Confirmed != nil {
		a.Confirmed = &Confirmed{Name: visible.Text(p.Confirmed.Name), At: p.Confirmed.At.UTC(), Digest: p.Confirmed.Digest.String()}
	}
	for _, v := range p.Votes {
		if v.Round == p.Round {
			a.Votes = append(a.Votes, Vote{
				Name: v.Name, Approve: v.Approve, Reason: v.Reason, At: v.At.UTC(), Digest: v.Digest.String(), Removed: p.RemovalOf(v.Person) != nil,
			})
		}
	}
	return a
}

func (w Writer) outcome(c commit.Change) *Outcome {
	if len(c.Executions) == 0 || c.Preview.State != preview.Claimed {
		return nil
	}
	e := c.Executions[0]
	o := &Outcome{
		Effect: string(e.StateAt(c.Now)), Reason: string(e.Reason), Evidence: string(e.Evidence), Contradicted: e.Contradicted,
		TargetSays: visible.Text(saidBy(e)), ResolvedBy: e.ResolvedBy, ResolvedWhy: e.ResolvedWhy, NeedsOperator: e.NeedsOperator,
		NextProbeAt: when(e.NextProbeAt), Columns: w.Columns(e.Detail),
	}
	if o.Effect == string(commit.Unknown) {
		o.SettlesAt = when(e.SettleAt)
	}
	if e.Resolvers > 1 {
		o.Resolvers = e.Resolvers
	}
	if s := e.Standing(c.Now); s != nil {
		o.Statement = statement(*s)
		o.Statement.Until = when(s.At.Add(commit.ProposalFor))
	}
	if w.Detailed {
		o.detail(e)
	}
	return o
}

func (o *Outcome) detail(e commit.Execution) {
	o.Details, o.Key, o.Probes = e.Detail, e.Key, e.Probes
	o.StartedAt, o.LeaseUntil = when(e.StartedAt), when(e.LeaseUntil)
	for _, s := range e.Statements {
		o.Statements = append(o.Statements, *statement(s))
	}
}

func statement(s commit.Statement) *Statement {
	outcome := commit.NotApplied
	if s.Applied {
		outcome = commit.Applied
	}
	return &Statement{
		Name: visible.Text(s.Name), Outcome: string(outcome), Reason: s.Reason, Evidence: s.Evidence, At: s.At.UTC(),
	}
}

func saidBy(e commit.Execution) string {
	if e.Reason != commit.Refused {
		return ""
	}
	return reasonOf(e)
}

// Columns writes the three columns of a drift or a look, if the detail holds them.
func (w Writer) Columns(detail map[string]any) []Column {
	if evidence, ok := detail["evidence"].(map[string]any); ok && evidence["columns"] == nil {
		return nil
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return nil
	}
	var held struct {
		Evidence struct {
			Columns []commit.Column `json:"columns"`
		} `json:"evidence"`
	}
	if err := json.Unmarshal(raw, &held); err != nil {
		return nil
	}
	var out []Column
	for _, c := range held.Evidence.Columns {
		out = append(out, w.Column(c))
	}
	return out
}

func (w Writer) detail(out *Change, c commit.Change) {
	p := c.Preview
	out.Digest, out.ActionVersion, out.CreatedAt = p.Digest.String(), p.ActionVersion, when(p.CreatedAt)
	out.RequestedBy = requester(p)
	out.Input, out.Reverts = w.input(p), p.Reverts
	out.Figures = w.Figures(p.Impact)
	out.Reversible, out.Reversal = &p.Impact.Reversible, w.Say(p.Impact.Reversal)
	out.Ruling = &Ruling{Verdict: string(p.Ruling.Verdict), Rule: p.Ruling.Rule, PolicyVersion: p.Ruling.Version, Risk: p.Ruling.Risk, Saw: p.Ruling.Saw}
	out.Exposure = w.Exposures(c.Exposure)
	r := p.Plan.Request
	out.Request = &Request{Method: r.Method, Path: r.Path, Body: string(r.Body), Precondition: r.Precondition}
	if w.Hides(p) {
		out.Request.Body = connector.Mask
	}
	for _, a := range c.Attempts {
		out.Attempts = append(out.Attempts, Attempt{
			ID: a.ID.String(), Kind: string(a.Kind), StartedAt: a.StartedAt.UTC(), FinishedAt: a.FinishedAt, Result: a.Result, Evidence: a.Evidence,
		})
	}
	for _, e := range c.Events {
		out.Events = append(out.Events, Event{Seq: e.Seq, Kind: e.Kind, Actor: e.Actor, At: e.At.UTC(), Body: e.Body, Hash: e.Hash})
	}
}

// Figures writes the numbers of an impact. One that is not known says so and is never 0; a difference ("delta" in its name)
// carries its sign.
func (w Writer) Figures(i connector.Impact) []Figure {
	out := []Figure{}
	for _, f := range i.Figures {
		out = append(out, w.figure(f))
	}
	return out
}

func (w Writer) figure(f connector.Figure) Figure {
	out := Figure{Name: f.Name, Label: w.Label("figure", f.Name), Shown: w.Texts.T("figure.unknown", nil)}
	switch {
	case f.Amount != nil:
		out.Shown, out.Value = signed(f.Name, f.Amount.Format(w.Texts.Lang), f.Amount.Minor > 0), f.Amount
	case f.Percent != "":
		out.Shown, out.Value = signed(f.Name, f.Percent+"%", strings.ContainsAny(f.Percent[:1], "0123456789")), f.Percent
		if f.Rounded {
			out.Shown = "≈ " + out.Shown
		}
	case f.Count != nil:
		out.Shown, out.Value = w.Texts.T("figure.count", map[string]any{"n": *f.Count}), *f.Count
	}
	return out
}

func signed(name, shown string, positive bool) string {
	if positive && strings.Contains(name, "delta") {
		return "+" + shown
	}
	return shown
}
