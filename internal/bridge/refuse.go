package bridge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/cutonce/cutonce/internal/fault"
)

// call is one call of a tool.
type call struct {
	tool      string
	arguments json.RawMessage
}

// harmless reports whether a call can have sent nothing to a target and may be repeated as it is: tools that read, and
// tools that prepare. A name that is not known to be harmless is not.
func (c call) harmless() bool {
	return c.tool == toolStatus || strings.HasSuffix(c.tool, "_find") || strings.HasSuffix(c.tool, "_preview")
}

const toolStatus = "change_status"

// refusedUnread are the JSON-RPC errors with which a request is refused before a tool runs.
var refusedUnread = map[int64]bool{
	jsonrpc.CodeParseError: true, jsonrpc.CodeInvalidRequest: true, jsonrpc.CodeMethodNotFound: true, jsonrpc.CodeInvalidParams: true,
}

// retryAfter is when a call that found nobody should be repeated.
const retryAfter = 5 * time.Second

// unanswered says what is known of a call that the service did not answer. Only what provably did nothing may be called
// again; of everything else it is not known whether it happened, and change_status knows.
func (c call) unanswered(r reply) (refusal error, next Step) {
	var noToken tokenError
	switch {
	case errors.As(r.err, &noToken):
		return fault.New(fault.Unauthenticated, nil).WithKey("bridge.no_token"), Step{}
	case r.status == http.StatusUnauthorized:
		return fault.New(fault.Unauthenticated, nil), Step{}
	case r.status == http.StatusForbidden && r.scopes() != nil:
		return r.insufficient(), Step{}
	case r.status == http.StatusForbidden:
		return fault.New(fault.Forbidden, nil).WithKey("bridge.forbidden"), Step{}
	case r.err != nil && !r.left || c.harmless() && r.passing():
		return fault.New(fault.TargetUnavailable, nil).WithKey("bridge.unreachable").After(retryAfter), c.again()
	case c.harmless():
		return fault.New(fault.Internal, fault.Args{"status": r.status}).WithKey("bridge.unexpected"), Step{}
	}
	return fault.New(fault.OutcomeUnknown, nil).WithKey("bridge.lost").After(retryAfter), c.status()
}

// passing reports whether the trouble may be over soon.
func (r reply) passing() bool {
	return r.err != nil || r.status >= http.StatusInternalServerError || r.status == http.StatusTooManyRequests
}

// again is the same call.
func (c call) again() Step {
	decoder := json.NewDecoder(bytes.NewReader(c.arguments))
	decoder.UseNumber()
	step := Step{Tool: c.tool}
	if decoder.Decode(&step.Arguments) != nil {
		step.Arguments = nil
	}
	return step
}

// status asks for the change that the call is about.
func (c call) status() Step {
	id, ok := c.again().Arguments["preview_id"].(string)
	if !ok {
		return Step{Tool: "changes_find"}
	}
	return Step{Tool: toolStatus, Arguments: map[string]any{"preview_id": id}}
}

// listRefused is the protocol's error for a list, which has no other way to say no. Its number is HTTP's, as the service's
// own are.
func (b *Bridge) listRefused(r reply) error {
	if r.protocol != nil {
		return r.protocol
	}
	body := r.body
	code := int64(cmp.Or(r.status, http.StatusServiceUnavailable))
	b.cfg.Log.Warn("the tools cannot be listed", "error", r.trouble())
	if body == nil {
		refusal, _ := call{tool: toolStatus}.unanswered(r)
		var err error
		if body, err = b.cfg.Say(refusal, Step{}); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
	}
	return &jsonrpc.Error{Code: code, Message: saidIn(body), Data: body}
}

// with sorts an answer.
func (r reply) with(m message) reply {
	if m.Error == nil {
		r.result = m.Result
		return r
	}
	var ours struct {
		Code fault.Code `json:"code"`
	}
	if json.Unmarshal(m.Error.Data, &ours) == nil {
		if _, known := fault.Codes()[ours.Code]; known {
			r.body = m.Error.Data
			return r
		}
	}
	r.protocol = m.Error
	return r
}

// said is the sentence of a refusal.
func (r reply) said() string { return saidIn(r.body) }

func saidIn(body json.RawMessage) string {
	var b struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	return b.Message
}

// trouble is for the log. It holds no token: those travel in a header only.
func (r reply) trouble() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.body != nil:
		return fmt.Sprintf("HTTP %d: %s", r.status, r.said())
	}
	return fmt.Sprintf("HTTP %d", r.status)
}

var scopeOf = regexp.MustCompile(`(?:^|[ ,])scope="([^"]+)"`)

// scopes are what a challenge asks for; nil if it is no challenge for more scopes.
func (r reply) scopes() []string {
	if r.status != http.StatusForbidden || !strings.Contains(r.challenge, `error="insufficient_scope"`) {
		return nil
	}
	found := scopeOf.FindStringSubmatch(r.challenge)
	if found == nil {
		return nil
	}
	return strings.Fields(found[1])
}

func (r reply) insufficient() *fault.Fault {
	scopes := r.scopes()
	f := fault.New(fault.InsufficientScope, fault.Args{"scopes": strings.Join(scopes, " ")}).WithData(map[string]any{"scopes": scopes})
	f.Scopes = scopes
	return f
}

// withScopes is the service's refusal, with the scopes of the challenge that standard output has no header for.
func (r reply) withScopes() json.RawMessage {
	scopes := r.scopes()
	if scopes == nil {
		return r.body
	}
	var members map[string]json.RawMessage
	data := map[string]any{}
	if json.Unmarshal(r.body, &members) != nil || members["data"] != nil && json.Unmarshal(members["data"], &data) != nil {
		return r.body
	}
	data["scopes"] = scopes
	raw, err := json.Marshal(data)
	if err != nil {
		return r.body
	}
	members["data"] = raw
	body, err := json.Marshal(members)
	if err != nil {
		return r.body
	}
	return body
}
