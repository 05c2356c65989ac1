package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// demoStep is one step of the story. It returns the line to print, or what was not as promised.
type demoStep struct {
	title string
	run   func(context.Context) (string, error)
}

func (d *demo) steps() []demoStep {
	return []demoStep{
		{"find among look-alikes", d.find},
		{"a wrong ID is caught by the expected name", d.wrongID},
		{"a small raise: the policy approves, applied", d.smallRaise},
		{"+60 %: apply says that a person must approve, and how", d.largeRaise},
		{"a person approves exactly that; applied", d.approved},
		{"the same ID again: the same answer", d.again},
		{"64 applies at once on two processes: one effect", d.crowd},
		{"the target moved after the preview: drifted", d.drifted},
		{"the effect happens, its reply is lost: unknown, then found", d.lostReply},
		{"no answer and no look-up: an operator settles it", d.operator},
		{"a preview that nobody applied expires", d.expires},
		{"refused by the target, and never left: told apart", d.toldApart},
		{"a rollback without the permission is refused, the user named", d.rollbackRefused},
		{"a rollback in production: approved by another release manager, done", d.rollbackDone},
		{"the permission is withdrawn between preview and apply: refused, nothing sent", d.rollbackWithdrawn},
		{"undone by a new preview, through the same queue", d.rollbackUndone},
		{"the targets' own counters", d.counters},
	}
}

// prepare asks for a budget in yen and remembers the ID for the last step.
func (d *demo) prepare(ctx context.Context, campaign string, yen int, name string) (answer.Body, error) {
	arguments := map[string]any{"campaign_id": campaign, "new_daily_budget_jpy": yen, "reason": "Autumn campaign plan, week 48"}
	if name != "" {
		arguments["expect_campaign_name"] = name
	}
	b, err := d.agent.call(ctx, "budget_change_preview", arguments)
	if b.PreviewID != "" {
		d.previews = append(d.previews, b.PreviewID)
	}
	return b, err
}

func (d *demo) apply(ctx context.Context, id string) (answer.Body, error) {
	return d.agent.call(ctx, "budget_change_apply", map[string]any{"preview_id": id})
}

// want compares what came back with what was promised.
func want(what string, got, wanted any) error {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s: got %v, want %v", what, got, wanted)
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func shown(b answer.Body) string {
	if b.Change == nil || len(b.Change.Changes) == 0 {
		return ""
	}
	row := b.Change.Changes[0]
	return fmt.Sprintf("%s %s → %s", b.Change.Target.Name, text(row.Before), text(row.After))
}

func text(v *answer.Value) string {
	if v == nil {
		return "unknown"
	}
	return v.Shown
}

func (d *demo) find(ctx context.Context) (string, error) {
	var found answer.Found
	err := d.agent.callInto(ctx, "campaigns_find", map[string]any{"query": "秋の特価"}, &found)
	var names []string
	for _, item := range found.Items {
		names = append(names, fmt.Sprintf("%v %v", item["id"], item["name"]))
	}
	line := fmt.Sprintf("campaigns_find(秋の特価) → %s", strings.Join(names, ", "))
	if err == nil && len(found.Items) < 2 {
		err = fmt.Errorf("found %d campaigns, want the look-alikes", len(found.Items))
	}
	return line, err
}

func (d *demo) wrongID(ctx context.Context) (string, error) {
	b, err := d.prepare(ctx, target.CampaignAutumnRetargeting, 24000, "秋の特価_検索")
	line := fmt.Sprintf("preview(%s, expect 秋の特価_検索) → %s: %s", target.CampaignAutumnRetargeting, b.Code, b.Message)
	return line, first(err, want("code", b.Code, "expect_mismatch"))
}

func (d *demo) smallRaise(ctx context.Context) (string, error) {
	b, err := d.prepare(ctx, target.CampaignAutumnSearch, 24000, "秋の特価_検索")
	if err := first(err, want("status", b.Status, "approved")); err != nil {
		return b.Message, err
	}
	applied, err := d.apply(ctx, b.PreviewID)
	d.mark(b.PreviewID)
	return fmt.Sprintf("%s → %s; apply → %s: %s", shown(b), b.Status, applied.Status, applied.Message),
		first(err, want("status", applied.Status, "applied"))
}

func (d *demo) largeRaise(ctx context.Context) (string, error) {
	b, err := d.prepare(ctx, target.CampaignAutumnRetargeting, 24000, "秋の特価_検索_再訪問")
	if err := first(err, want("status", b.Status, "needs_approval")); err != nil {
		return b.Message, err
	}
	d.large = b.PreviewID
	refused, err := d.apply(ctx, b.PreviewID)
	return fmt.Sprintf("%s → %s; apply → %s, next_tool %s", shown(b), b.Status, refused.Code, refused.NextTool),
		first(err, want("code", refused.Code, "approval_required"), want("next_tool", refused.NextTool, "approval_request"))
}

func (d *demo) approved(ctx context.Context) (string, error) {
	asked, err := d.agent.call(ctx, "approval_request", map[string]any{"preview_id": d.large, "justification": "The client agreed on 24,000 JPY"})
	if err := first(err, want("status", asked.Status, "pending")); err != nil {
		return asked.Message, err
	}
	seen, err := d.approver.get(ctx, "/v1/previews/"+d.large+"?response_format=detailed")
	if err := first(err, want("a digest is shown", seen.Change != nil && len(seen.Change.Digest) == 64, true)); err != nil {
		return seen.Message, err
	}
	decided, err := d.approver.post(ctx, "/v1/previews/"+d.large+"/decisions",
		map[string]any{"decision": "approve", "digest": seen.Change.Digest, "reason": "As agreed with the client"})
	if err := first(err, want("status", decided.Status, "approved")); err != nil {
		return decided.Message, err
	}
	applied, err := d.apply(ctx, d.large)
	d.mark(d.large)
	return fmt.Sprintf("approval_request → %s; kim approves digest %s… → %s; apply → %s", asked.Status, seen.Change.Digest[:12], decided.Status,
		applied.Status), first(err, want("status", applied.Status, "applied"))
}

func (d *demo) again(ctx context.Context) (string, error) {
	b, err := d.apply(ctx, d.large)
	tally, countErr := d.control.CountersFor(ctx, d.key(d.large))
	return fmt.Sprintf("apply(%s) → %s, still %d effect at the target", d.large, b.Status, tally.Effects),
		first(err, countErr, want("status", b.Status, "applied"), want("effects", tally.Effects, 1))
}

func (d *demo) crowd(ctx context.Context) (string, error) {
	b, err := d.prepare(ctx, target.PlainJPY(0), 12000, "")
	if err := first(err, want("status", b.Status, "approved")); err != nil {
		return b.Message, err
	}
	const callers = 64
	answers := make([]answer.Body, callers)
	errs := make([]error, callers)
	var crowd sync.WaitGroup
	for i := range callers {
		crowd.Go(func() {
			agent := d.agent
			if i%2 == 1 {
				agent = d.second
			}
			answers[i], errs[i] = agent.call(ctx, "budget_change_apply", map[string]any{"preview_id": b.PreviewID})
		})
	}
	crowd.Wait()
	applied := 0
	for i, a := range answers {
		if errs[i] == nil && a.Status == "applied" {
			applied++
		}
	}
	d.mark(b.PreviewID)
	tally, err := d.control.CountersFor(ctx, d.key(b.PreviewID))
	return fmt.Sprintf("%d × apply(%s) on two processes → %d × applied, %d request and %d effect at the target", callers, b.PreviewID, applied,
			tally.Received, tally.Effects),
		first(append(errs, err, want("answers that say applied", applied, callers), want("effects", tally.Effects, 1), want("requests", tally.Received, 1))...)
}

func (d *demo) drifted(ctx context.Context) (string, error) {
	id := target.PlainJPY(1)
	b, err := d.prepare(ctx, id, 12000, "")
	if err := first(err, want("status", b.Status, "approved")); err != nil {
		return b.Message, err
	}
	if _, err := d.control.EditCampaign(ctx, id, target.CampaignEdit{DailyBudget: "11500"}); err != nil {
		return "", err
	}
	a, err := d.apply(ctx, b.PreviewID)
	if err := first(err, want("code", a.Code, "drifted"), want("columns", a.Change != nil && a.Change.Outcome != nil && len(a.Change.Outcome.Columns) == 1, true)); err != nil {
		return a.Message, err
	}
	c := a.Change.Outcome.Columns[0]
	return fmt.Sprintf("apply → %s: at preview %s, now %s, requested %s; next %s", a.Code, text(c.AtPreview), text(c.Now), text(c.Requested), a.Next),
		want("next", a.Next, "prepare_again")
}

func (d *demo) lostReply(ctx context.Context) (string, error) {
	id := target.PlainJPY(2)
	b, err := d.prepare(ctx, id, 12000, "")
	if err := first(err, want("status", b.Status, "approved"),
		d.control.AddFault(ctx, target.Once(target.OpChange, id, target.Step{Action: target.DropAfter}))); err != nil {
		return b.Message, err
	}
	a, err := d.apply(ctx, b.PreviewID)
	d.mark(b.PreviewID)
	if err := first(err, want("code", a.Code, "outcome_unknown"), want("next", a.Next, "check_status")); err != nil {
		return a.Message, err
	}
	settled, err := d.settled(ctx, b.PreviewID)
	return fmt.Sprintf("apply → %s, retryable %v, next_tool %s; change_status → %s by %s", a.Code, *a.Retryable, a.NextTool, settled.Status,
		settled.Change.Outcome.Evidence), first(err, want("status", settled.Status, "applied"), want("evidence", settled.Change.Outcome.Evidence, "lookup"))
}

// settled waits, by asking again, until a change is neither applying nor unknown.
func (d *demo) settled(ctx context.Context, id string) (answer.Body, error) {
	for {
		b, err := d.agent.call(ctx, "change_status", map[string]any{"preview_id": id, "wait_s": 5})
		if err != nil || b.Status != "unknown" && b.Status != "applying" {
			return b, err
		}
		if ctx.Err() != nil {
			return b, ctx.Err()
		}
	}
}

func (d *demo) operator(ctx context.Context) (string, error) {
	id := target.PlainJPY(3)
	b, err := d.prepare(ctx, id, 12000, "")
	if err := first(err, want("status", b.Status, "approved"), d.control.AddFault(ctx,
		target.Once(target.OpChange, id, target.Step{Action: target.DropAfter}),
		target.Fault{Match: target.Match{Op: target.OpLookup, Resource: id}, Times: target.Forever, Do: []target.Step{{Action: target.HideLookup}}})); err != nil {
		return b.Message, err
	}
	a, err := d.apply(ctx, b.PreviewID)
	d.mark(b.PreviewID)
	if err := first(err, want("code", a.Code, "outcome_unknown")); err != nil {
		return a.Message, err
	}
	path := "/v1/previews/" + b.PreviewID + "/resolve"
	said := map[string]any{"outcome": "applied", "reason": "The campaign page shows 12,000 JPY", "evidence": "Target log, entry of today, read by oper"}
	settled, err := d.operatorAt.post(ctx, path, said)
	if err := first(err, want("status", settled.Status, "applied")); err != nil {
		return settled.Message, err
	}
	said["outcome"] = "not_applied"
	contradicted, err := d.operatorAt.post(ctx, path, said)
	return fmt.Sprintf("apply → %s; oper resolves as applied, with reason and evidence → %s; resolving the opposite → %s: %s", a.Code, settled.Status,
		contradicted.Code, contradicted.Message), first(err, want("code", contradicted.Code, "conflict"))
}

func (d *demo) expires(ctx context.Context) (string, error) {
	b, err := d.prepare(ctx, target.PlainJPY(4), 12000, "")
	if err := first(err, want("status", b.Status, "approved"), want("an expiry is shown", b.Change.ExpiresAt != nil, true)); err != nil {
		return b.Message, err
	}
	select {
	case <-time.After(time.Until(*b.Change.ExpiresAt) + 100*time.Millisecond): // the demo waits for the clock it shows
	case <-ctx.Done():
		return "", ctx.Err()
	}
	a, err := d.apply(ctx, b.PreviewID)
	return fmt.Sprintf("apply after %s → %s, next_tool %s", demoClocks["PREVIEW_TTL"], a.Code, a.NextTool), first(err, want("code", a.Code, "expired"))
}

func (d *demo) toldApart(ctx context.Context) (string, error) {
	refusing, silent := target.PlainJPY(5), target.PlainJPY(6)
	b1, err1 := d.prepare(ctx, refusing, 12000, "")
	b2, err2 := d.prepare(ctx, silent, 12000, "")
	if err := first(err1, err2, want("status", b1.Status, "approved"), want("status", b2.Status, "approved")); err != nil {
		return "", err
	}
	refused, err := d.removedMeanwhile(ctx, refusing, b1.PreviewID)
	if err := first(err, want("code", refused.Code, "target_refused"), want("status", refused.Status, "not_applied")); err != nil {
		return refused.Message, err
	}
	unreadable := target.Once(target.OpRead, silent, target.Step{Action: target.StatusBefore, Status: 503})
	if err := d.control.AddFault(ctx, unreadable); err != nil {
		return "", err
	}
	left, err := d.apply(ctx, b2.PreviewID)
	if err := first(err, want("code", left.Code, "target_unavailable"), want("status", left.Status, "approved")); err != nil {
		return left.Message, err
	}
	again, err := d.apply(ctx, b2.PreviewID)
	d.mark(b2.PreviewID)
	return fmt.Sprintf("refused → %s, %s (%s); never left → %s, still %s, so apply again → %s", refused.Status, refused.Code,
		refused.Change.Outcome.TargetSays, left.Code, left.Status, again.Status), first(err, want("status", again.Status, "applied"))
}

// removedMeanwhile applies a change, and has somebody remove the campaign while the request is on its way.
func (d *demo) removedMeanwhile(ctx context.Context, campaign, id string) (b answer.Body, err error) {
	held := target.Once(target.OpChange, campaign, target.Step{Action: target.HoldBefore, Gate: "removed"})
	if err := d.control.AddFault(ctx, held); err != nil {
		return b, err
	}
	var applying sync.WaitGroup
	applying.Go(func() { b, err = d.apply(ctx, id) })
	waited := d.control.Wait(ctx, target.Event{Stage: target.StageHeld, Match: target.Match{Op: target.OpChange, Resource: campaign}}, 1)
	_, edited := d.control.EditCampaign(ctx, campaign, target.CampaignEdit{Status: target.StatusRemoved})
	released := d.control.Release(ctx, "removed")
	applying.Wait()
	return b, first(err, waited, edited, released)
}

func (d *demo) counters(ctx context.Context) (string, error) {
	effects := 0
	for _, id := range d.previews {
		at := d.control
		if d.ofDeploys[id] {
			at = d.deploys
		}
		tally, err := at.CountersFor(ctx, d.key(id))
		if err := first(err, want("effects of "+id, tally.Effects, d.applied[id])); err != nil {
			return "", err
		}
		effects += tally.Effects
	}
	budgets, err1 := d.control.Changes(ctx, d.key(d.large))
	rollbacks, err2 := d.deploys.Rollbacks(ctx, d.key(d.rolled))
	if err := first(err1, err2, want("log entries", len(budgets)+len(rollbacks), 2)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d applied IDs: exactly 1 effect each; %d others: none; the targets' logs name %s (approved by %s) and %s (approved by %s)",
			len(d.applied), len(d.previews)-len(d.applied), budgets[0].OnBehalfOf, budgets[0].ApprovedBy, rollbacks[0].OnBehalfOf,
			rollbacks[0].ApprovedBy),
		first(want("effects", effects, len(d.applied)), want("the human in the log", budgets[0].OnBehalfOf, target.UserSato),
			want("the human in the log", rollbacks[0].OnBehalfOf, target.UserMori))
}

// mark remembers that an ID was applied.
func (d *demo) mark(id string) { d.applied[id] = 1 }

// key is the idempotency key under which the target counts a preview's effects.
func (d *demo) key(id string) string {
	parsed, _ := preview.ParseID(id)
	return commit.IdempotencyKey([]byte(d.secret), demoTenant, parsed, 0)
}
