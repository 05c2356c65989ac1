package mcpadapter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/preview"
)

const (
	modern   = "2026-07-28"
	november = "2025-11-25"
	june     = "2025-06-18"
)

const meta = `{"io.modelcontextprotocol/protocolVersion":"` + modern + `",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// exchange is one raw HTTP request and what came back. JSON is the one message of the answer, out of its event stream.
type exchange struct {
	status int
	header http.Header
	text   string
	json   string
}

// post sends raw bytes with the headers that every client sends, changed by set ("" removes).
func (r *rig) post(token, raw string, set map[string]string) exchange {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url, strings.NewReader(raw))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range set {
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	return r.do(req)
}

func (r *rig) do(req *http.Request) exchange {
	r.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	text := body(r.t, resp)
	return exchange{status: resp.StatusCode, header: resp.Header, text: text, json: message(r.t, resp.Header, text)}
}

// message takes the one JSON-RPC message out of an answer.
func message(t testing.TB, header http.Header, text string) string {
	t.Helper()
	if !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		return text
	}
	var messages []string
	for _, line := range strings.Split(text, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "" {
			messages = append(messages, data)
		}
	}
	if len(messages) != 1 {
		t.Fatalf("got %d messages in the stream, want 1:\n%s", len(messages), text)
	}
	return messages[0]
}

// modernHeaders are what 2026-07-28 asks for.
func modernHeaders(method, tool, lang string) map[string]string {
	return map[string]string{
		"Mcp-Protocol-Version": modern, "Mcp-Method": method, "Mcp-Name": tool, "Accept-Language": lang,
	}
}

// result is a tool's answer as it arrives.
type result struct {
	answer.Body
	IsError bool
	// Raw is the structured content; Items are those of a list.
	Raw   json.RawMessage
	Items []map[string]any
	http  exchange
}

// call calls a tool by raw arguments, in English.
func (r *rig) call(token, tool, arguments string) result {
	r.t.Helper()
	got, err := r.tryCall(token, tool, arguments, "en")
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *rig) tryCall(token, tool, arguments, lang string) (result, error) {
	r.t.Helper()
	raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":%s}}`, tool, arguments, meta)
	return resultOf(r.post(token, raw, modernHeaders("tools/call", tool, lang)))
}

func resultOf(x exchange) (result, error) {
	var m struct {
		Error  json.RawMessage
		Result *struct {
			Content           []struct{ Type, Text string }
			StructuredContent json.RawMessage
			IsError           bool
		}
	}
	if err := json.Unmarshal([]byte(x.json), &m); err != nil {
		return result{http: x}, fmt.Errorf("%d %s: %w", x.status, x.text, err)
	}
	if m.Result == nil {
		return result{http: x}, fmt.Errorf("no result: %d %s", x.status, x.json)
	}
	out := result{IsError: m.Result.IsError, Raw: m.Result.StructuredContent, http: x}
	if len(m.Result.Content) != 1 || !sameJSON(m.Result.Content[0].Text, string(out.Raw)) {
		return out, fmt.Errorf("the text copy differs from the structured content:\n%s", x.json)
	}
	d := json.NewDecoder(bytes.NewReader(out.Raw))
	d.UseNumber()
	if err := d.Decode(&out.Body); err != nil {
		return out, fmt.Errorf("reading %s: %w", out.Raw, err)
	}
	var list struct{ Items []map[string]any }
	_ = json.Unmarshal(out.Raw, &list)
	out.Items = list.Items
	return out, nil
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// previewed prepares a change of a plain campaign's budget and returns the preview's ID.
func (r *rig) previewed(campaign, yen string) string {
	r.t.Helper()
	got := r.call(r.issuer.token(), "budget_change_preview", budget(campaign, yen))
	if got.IsError {
		r.t.Fatalf("preview: %s", got.Raw)
	}
	return got.PreviewID
}

func budget(campaign, yen string) string {
	return fmt.Sprintf(`{"campaign_id":%q,"new_daily_budget_jpy":%s,"reason":"a test"}`, campaign, yen)
}

func id(preview string) string { return fmt.Sprintf(`{"preview_id":%q}`, preview) }

func decision(p preview.Preview, approve bool, reason string) approvals.Decision {
	return approvals.Decision{Approve: approve, Reason: reason, Digest: p.Digest}
}

// drain empties a body that is not looked at.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}
