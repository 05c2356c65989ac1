// Package operate asks a running service's JSON API, for operators at a terminal.
//
// It promises that it holds a service's origin and one token, and can reach nothing else: no database, no signing key, no target. A
// call is one request, never repeated: whoever asked decides. What the service answers is handed back byte for byte. A redirect
// is an answer and not an order, because the token is for one service.
//
// It does not promise to understand the answer, and it judges no token: the service does. Start at Client.Get and Client.Post.
package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config is all that a client has.
type Config struct {
	// Origin is the service, such as https://cutonce.example. Whoever configures it has seen to it that the token is safe there.
	Origin string
	// Token is asked for before every request.
	Token func() (string, error)
	// Language is the Accept-Language of every request; if empty, the token's locale decides.
	Language string
}

// Client asks. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
}

const (
	// patience is more than the longest that the service holds a call.
	patience = 75 * time.Second
	// longestAnswer bounds what is read of one answer.
	longestAnswer = 8 << 20
)

// New makes a client. It asks nobody for anything.
func New(cfg Config) (*Client, error) {
	if cfg.Token == nil || !strings.HasPrefix(cfg.Origin, "http") {
		return nil, errors.New("asking a service: its origin or the token is missing")
	}
	cfg.Origin = strings.TrimSuffix(cfg.Origin, "/")
	return &Client{cfg: cfg, http: &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Reply is what the service answered, whatever its status.
type Reply struct {
	Status int
	// Language is the one of the answer's texts.
	Language string
	Body     []byte
}

// UnheardError is returned where there is no answer of the service: it could not be reached, or something else answered.
type UnheardError struct{ err error }

// Error says why. It holds no token.
func (e *UnheardError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *UnheardError) Unwrap() error { return e.err }

// Get reads.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (Reply, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.ask(ctx, http.MethodGet, path, nil)
}

// Delete ends something.
func (c *Client) Delete(ctx context.Context, path string, query url.Values) (Reply, error) {
	return c.ask(ctx, http.MethodDelete, path+"?"+query.Encode(), nil)
}

// Post says something. Where an UnheardError comes back, it is not known whether it was heard.
func (c *Client) Post(ctx context.Context, path string, body any) (Reply, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return Reply{}, fmt.Errorf("writing the request: %w", err)
	}
	return c.ask(ctx, http.MethodPost, path, raw)
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte) (Reply, error) {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return Reply{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Reply{}, &UnheardError{err: err}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer+1))
	switch {
	case err != nil:
		return Reply{}, &UnheardError{err: fmt.Errorf("the answer was cut: %w", err)}
	case len(raw) > longestAnswer:
		return Reply{}, &UnheardError{err: errors.New("the answer is too long")}
	case !ours(response, raw):
		return Reply{}, &UnheardError{err: fmt.Errorf("what answers there (%s) is not a cutonce service, or something in front of it", response.Status)}
	}
	return Reply{Status: response.StatusCode, Language: response.Header.Get("Content-Language"), Body: raw}, nil
}

func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	token, err := c.cfg.Token()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.cfg.Origin+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Language != "" {
		request.Header.Set("Accept-Language", c.cfg.Language)
	}
	return request, nil
}

// ours reports whether an answer can be the service's: each of its answers is a JSON object with a message.
func ours(response *http.Response, raw []byte) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && kind != "application/problem+json" {
		return false
	}
	var said struct {
		Message *string `json:"message"`
	}
	return json.Unmarshal(raw, &said) == nil && said.Message != nil
}
