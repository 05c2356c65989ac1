// Package post carries messages: as signed webhooks, to Slack, and as mail.
//
// It promises that a message goes to the configured address and nowhere else (no redirect is followed, TLS everywhere but on this
// machine), that every try ends in time and reads little, that nothing of a message can become a header, markup or a mention, and that
// an error's text holds no address and no secret: Slack's addresses are secrets.
//
// It does not retry, and does not know whether a message that it failed to hand over has arrived: its ID stays the same, so that
// receivers can tell. Start at Senders.
package post

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/notify"
)

// Deps are what senders need.
type Deps struct {
	// PublicURL names the service in mail.
	PublicURL string
	Version   string
	Now       func() time.Time
	// For bounds one try; zero means DefaultFor.
	For time.Duration
	// TLS is for tests; nil means the system's roots.
	TLS *tls.Config
}

// DefaultFor bounds one try.
const DefaultFor = 10 * time.Second

// Senders makes the sender of each receiver.
func Senders(c notify.Config, d Deps) map[string]notify.Sender {
	if d.For == 0 {
		d.For = DefaultFor
	}
	client := clientOf(d)
	senders := map[string]notify.Sender{}
	for _, r := range c.Receivers {
		switch {
		case r.Webhook != nil:
			senders[r.Name] = webhook{to: *r.Webhook, client: client, deps: d}
		case r.Slack != nil:
			senders[r.Name] = slack{url: r.Slack.URL, client: client, deps: d}
		case r.Mail != nil && c.SMTP != nil:
			senders[r.Name] = mailer{to: *r.Mail, server: *c.SMTP, deps: d}
		}
	}
	return senders
}

// most is how much of an answer is read.
const most = 4 << 10

func clientOf(d Deps) *http.Client {
	return &http.Client{
		Timeout:       d.For,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: d.TLS.Clone(), ForceAttemptHTTP2: true,
			DialContext:         (&net.Dialer{Timeout: d.For}).DialContext,
			TLSHandshakeTimeout: d.For, ResponseHeaderTimeout: d.For, MaxResponseHeaderBytes: 16 << 10,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second,
		},
	}
}

// do sends one request and judges the answer by its status alone. The words of an answer are nobody's to trust.
func do(client *http.Client, r *http.Request) error {
	response, err := client.Do(r)
	if err != nil {
		return unreached(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, most) // so that the connection can be used again
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusGone:
		return fmt.Errorf("%w: it answered 410", notify.ErrRefused)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		if after := retryAfter(response.Header.Get("Retry-After")); after > 0 {
			return &notify.BusyError{For: after}
		}
		return fmt.Errorf("the receiver answered %d", status)
	default:
		return fmt.Errorf("the receiver answered %d", status)
	}
}

// longestPause bounds what a receiver may ask for.
const longestPause = 10 * time.Minute

func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestPause)
}

// unreached says why there was no answer, without the address: it may be a secret.
func unreached(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var dns *net.DNSError
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errors.New("the receiver did not answer in time")
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("the process is ending: %w", context.Canceled)
	case errors.As(err, &dns):
		return errors.New("the receiver's name was not found")
	case errors.As(err, &unverified):
		return errors.New("the receiver's certificate is not trusted")
	case errors.As(err, &op):
		return fmt.Errorf("the receiver could not be reached (%s)", op.Op)
	}
	return errors.New("the receiver did not answer as it should")
}
