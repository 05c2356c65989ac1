package connector

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
)

// Reader makes read-only calls over HTTP. Unlike a Sender it keeps connections, and net/http may repeat a GET by itself;
// that is why it has no other method. Redirects are returned, never followed: a credential goes where it was configured to.
type Reader struct {
	client *http.Client
	cfg    HTTPConfig
}

// NewReader checks the configuration. It opens nothing.
func NewReader(cfg HTTPConfig) (*Reader, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DisableCompression:  true,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		TLSClientConfig:     cfg.TLS,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     DefaultClocks().LeaseFor,
	}
	if cfg.Proxy != nil {
		transport.Proxy = http.ProxyURL(cfg.Proxy)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Reader{client: &http.Client{Transport: transport, CheckRedirect: stay}, cfg: cfg}, nil
}

// Get reads one resource whole. Any status is a Reply; an error means that there is no whole answer.
func (r *Reader) Get(ctx context.Context, url string, header http.Header) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("making the request: %w", err)
	}
	req.Header = header.Clone()
	resp, err := r.client.Do(req)
	if err != nil {
		return Reply{}, fmt.Errorf("reading: %w", err)
	}
	return readReply(resp, r.cfg.MaxBytes)
}

// Close lets go of idle connections.
func (r *Reader) Close() { r.client.CloseIdleConnections() }
