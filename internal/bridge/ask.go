package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The methods that are asked of the service, and the version of the protocol in which they are, whatever the client speaks.
const (
	methodDiscover = "server/discover"
	methodList     = "tools/list"
	methodCall     = "tools/call"
	protocol       = "2026-07-28"
)

// longestAnswer bounds what is read of one answer.
const longestAnswer = 8 << 20

// reply is what came of one request. At most one of result, body and protocol is set; none is if the service was not heard.
type reply struct {
	// err says why there is no HTTP answer; left is false only if provably nothing was sent.
	err  error
	left bool

	status    int
	challenge string
	result    json.RawMessage
	// body is a refusal in the service's own words, made before the call reached a tool.
	body     json.RawMessage
	protocol *jsonrpc.Error
}

// ask sends one request, once.
func (b *Bridge) ask(ctx context.Context, method, tool string, params map[string]any) reply {
	var left atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left.Store(true) }})
	request, err := b.request(ctx, method, tool, params)
	if err != nil {
		return reply{err: err}
	}
	response, err := b.http.Do(request)
	if err != nil {
		return reply{err: err, left: left.Load()}
	}
	defer response.Body.Close()
	r := reply{left: true, status: response.StatusCode, challenge: response.Header.Get("WWW-Authenticate")}
	message, err := readMessage(response)
	if err != nil {
		if r.status == http.StatusOK {
			r.err = fmt.Errorf("the answer was cut or is no answer: %w", err)
		}
		return r
	}
	return r.with(message)
}

func (b *Bridge) request(ctx context.Context, method, tool string, params map[string]any) (*http.Request, error) {
	token, err := b.cfg.Token()
	if err != nil {
		return nil, tokenError{err}
	}
	all := map[string]any{"_meta": map[string]any{
		mcp.MetaKeyProtocolVersion:    protocol,
		mcp.MetaKeyClientInfo:         map[string]any{"name": "cutonce-mcp", "version": b.cfg.Version},
		mcp.MetaKeyClientCapabilities: map[string]any{},
	}}
	for name, value := range params {
		all[name] = value
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": requestID, "method": method, "params": all})
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": protocol, "Mcp-Method": method, "Mcp-Name": tool, "Accept-Language": b.cfg.Language,
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	return request, nil
}

// requestID is the same for all: an answer comes on its own connection.
const requestID = 1

// tokenError says that there is no token to send.
type tokenError struct{ error }

// message is a JSON-RPC answer.
type message struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *jsonrpc.Error  `json:"error"`
}

func (m message) isAnswer() bool {
	return len(m.Result) > 0 && m.Result[0] == '{' && string(m.ID) == strconv.Itoa(requestID) || m.Error != nil
}

func readMessage(response *http.Response) (message, error) {
	body := io.LimitReader(response.Body, longestAnswer)
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return readStream(body)
	}
	var m message
	if err := json.NewDecoder(body).Decode(&m); err != nil {
		return m, err
	}
	if !m.isAnswer() {
		return m, errors.New("JSON, but no answer")
	}
	return m, nil
}

// readStream reads events until one is the answer. Others are notifications, which nobody asked for.
func readStream(body io.Reader) (message, error) {
	lines := bufio.NewReader(body)
	var data []byte
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return message{}, fmt.Errorf("the stream ended without an answer: %w", err)
		}
		line = strings.TrimRight(line, "\r\n")
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(append(data, strings.TrimPrefix(text, " ")...), '\n')
		}
		if line != "" {
			continue
		}
		var m message
		if len(data) > 0 && json.Unmarshal(data, &m) == nil && m.isAnswer() {
			return m, nil
		}
		data = nil
	}
}
