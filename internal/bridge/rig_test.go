package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/internal/bridge"
	"github.com/cutonce/cutonce/internal/fault"
)

const token = "the-one-token"

// asked is one request that a service got.
type asked struct {
	header http.Header
	method string
	params string
}

// service is a stand-in that answers as a test says, and remembers what it was asked.
type service struct {
	*httptest.Server
	mu    sync.Mutex
	asked []asked
}

// newService greets by itself; everything else is the test's.
func newService(t *testing.T, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var m struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err != nil || json.Unmarshal(raw, &m) != nil {
			t.Errorf("the service got %q (%v), want JSON-RPC", raw, err)
		}
		s.mu.Lock()
		s.asked = append(s.asked, asked{r.Header.Clone(), m.Method, string(m.Params)})
		s.mu.Unlock()
		if m.Method == "server/discover" {
			says(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Measure twice.",`+
				`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"cutonce","version":"9.9"}}}`)(w, r)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// calls are the requests that were no greeting.
func (s *service) calls() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []asked
	for _, a := range s.asked {
		if a.method != "server/discover" {
			out = append(out, a)
		}
	}
	return out
}

// says answers with a result.
func says(result string) http.HandlerFunc {
	return replies(http.StatusOK, `{"jsonrpc":"2.0","id":1,"result":`+result+`}`)
}

func replies(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangsUp reads the request and answers nothing.
func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// log is what people read.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// body is what a refusal says.
type body struct {
	Code          string         `json:"code"`
	Message       string         `json:"message"`
	Next          string         `json:"next"`
	NextTool      string         `json:"next_tool"`
	NextArguments map[string]any `json:"next_arguments"`
	Retryable     *bool          `json:"retryable"`
	Data          map[string]any `json:"data"`
}

func config(url string, l io.Writer) bridge.Config {
	return bridge.Config{
		URL: url, Token: func() (string, error) { return token, nil }, Language: "ja", Version: "1", Log: slog.New(slog.NewTextHandler(l, nil)),
		Say: func(refusal error, step bridge.Step) (json.RawMessage, error) {
			f := fault.From(refusal)
			return json.Marshal(body{
				Code: string(f.Code), Message: f.Key, Next: string(f.Next), NextTool: step.Tool, NextArguments: step.Arguments,
				Retryable: &f.Retryable, Data: f.Data,
			})
		},
	}
}

// connected is a client at a running bridge.
type connected struct {
	*mcp.ClientSession
	log *log
}

func connect(t *testing.T, url, version string) connected {
	t.Helper()
	l := &log{}
	b, err := bridge.New(config(url, l))
	if err != nil {
		t.Fatal(err)
	}
	near, far := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, far) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, near, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		cancel()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("the bridge does not end with its client")
		}
		if strings.Contains(l.String(), token) {
			t.Errorf("the token is in the log:\n%s", l)
		}
	})
	return connected{client, l}
}

const modern, legacy = "2026-07-28", "2025-11-25"

func (c connected) call(t *testing.T, tool string, arguments any) *mcp.CallToolResult {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// refused calls a tool, whose answer must be a refusal in both forms.
func (c connected) refused(t *testing.T, tool string, arguments any) body {
	t.Helper()
	r := c.call(t, tool, arguments)
	text := r.Content[0].(*mcp.TextContent).Text
	var b body
	if err := json.Unmarshal([]byte(text), &b); err != nil || !r.IsError || r.StructuredContent == nil {
		t.Fatalf("%s: got isError %v, structured %v, %s (%v), want a refusal", tool, r.IsError, r.StructuredContent, text, err)
	}
	return b
}

// wire is a client that looks at the bytes: the SDK's own reads numbers through a float, and forgives.
type wire struct {
	t      *testing.T
	writes io.Writer
	reads  *json.Decoder
	meta   string
}

// wireResult is what of a result is looked at.
type wireResult struct {
	ResultType string          `json:"resultType"`
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
	Content    []struct{ Type, Text string }
}

func speak(t *testing.T, url, version string) *wire {
	t.Helper()
	b, err := bridge.New(config(url, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	toBridge, writes := io.Pipe()
	reads, fromBridge := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = b.Run(ctx, &mcp.IOTransport{Reader: toBridge, Writer: fromBridge}) }()
	w := &wire{t: t, writes: writes, reads: json.NewDecoder(reads)}
	if version == modern {
		w.meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
		return w
	}
	w.write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	var hello struct {
		Result struct{ ProtocolVersion, Instructions string }
	}
	if err := w.reads.Decode(&hello); err != nil || hello.Result.ProtocolVersion != version || hello.Result.Instructions != "Measure twice." {
		t.Fatalf("got %+v, %v, want %s and the service's instructions", hello, err, version)
	}
	w.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w *wire) write(message string) {
	w.t.Helper()
	if _, err := io.WriteString(w.writes, message+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// ask calls a tool.
func (w *wire) ask(params string) wireResult {
	w.t.Helper()
	w.write(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + w.meta + params + `}}`)
	var m struct {
		ID     int        `json:"id"`
		Result wireResult `json:"result"`
	}
	if err := w.reads.Decode(&m); err != nil || m.ID != 7 {
		w.t.Fatalf("got %+v, %v, want the answer", m, err)
	}
	return m.Result
}
