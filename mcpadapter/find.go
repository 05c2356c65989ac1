package mcpadapter

import (
	"context"

	"github.com/cutonce/cutonce/commit"
)

// find runs a connector's read-only tool.
func (h *Handler) find(name string) func(context.Context, call) reply {
	return func(ctx context.Context, c call) reply {
		page, err := h.deps.Changes.Find(ctx, c.who, name, c.raw)
		if err != nil {
			return failed(c.write, err)
		}
		return reply{value: c.write.Found(page)}
	}
}

// changes runs changes_find: an agent that was restarted finds its own work again.
func (h *Handler) changes(ctx context.Context, c call) reply {
	found, cursor, err := h.deps.Commits.List(ctx, c.who, commit.Filter{
		TargetID: c.input.Text(fieldTarget), Status: commit.Status(c.input.Text(fieldStatus)), Cursor: c.input.Text(fieldCursor),
	})
	if err != nil {
		return failed(c.write, err)
	}
	return reply{value: c.write.Changes(found, cursor)}
}
