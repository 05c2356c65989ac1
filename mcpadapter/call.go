package mcpadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
)

// tool is one tool in one language.
type tool struct {
	spec    *mcp.Tool
	in, out *intake.Schema
	// finds says that the answer holds what a connector has found.
	finds bool
	// scopes are what every call needs; scopesOf, if set, says what this call needs.
	scopes   []string
	scopesOf func(ctx context.Context, c caller, args json.RawMessage) []string
	run      func(ctx context.Context, c call) reply
}

// call is one checked call.
type call struct {
	caller
	input connector.Input
	raw   []byte
	// write writes the answer in the caller's language and format.
	write answer.Writer
}

// reply is what a tool answers. body is what of it the log and isError look at; err is for the log alone.
type reply struct {
	value any
	body  answer.Body
	err   error
}

func said(b answer.Body, err error) reply { return reply{value: b, body: b, err: err} }

func failed(w answer.Writer, err error) reply { return said(w.Fault(err), err) }

// call runs one tool: read exactly, check against the schema, run, check what comes out.
func (h *Handler) call(ctx context.Context, t *tool, raw json.RawMessage) *mcp.CallToolResult {
	c, ok := callerOf(ctx)
	if !ok {
		// Not reachable over HTTP: the door puts the caller there.
		c.texts = h.deps.Catalog.In("")
		return h.result(ctx, c, t, failed(answer.Writer{Texts: c.texts}, fault.New(fault.Unauthenticated, nil)))
	}
	if c.args != nil {
		raw = c.args
	}
	return h.result(ctx, c, t, h.perform(ctx, c, t, raw))
}

func (h *Handler) perform(ctx context.Context, c caller, t *tool, raw json.RawMessage) reply {
	w := answer.Writer{Texts: c.texts, RequestID: c.requestID}
	if c.limited == nil && !c.counted { // one of several in a message
		c.limited = h.limit(c.who, t.spec.Name)
	}
	if c.limited != nil {
		return failed(w, c.limited)
	}
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage(`{}`)
	}
	value, err := intake.Read(raw, int(h.deps.MaxBody))
	if err != nil {
		return failed(w, err)
	}
	if err := t.in.Check(value); err != nil {
		return failed(w, err)
	}
	input, ok := value.(map[string]any)
	if !ok {
		return failed(w, fmt.Errorf("the schema of %s lets in what is no object", t.spec.Name))
	}
	w.Detailed = input[fieldFormat] == formatDetailed
	return t.run(ctx, call{caller: c, input: input, raw: raw, write: w})
}

// checksOwn has our own answers checked too, as what comes from a connector always is. They are made of types that their schemas were
// written from, so that a test is enough: every answer of this package's tests is checked.
var checksOwn = false

// result checks the answer against the published schema and wraps it. An answer that does not match is our defect: it is
// logged, and the caller is told that something went wrong here.
func (h *Handler) result(ctx context.Context, c caller, t *tool, r reply) *mcp.CallToolResult {
	raw, err := encode(t, r.value)
	if err != nil {
		r = failed(answer.Writer{Texts: c.texts, RequestID: c.requestID}, fmt.Errorf("the answer does not match its schema: %w", err))
		raw, err = encode(t, r.value)
	}
	h.log(ctx, c, "tool called", t.spec.Name, r.body, r.err)
	if err != nil { // a plain refusal matches every tool's schema; a test says so
		raw = json.RawMessage(`{}`)
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: string(raw)}}, StructuredContent: raw, IsError: r.body.Code != "",
	}
}

func encode(t *tool, value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // "<" in a campaign's name is a "<"
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("writing: %w", err)
	}
	raw := bytes.TrimRight(b.Bytes(), "\n")
	if !t.finds && !checksOwn {
		return raw, nil
	}
	var decoded any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("reading back: %w", err)
	}
	return raw, t.out.Validate(decoded)
}
