package mcpadapter

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/intake"
)

// The names of the shared tools.
const (
	toolRequest = "approval_request"
	toolStatus  = "change_status"
	toolCancel  = "change_cancel"
	toolChanges = "changes_find"
)

// hints are the four annotations, each explicit and true. No tool reaches outside the connected accounts.
type hints struct{ readOnly, destructive, idempotent bool }

var (
	reads    = hints{readOnly: true, idempotent: true}
	adds     = hints{}
	repeats  = hints{idempotent: true}
	destroys = hints{destructive: true, idempotent: true}
)

func (h hints) annotations(title string) *mcp.ToolAnnotations {
	closed := false
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: h.readOnly, DestructiveHint: &h.destructive, IdempotentHint: h.idempotent, OpenWorldHint: &closed,
	}
}

// build makes every tool in one language.
func (h *Handler) build(texts *catalog.Texts) ([]*tool, error) {
	b := builder{h: h, texts: texts}
	b.brief, b.full = b.outOfChange(false), b.outOfChange(true)
	for _, a := range h.deps.Actions.Actions() {
		b.action(a)
	}
	for _, f := range h.deps.Actions.Finds() {
		b.find(f)
	}
	b.shared()
	return b.tools, b.err
}

// builder collects the tools, and the first error.
type builder struct {
	h     *Handler
	texts *catalog.Texts
	// brief and full are the output schemas of the tools about one change.
	brief, full json.RawMessage
	tools       []*tool
	err         error
}

func (b *builder) action(a connector.Registered) {
	title := b.texts.T("action."+a.Name+".title", nil)
	preview := &tool{scopes: a.Scopes, run: b.h.prepare(a.Name)}
	b.add(preview, adds, spec{
		name: a.Name + "_preview", title: b.texts.T("tool.preview.title", map[string]any{"action": title}),
		description: b.joined("action."+a.Name+".preview", b.texts.T("tool.preview.rules", b.clocks(a))),
		in:          b.inOfPreview(a), out: b.full,
	})
	apply := &tool{scopes: a.Scopes, run: b.h.apply(a.Name)}
	b.add(apply, destroys, spec{
		name: a.Name + "_apply", title: b.texts.T("tool.apply.title", map[string]any{"action": title}),
		description: b.joined("action."+a.Name+".apply", b.texts.T("tool.apply.rules", nil)),
		in:          b.object(map[string]any{fieldPreview: b.previewID()}, fieldPreview), out: b.brief,
	})
}

// joined is the connector's own text and, after it, what is true of every action.
func (b *builder) joined(key, rules string) string {
	return b.texts.T("join.sentences", map[string]any{"first": b.texts.T(key, nil), "second": rules})
}

func (b *builder) find(f connector.Finder) {
	b.add(&tool{finds: true, scopes: f.Scopes, run: b.h.find(f.Name)}, reads, spec{
		name: f.Name, title: b.texts.T("find."+f.Name+".title", nil), description: b.texts.T("find."+f.Name+".description", nil),
		in: f.Input, out: b.outOfFind(f),
	})
}

func (b *builder) shared() {
	text := func(most int, key string) map[string]any {
		return map[string]any{"type": "string", "maxLength": most, "description": b.texts.T(key, nil)}
	}
	b.add(&tool{scopesOf: b.h.scopesOfChange, run: b.h.request}, repeats, b.own(toolRequest, b.object(map[string]any{
		fieldPreview: b.previewID(), fieldJustification: text(maxText, "tool.field.justification"),
	}, fieldPreview, fieldJustification), b.brief))
	b.add(&tool{run: b.h.status}, reads, b.own(toolStatus, b.object(map[string]any{
		fieldPreview: b.previewID(), fieldFormat: b.format(),
		fieldWait: map[string]any{"type": "integer", "minimum": 0, "maximum": int(commit.MaxWait.Seconds()), "description": b.texts.T("tool.field.wait_s", nil)},
	}, fieldPreview), b.full))
	b.add(&tool{run: b.h.cancel}, destroys, b.own(toolCancel, b.object(map[string]any{
		fieldPreview: b.previewID(), fieldReason: text(maxText, "tool.field.reason"),
	}, fieldPreview), b.brief))
	b.add(&tool{run: b.h.changes}, reads, b.own(toolChanges, b.object(map[string]any{
		fieldTarget: text(maxID, "tool.field.target_id"), fieldCursor: text(maxCursor, "tool.field.cursor"),
		fieldStatus: map[string]any{"type": "string", "enum": commit.Statuses(), "description": b.texts.T("tool.field.status", nil)},
	}), b.outOfChanges()))
}

func (b *builder) own(name string, in, out json.RawMessage) spec {
	return spec{
		name: name, title: b.texts.T("tool."+name+".title", nil), description: b.texts.T("tool."+name+".description", nil), in: in, out: out,
	}
}

// spec is what a client is shown of a tool.
type spec struct {
	name, title, description string
	in, out                  json.RawMessage
}

// wellNamed is what the protocol allows as a tool's name.
var wellNamed = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func (b *builder) add(t *tool, hint hints, s spec) {
	if b.err == nil {
		b.err = b.complete(t, hint, s)
	}
}

func (b *builder) complete(t *tool, hint hints, s spec) (err error) {
	taken := slices.ContainsFunc(b.tools, func(other *tool) bool { return other.spec.Name == s.name })
	if taken || !wellNamed.MatchString(s.name) {
		return fmt.Errorf("the tool name %q is taken or not allowed", s.name)
	}
	t.spec = &mcp.Tool{
		Name: s.name, Title: s.title, Description: s.description, Annotations: hint.annotations(s.title), InputSchema: s.in, OutputSchema: s.out,
	}
	if t.in, err = intake.Compile(s.name+".in", s.in); err != nil {
		return err
	}
	if t.out, err = intake.Compile(s.name+".out", s.out); err != nil {
		return err
	}
	b.tools = append(b.tools, t)
	return nil
}

// clocks are the durations that the text of a preview tool names: an agent must know how long its ID lives.
func (b *builder) clocks(a connector.Registered) map[string]any {
	c := a.Clocks.Or(b.h.deps.Clocks)
	return map[string]any{
		"preview_ttl": b.lasts(c.PreviewTTL), "approval_for": b.lasts(c.ApprovalFor), "apply_window": b.lasts(c.ApplyWindow),
	}
}

func (b *builder) lasts(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return b.texts.T("tool.hours", map[string]any{"hours": int(d / time.Hour)})
	case d%time.Minute == 0:
		return b.texts.T("tool.minutes", map[string]any{"minutes": int(d / time.Minute)})
	}
	return b.texts.T("tool.seconds", map[string]any{"seconds": d.Seconds()})
}
