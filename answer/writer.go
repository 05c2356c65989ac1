package answer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// Op is the call that is answered: the same status is an error for one call and an answer for another.
type Op string

// The calls.
const (
	OpPrepare         Op = "prepare"
	OpApply           Op = "apply"
	OpStatus          Op = "status"
	OpApprovalRequest Op = "approval_request"
	OpCancel          Op = "cancel"
	OpDecide          Op = "decide"
	OpProbe           Op = "probe"
	OpResolve         Op = "resolve"
)

// Writer writes answers in one language.
type Writer struct {
	Texts *catalog.Texts
	// Detailed adds everything that the concise format leaves out.
	Detailed bool
	// RequestID is put into answers to internal errors, for operators.
	RequestID string
	// Revealed is the one change whose sensitive values are written, because it is on record that the reader is shown them
	// (commit.Service.Reveal). Those of all others are masked, whoever reads.
	Revealed preview.ID
}

// Of writes the answer to one call: the fault if there is one, with the change beside it where the caller may see it.
func (w Writer) Of(op Op, c commit.Change, replayed bool, err error) Body {
	if err == nil {
		return w.change(op, c, replayed)
	}
	if f := fault.From(err); f.Code == fault.InProgress && over(c.Status) {
		copied := *f // it was begun, and by now it is more than that
		err = copied.WithKey("fault.in_progress." + string(c.Status))
	}
	b := w.Fault(err)
	if c.Preview.Action == "" {
		return b
	}
	b.Status, b.PreviewID = string(c.Status), c.Preview.ID.String()
	change := w.Change(c)
	b.Change = &change
	b.NextTool, b.NextArguments = toolFor(fault.Next(b.Next), op, c)
	return w.withColumns(b)
}

// over reports whether a change that was claimed is no longer being applied.
func over(s commit.Status) bool {
	return s == commit.StatusApplied || s == commit.StatusNotApplied || s == commit.StatusUnknown
}

// change writes the answer where the call was heard: it may still be an error by the status it met.
func (w Writer) change(op Op, c commit.Change, replayed bool) Body {
	if f := refused(op, c, replayed); f != nil {
		b := w.Of(op, c, false, f)
		b.Replayed = replayed
		return b
	}
	change := w.Change(c)
	b := Body{
		Status: string(c.Status), Message: w.sentence(c), Next: string(commit.NextFor(c.Status)),
		PreviewID: c.Preview.ID.String(), Replayed: replayed, Change: &change,
	}
	if c.Status == commit.StatusApplying || c.Status == commit.StatusUnknown {
		b.RetryAfterS = 5
	}
	if op == OpPrepare && !replayed {
		b.Message = w.prepared(c)
	}
	b.NextTool, b.NextArguments = toolFor(fault.Next(b.Next), op, c)
	return w.withColumns(b)
}

// prepared is the sentence of a fresh preview: what it would do, and what is needed.
func (w Writer) prepared(c commit.Change) string {
	return w.Texts.T("join.sentences", map[string]any{"first": w.Say(c.Preview.Impact.Summary), "second": w.sentence(c)})
}

// sentence says a status plainly. The rule's own words come first where people are needed.
func (w Writer) sentence(c commit.Change) string {
	key := "status." + string(c.Status)
	if c.Status == commit.StatusNeedsApproval {
		if own := c.Preview.Ruling.Texts[w.Texts.Lang]; own != "" {
			return own
		}
	}
	if e := c.Preview.Ruling.Exceeded; e != nil && c.Status == commit.StatusDenied {
		f := preview.NoRoom(e)
		return w.text(f.Key, f.Args)
	}
	args := fault.Args{
		"groups": w.Groups(c.Preview.Ruling.Needs), "by": c.Preview.EndedBy, "reason": c.Preview.EndReason, "rule": c.Preview.Ruling.Rule,
	}
	if c.Confirms() {
		key, args["by"] = key+".confirm", c.Preview.Requester.HumanName()
	}
	if len(c.Executions) > 0 {
		e := c.Executions[0]
		switch {
		case c.Status == commit.StatusApplied:
			key += "." + string(e.Evidence)
		case c.Status == commit.StatusNotApplied:
			key += "." + string(e.Reason)
		case c.Status == commit.StatusUnknown && e.NeedsOperator:
			key += ".operator"
		}
		args["by"], args["reason"] = e.ResolvedBy, reasonOf(e)
		if s := e.Standing(c.Now); s != nil {
			key, args["by"] = "status.unknown.proposed", s.Name
		}
	}
	return w.text(key, args)
}

func reasonOf(e commit.Execution) string {
	if e.ResolvedWhy != "" {
		return e.ResolvedWhy
	}
	said, _ := e.Detail["reason"].(string)
	return said
}

// refused is the code that a status carries for a call (isError in docs/errors.md). Status calls never carry one.
func refused(op Op, c commit.Change, replayed bool) *fault.Fault {
	switch {
	case op == OpPrepare && !replayed && c.Status == commit.StatusDenied:
		return denied(c.Preview.Ruling)
	case op != OpApply:
		return nil
	}
	p := c.Preview
	switch c.Status {
	case commit.StatusDenied:
		return denied(p.Ruling)
	case commit.StatusRejected:
		return fault.New(fault.Rejected, fault.Args{"by": p.EndedBy, "reason": p.EndReason})
	case commit.StatusCanceled:
		return fault.New(fault.Canceled, nil)
	case commit.StatusExpired:
		return fault.New(fault.Expired, nil)
	case commit.StatusUnknown:
		return fault.New(fault.OutcomeUnknown, nil).After(5 * time.Second)
	case commit.StatusNotApplied:
		return notApplied(c)
	}
	return nil
}

// denied tells a rule from a cap that had no room when the change was prepared.
func denied(r preview.Ruling) *fault.Fault {
	if r.Exceeded != nil {
		return preview.NoRoom(r.Exceeded)
	}
	return fault.New(fault.PolicyDenied, fault.Args{"rule": r.Rule})
}

func notApplied(c commit.Change) *fault.Fault {
	e := c.Executions[0]
	switch e.Reason {
	case commit.Drifted:
		return fault.New(fault.Drifted, nil)
	case commit.Refused:
		return fault.New(fault.TargetRefused, fault.Args{"reason": reasonOf(e)})
	case commit.NeverLeft:
		f := fault.New(fault.TargetUnavailable, nil).WithKey("status.not_applied.never_left").WithNext(fault.NextPrepareAgain)
		f.Retryable = false
		return f
	}
	return fault.New(fault.Conflict, fault.Args{"by": e.ResolvedBy, "reason": e.ResolvedWhy}).
		WithKey("status.not_applied." + string(e.Reason)).WithNext(fault.NextPrepareAgain)
}

// Fault writes a refusal that is about no stored change.
func (w Writer) Fault(err error) Body {
	f := fault.From(err)
	args := fault.Args{"request_id": w.RequestID}
	for name, value := range f.Args {
		args[name] = value
	}
	retryable := f.Retryable
	b := Body{
		Code: string(f.Code), Kind: string(fault.Codes()[f.Code].Kind), Message: w.text(f.Key, args), Next: string(f.Next),
		Retryable: &retryable, RetryAfterS: int(math.Ceil(f.RetryAfter.Seconds())), Data: f.Data,
	}
	if f.Code == fault.Internal {
		b.RequestID = w.RequestID
	}
	if open, ok := f.Data["open"].(map[preview.State]int); ok {
		b.NextTool, b.NextArguments = "changes_find", map[string]any{"status": mostOf(open)}
	}
	for _, field := range f.Fields {
		b.Fields = append(b.Fields, Field{Path: field.Path, Reason: w.text(field.Key, field.Args)})
	}
	return b
}

// mostOf is the state in which most of the open changes are: the list to look through first.
func mostOf(open map[preview.State]int) string {
	states := slices.Sorted(maps.Keys(open))
	return string(slices.MaxFunc(states, func(a, b preview.State) int { return cmp.Compare(open[a], open[b]) }))
}

// withColumns puts what moved at the target where machines look for it: errors.md promises data.columns beside drifted.
func (w Writer) withColumns(b Body) Body {
	if b.Change != nil && b.Change.Outcome != nil && len(b.Change.Outcome.Columns) > 0 && b.Data == nil && b.Code != "" {
		b.Data = map[string]any{"columns": b.Change.Outcome.Columns}
	}
	return b
}

// toolFor names the literal tool of the next step and its arguments.
func toolFor(next fault.Next, op Op, c commit.Change) (string, map[string]any) {
	id := map[string]any{"preview_id": c.Preview.ID.String()}
	action := c.Preview.Action
	switch next {
	case fault.NextApply:
		return action + "_apply", id
	case fault.NextRequestApproval:
		return "approval_request", id
	case fault.NextAwaitApproval, fault.NextCheckStatus:
		return "change_status", id
	case fault.NextPrepareAgain:
		// The old input is offered where it is still meant: its values are absolute, and a new preview measures them against what
		// is there now, for the policy and people to judge anew. After a withdrawal or a refusal it may be wrong.
		// Nor is it where it holds what is hidden: whoever sent that has it, and a mask must not be sent in its place.
		if (c.Status == commit.StatusExpired || drifted(c)) && !c.Preview.Plan.Sensitive() {
			return action + "_preview", map[string]any(c.Preview.Input)
		}
		return action + "_preview", nil
	case fault.NextRetryLater:
		if op == OpApply {
			return action + "_apply", id
		}
	}
	return "", nil
}

func drifted(c commit.Change) bool {
	return c.Status == commit.StatusNotApplied && c.Executions[0].Reason == commit.Drifted
}

// Say renders a stored message, with the hidden characters of outside names made visible.
func (w Writer) Say(m connector.Message) string { return w.text(m.Key, fault.Args(m.Args)) }

var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

func (w Writer) text(key string, args fault.Args) string {
	clean := make(fault.Args, len(args))
	for name, value := range args {
		switch v := value.(type) {
		case string:
			value = visible.Text(oneLine.Replace(v))
			if name == "status" {
				value = w.Label("status_name", v)
			}
		case []string: // groups, any of which will do
			value = w.AnyOf(v)
		}
		clean[name] = value
	}
	return w.Texts.T(key, clean)
}

// Label names a field or figure in the reader's language; an unknown one is its own name.
func (w Writer) Label(kind, name string) string {
	key := kind + "." + name
	if label := w.Texts.T(key, nil); label != key {
		return label
	}
	return name
}

// SeatsOf writes a requirement, or what is missing of it.
func SeatsOf(r policy.Requirement) []Seats {
	out := make([]Seats, 0, len(r))
	for _, s := range r {
		out = append(out, Seats{AnyOf: s.AnyOf, Count: s.Count})
	}
	return out
}

// Groups writes a requirement in words: "one member of finance or legal and 2 members of ads-approvers".
func (w Writer) Groups(r policy.Requirement) string {
	said := make([]string, 0, len(r))
	for _, s := range r {
		said = append(said, w.Texts.T("seats.members", map[string]any{"n": s.Count, "groups": w.AnyOf(s.AnyOf)}))
	}
	return w.joined("seats.and", said)
}

// AnyOf writes groups of which one is enough: "finance or legal".
func (w Writer) AnyOf(groups []string) string {
	shown := make([]string, 0, len(groups))
	for _, g := range groups {
		shown = append(shown, visible.Text(g))
	}
	return w.joined("seats.or", shown)
}

func (w Writer) joined(key string, parts []string) string {
	all := ""
	for i, part := range parts {
		if i > 0 {
			part = w.Texts.T(key, map[string]any{"first": all, "second": part})
		}
		all = part
	}
	return all
}

// Text is the explanation of a Why, the people it names in the reader's words.
func (w Writer) Text(y commit.Why) connector.Message {
	if _, named := y.Text.Args["groups"]; !named {
		return y.Text
	}
	args := maps.Clone(y.Text.Args)
	args["groups"] = w.Groups(y.Change.Preview.Ruling.Needs)
	if len(y.Missing) > 0 {
		args["groups"] = w.Groups(y.Missing)
	}
	return connector.Say(y.Text.Key, args)
}

// Explain writes a Why.
func (w Writer) Explain(y commit.Why) Why {
	change := w.Change(y.Change)
	out := Why{
		PreviewID: change.PreviewID, Status: change.Status, Message: w.Say(w.Text(y)), Mover: y.Mover, Since: y.Since.UTC(),
		Until: when(y.Until), WaitsFor: y.WaitsFor, Behind: y.Behind, Next: string(y.Next), Approval: change.Approval, Outcome: change.Outcome,
		Exposure: w.Exposures(y.Change.Exposure),
	}
	out.NextTool, _ = toolFor(y.Next, OpApply, y.Change)
	if len(y.Missing) > 0 {
		out.Missing = SeatsOf(y.Missing)
	}
	return out
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
