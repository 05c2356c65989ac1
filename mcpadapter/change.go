package mcpadapter

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// prepare runs ACTION_preview.
func (h *Handler) prepare(action string) func(context.Context, call) reply {
	return func(ctx context.Context, c call) reply {
		key := c.input.Text(fieldKey)
		delete(c.input, fieldKey)
		delete(c.input, fieldFormat)
		input, err := canon.Marshal(map[string]any(c.input))
		if err != nil {
			return failed(c.write, err)
		}
		p, err := h.deps.Changes.Prepare(ctx, c.who, preview.Request{Action: action, Input: input, Key: key})
		if err != nil {
			return failed(c.write, err)
		}
		return h.standing(ctx, c, answer.OpPrepare, p.Preview, p.Replayed, nil)
	}
}

// apply runs ACTION_apply. The caller's wish to wait is the only thing that their hanging up cancels.
func (h *Handler) apply(action string) func(context.Context, call) reply {
	return func(ctx context.Context, c call) reply {
		id, err := c.previewID()
		if err != nil {
			return failed(c.write, err)
		}
		change, err := h.deps.Commits.Apply(ctx, c.who, action, id, h.deps.ApplyWait)
		return said(c.write.Of(answer.OpApply, change, change.Replayed, err), err)
	}
}

// status runs change_status.
func (h *Handler) status(ctx context.Context, c call) reply {
	id, err := c.previewID()
	if err != nil {
		return failed(c.write, err)
	}
	change, err := h.hold(ctx, c, id, c.seconds(fieldWait))
	return said(c.write.Of(answer.OpStatus, change, false, err), err)
}

// hold waits for the change's status to change, until Close.
func (h *Handler) hold(ctx context.Context, c call, id preview.ID, wait time.Duration) (commit.Change, error) {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.closing, cancel)()
	change, err := h.deps.Commits.Status(held, c.who, id, wait, c.write.Detailed)
	if err != nil && held.Err() != nil && ctx.Err() == nil {
		return h.deps.Commits.Status(ctx, c.who, id, 0, c.write.Detailed)
	}
	return change, err
}

// cancel runs change_cancel.
func (h *Handler) cancel(ctx context.Context, c call) reply {
	id, err := c.previewID()
	if err != nil {
		return failed(c.write, err)
	}
	p, err := h.deps.Changes.Cancel(ctx, c.who, id, c.input.Text(fieldReason))
	return h.after(ctx, c, answer.OpCancel, p, err)
}

// request runs approval_request.
func (h *Handler) request(ctx context.Context, c call) reply {
	id, err := c.previewID()
	if err != nil {
		return failed(c.write, err)
	}
	p, err := h.deps.Approvals.Request(ctx, c.who, id, c.input.Text(fieldJustification))
	return h.after(ctx, c, answer.OpApprovalRequest, p, err)
}

// after answers with the change as it stands, where the service showed it.
func (h *Handler) after(ctx context.Context, c call, op answer.Op, p preview.Preview, refusal error) reply {
	if p.Action == "" {
		return failed(c.write, refusal)
	}
	return h.standing(ctx, c, op, p, false, refusal)
}

// standing answers with the change as the database gave it back where that is all there is to say, or as it is read anew.
func (h *Handler) standing(ctx context.Context, c call, op answer.Op, p preview.Preview, replayed bool, refusal error) reply {
	if change, ok := commit.Unclaimed(p); ok && refusal == nil && !c.write.Detailed {
		return said(c.write.Of(op, change, replayed, nil), nil)
	}
	change, err := h.deps.Commits.Status(ctx, c.who, p.ID, 0, c.write.Detailed)
	if refusal == nil {
		refusal = err
	}
	return said(c.write.Of(op, change, replayed, refusal), refusal)
}

// previewID reads the ID. What is no ID is answered as an unknown one is.
func (c call) previewID() (preview.ID, error) {
	id, ok := preview.ParseID(c.input.Text(fieldPreview))
	if !ok {
		return id, fault.New(fault.NotFound, nil)
	}
	return id, nil
}

// seconds reads a whole number of seconds, whose range the schema has checked.
func (c call) seconds(field string) time.Duration {
	n, ok := c.input[field].(json.Number)
	if !ok {
		return 0
	}
	seconds, err := n.Int64()
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// scopesOfChange finds what asking for this change's approval needs, for the step-up. It reads the change only where the
// token lacks some action's scope.
func (h *Handler) scopesOfChange(ctx context.Context, c caller, args json.RawMessage) []string {
	if h.holdsAll(c) {
		return nil
	}
	var named struct {
		PreviewID string `json:"preview_id"`
	}
	if err := json.Unmarshal(args, &named); err != nil {
		return nil
	}
	id, ok := preview.ParseID(named.PreviewID)
	if !ok {
		return nil
	}
	change, err := h.deps.Commits.Status(ctx, c.who, id, 0, false)
	if err != nil || !preview.Owns(c.who, change.Preview) {
		return nil // the service says what is wrong
	}
	action, _ := h.deps.Actions.Action(change.Preview.Action)
	return action.Scopes
}

func (h *Handler) holdsAll(c caller) bool {
	for _, a := range h.deps.Actions.Actions() {
		if len(c.who.Missing(a.Scopes...)) > 0 {
			return false
		}
	}
	return true
}
