package mcpadapter

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// caller is who calls, in which language, under which request ID. It travels in the request's context.
type caller struct {
	who       actor.Actor
	texts     *catalog.Texts
	requestID string
	// args are the arguments of the one call that the message makes; nil if it makes none or several.
	args json.RawMessage
	// counted says that the message's one call has been counted, and limited that it was refused for being one too many.
	counted bool
	limited error
}

type callerKey struct{}

func callerOf(ctx context.Context) (caller, bool) {
	c, ok := ctx.Value(callerKey{}).(caller)
	return c, ok
}

func (c caller) attach(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// layers stacks what a request passes before and within the SDK.
//
// The SDK's own Host check is off: it refuses a reverse proxy on the same machine, and a page that reached us by DNS
// rebinding sends an Origin that is not listed, and has no token.
func (h *Handler) layers() http.Handler {
	inner := mcp.NewStreamableHTTPHandler(h.serverFor, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: h.deps.MaxBody,
		DisableLocalhostProtection: true, Logger: quiet(h.deps.Log),
	})
	cross := http.NewCrossOriginProtection()
	for origin := range h.origins {
		_ = cross.AddTrustedOrigin(origin) // complete has checked its form
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := caller{texts: h.deps.Catalog.In(r.Header.Get("Accept-Language")), requestID: h.requestID(r)}
		w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold back an event stream
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Request-Id", c.requestID)
		next, e, err := h.admit(w, r, cross, &c)
		if err != nil {
			h.refuse(w, r, c, e, err)
			return
		}
		inner.ServeHTTP(w, next)
	})
}

func (h *Handler) requestID(r *http.Request) string {
	if h.deps.RequestID != nil {
		return h.deps.RequestID(r)
	}
	return "rq_" + strings.ToLower(rand.Text())
}

// admit checks origin, token, size, form and scopes, in that order, and returns the request as the SDK shall see it.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, cross *http.CrossOriginProtection, c *caller) (*http.Request, envelope, error) {
	if origin := r.Header.Get("Origin"); origin != "" && !h.origins[origin] || cross.Check(r) != nil {
		return nil, envelope{}, fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.origin")
	}
	token, err := auth.FromRequest(r)
	if err != nil {
		return nil, envelope{}, err
	}
	if c.who, err = h.deps.Verifier.Verify(r.Context(), token); err != nil {
		return nil, envelope{}, err
	}
	c.texts = h.deps.Catalog.In(r.Header.Get("Accept-Language"), c.who.Locale)
	if r.Method != http.MethodPost {
		return c.attach(r), envelope{}, nil
	}
	body, err := h.read(w, r)
	if err != nil {
		return nil, envelope{}, err
	}
	e, err := open(body)
	if err != nil {
		return nil, e, malformed(err)
	}
	c.args = e.args
	if err := h.count(c, e); err != nil {
		return nil, e, err
	}
	next := c.attach(r)
	next.Body, next.ContentLength = io.NopCloser(bytes.NewReader(e.forward)), int64(len(e.forward))
	if c.limited != nil { // the tool says so; nothing is read for its sake
		return next, e, nil
	}
	return next, e, h.stepUp(next.Context(), *c, e)
}

// count counts a message before anything is looked up for it. A tool's call that is one too many is answered as the tool's refusal.
func (h *Handler) count(c *caller, e envelope) error {
	limited := h.limit(c.who, e.tool)
	if e.tool == "" {
		return limited
	}
	c.counted, c.limited = true, limited
	return nil
}

func (h *Handler) limit(who actor.Actor, tool string) error {
	if h.deps.Limit == nil {
		return nil
	}
	power, known := h.powers[tool]
	if !known {
		power = actor.Call
	}
	return h.deps.Limit(who, power)
}

// read takes the whole body, bounded. One that says it is too long is not even begun.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := fault.New(fault.TooLarge, fault.Args{"limit": h.deps.MaxBody})
	if r.ContentLength > h.deps.MaxBody {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.deps.MaxBody))
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return nil, tooLarge
	case err != nil:
		return nil, fault.New(fault.InvalidInput, nil).WithKey("fault.invalid_input.cut").Because(err)
	}
	return body, nil
}

func malformed(err error) error {
	reason := "field.json.syntax"
	switch {
	case errors.Is(err, errDuplicate):
		reason = "field.json.duplicate_key"
	case errors.Is(err, errTooDeep):
		reason = "field.json.too_deep"
	}
	return fault.New(fault.InvalidInput, nil).WithField("", reason, nil).Because(err)
}

// stepUp refuses a call whose token lacks a scope before the SDK begins an answer: only an HTTP status and header make a
// client ask for more (RFC 6750). It is repeated by the services, which decide.
func (h *Handler) stepUp(ctx context.Context, c caller, e envelope) error {
	t, known := h.tools[c.texts.Lang][e.tool]
	if e.method != methodCall || !known {
		return nil
	}
	scopes := t.scopes
	if t.scopesOf != nil {
		scopes = t.scopesOf(ctx, c, e.args)
	}
	return preview.RequireScopes(c.who, scopes...)
}

// rpcError is a JSON-RPC error with the same body that a tool's refusal has.
type rpcError struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   struct {
		Code    int         `json:"code"`
		Message string      `json:"message"`
		Data    answer.Body `json:"data"`
	} `json:"error"`
}

// refuse answers before the SDK is involved. Codes are HTTP's own numbers, outside the range that JSON-RPC reserves, but for
// messages that are no JSON-RPC.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, c caller, e envelope, err error) {
	f := fault.From(err)
	status := statusOf(f)
	body := answer.Writer{Texts: c.texts, RequestID: c.requestID}.Fault(err)
	h.log(r.Context(), c, "refused before the call", e.tool, body, err)
	out := rpcError{Version: "2.0", ID: e.id}
	out.Error.Code, out.Error.Message, out.Error.Data = status, body.Message, body
	if status == http.StatusBadRequest {
		out.Error.Code = codeParse
	}
	raw, err := json.Marshal(out)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	if value := h.challenge.Header(f); value != "" {
		w.Header().Set("WWW-Authenticate", value)
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// codeParse is JSON-RPC's "parse error".
const codeParse = -32700

// statusOf gives the few faults that can occur before a call their HTTP status.
func statusOf(f *fault.Fault) int {
	switch f.Code {
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden, fault.InsufficientScope:
		return http.StatusForbidden
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.InvalidInput:
		return http.StatusBadRequest
	case fault.RateLimited:
		return http.StatusTooManyRequests
	}
	if f.Retryable {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// log writes one line per call. Only internal errors are errors; their text goes nowhere else.
func (h *Handler) log(ctx context.Context, c caller, what, tool string, b answer.Body, err error) {
	attrs := []slog.Attr{
		slog.String("request_id", c.requestID), slog.String("tool", tool), slog.String("tenant", c.who.Tenant),
		slog.String("caller", c.who.ID()), slog.String("preview_id", b.PreviewID), slog.String("status", b.Status),
		slog.String("code", b.Code),
	}
	level := slog.LevelInfo
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
		if fault.CodeOf(err) == fault.Internal && ctx.Err() == nil {
			level = slog.LevelError
		}
	}
	h.deps.Log.LogAttrs(ctx, level, what, attrs...)
}
