// Package httptarget is what a connector needs over an HTTP API that answers in JSON, whatever it changes there.
//
// The promise: an answer is read strictly or not at all, so that what was cut off, doubled or spelled otherwise is never
// taken for an answer; a refusal counts only where status and code together are documented, because a gateway answers with
// the same statuses and knows nothing of what is behind it; and no refusal is believed before the target was asked for our
// own mark (Case.Judge), because it speaks for the one delivery that it answers, and something in between may have delivered
// the request twice. A change names the people behind it in headers that nobody can forge. Reads have no effect, so one that
// gives no usable answer is the fault target_unavailable, which may be repeated.
//
// It does not promise to know a target. Which refusals are documented, what a success must show, what an effect looks like
// and who may do what are for each connector to write down, from the target's own documentation. It does fix a bearer token
// as credential, {"error": {"code": …, "message": …}} as the form of a refusal, and a history that is filtered by ?key= (see
// Marked). For a target that has others, use connector.Sender and connector.Reader themselves; Case needs none of this.
//
// Start at New for reading and sending, at Document for what is answered, and at Case for what an answer proves.
// connector/adbudget and connector/rollback are two connectors written on it.
package httptarget

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// maxReply bounds every answer of the target.
const maxReply = 1 << 20

// Config says which API, and with whose credential.
type Config struct {
	// BaseURL is the API. Plain http is taken only towards this machine itself, unless AllowPlainHTTP: the credential travels
	// with every call.
	BaseURL        string
	AllowPlainHTTP bool
	// Token is the service's own bearer credential.
	Token string
	// HTTP is for sends; reads use it too, with ReadTimeout. Its MaxBytes is not asked: an answer has 1 MiB at most.
	HTTP        connector.HTTPConfig
	ReadTimeout time.Duration
}

// Client reads from one target and sends to it. It is safe for concurrent use.
type Client struct {
	base, token string
	sender      *connector.Sender
	reader      *connector.Reader
}

// New checks the configuration. It opens nothing.
func New(cfg Config) (*Client, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.HTTP.MaxBytes = maxReply
	sender, err := connector.NewSender(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	cfg.HTTP.Timeout = cfg.ReadTimeout
	reader, err := connector.NewReader(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	return &Client{base: strings.TrimRight(cfg.BaseURL, "/"), token: cfg.Token, sender: sender, reader: reader}, nil
}

func (c Config) check() error {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return errors.New("the base URL must be an http or https URL with a host")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return errors.New("the base URL must hold no credential, query or fragment")
	case base.Scheme == "http" && !c.AllowPlainHTTP && !loopback(base.Hostname()):
		return errors.New("plain http would show the credential to the network; use https, or allow it explicitly")
	case c.Token == "" || strings.ContainsFunc(c.Token, notVisibleASCII):
		return errors.New("a token of visible ASCII is needed")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func notVisibleASCII(r rune) bool { return r <= ' ' || r > '~' }

// Get reads one document. An answer other than 200 is a refusal for the caller to judge; no usable answer is a fault.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (Document, *Refusal, error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	reply, err := c.reader.Get(ctx, address, c.headers())
	if err != nil {
		return nil, nil, Unavailable(err, 0)
	}
	if reply.Status != http.StatusOK {
		r := ReadRefusal(reply)
		return nil, &r, nil
	}
	d, err := ParseDocument(reply.Body)
	if err != nil {
		return nil, nil, Unavailable(err, 0)
	}
	return d, nil, nil
}

// Marked reads what the target's history has under our key: a list that it filters by ?key=, of entries that say their key.
// The answer proves something only if every entry carries that key. No entries and no error is the proof that there are none.
func (c *Client) Marked(ctx context.Context, path, list, key string) ([]Document, error) {
	if key == "" {
		return nil, errors.New("a look-up needs our mark")
	}
	d, refused, err := c.Get(ctx, path, url.Values{"key": {key}})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused.Unavailable()
	}
	entries, err := d.List(list)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry["key"] != key {
			return nil, errors.New("the platform's history answered about another key")
		}
	}
	return entries, nil
}

// Unavailable is the fault of a read that gave no usable answer. Reads have no effect, so it may be repeated.
func Unavailable(cause error, after time.Duration) error {
	return fault.New(fault.TargetUnavailable, nil).Because(cause).After(after)
}

// Send sends a plan's request once. Its errors are those of connector.Sender: NotSent is a proof, every other an unknown
// outcome. What a status means is the connector's to say.
func (c *Client) Send(ctx context.Context, request connector.Request, call connector.Call) (connector.Reply, error) {
	if call.Key == "" {
		return connector.Reply{}, connector.NotSent(errors.New("a send without our mark could never be looked up"))
	}
	return c.sender.Send(ctx, connector.Outgoing{
		Method: request.Method, URL: c.base + request.Path, Body: request.Body, Header: c.changeHeaders(request, call),
	})
}

// changeHeaders mark the change with our key and name the people behind it. The key goes along even where the target does
// not honour it: its history records it, which is what a look-up needs.
func (c *Client) changeHeaders(request connector.Request, call connector.Call) http.Header {
	h := c.headers()
	h.Set("Content-Type", "application/json")
	h.Set("Idempotency-Key", call.Key)
	if request.Precondition != "" {
		h.Set("If-Match", request.Precondition)
	}
	for name, value := range map[string]string{
		"X-On-Behalf-Of": call.OnBehalfOf,
		"X-Approved-By":  strings.Join(call.ApprovedBy, ", "),
		"X-Agent":        call.Agent,
		"X-Preview-Id":   call.PreviewID,
	} {
		if value != "" {
			h.Set(name, visible.Text(value)) // a header holds no control characters
		}
	}
	return h
}

func (c *Client) headers() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.token}, "Accept": {"application/json"}}
}

// Close lets go of idle connections.
func (c *Client) Close() { c.reader.Close() }
