package post_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/notify/post"
)

var (
	secret = []byte("0123456789abcdef0123456789abcdef")
	older  = []byte("fedcba9876543210fedcba9876543210")
	now    = time.Date(2026, 12, 1, 3, 4, 5, 0, time.UTC)
)

func deps() post.Deps {
	return post.Deps{
		PublicURL: "https://cutonce.example", Version: "test", Now: func() time.Time { return now }, For: 5 * time.Second,
	}
}

func note() notify.Note {
	return notify.Note{
		ID: "msg_1", Kind: notify.ApprovalWanted, At: now, Thread: "pv_1", Subject: "Approval wanted: Spring", Title: "Approval wanted",
		Lines: []notify.Line{{Label: "Change", Text: "10,000 JPY → 16,000 JPY"}}, Link: "https://cutonce.example/changes/pv_1/review",
		Act: "Look at it and decide", Foot: "This message decides nothing.", Payload: []byte(`{"type":"change.approval_wanted","data":{"n":1}}`),
	}
}

func webhookTo(url string, secrets ...[]byte) notify.Sender {
	return post.Senders(notify.Config{Receivers: []notify.Receiver{{Name: "r", Webhook: &notify.Webhook{URL: url, Secrets: secrets}}}}, deps())["r"]
}

func slackTo(url string) notify.Sender {
	return post.Senders(notify.Config{Receivers: []notify.Receiver{{Name: "r", Slack: &notify.Slack{URL: url}}}}, deps())["r"]
}

// verified checks a request as the specification of Standard Webhooks says, written out: the base64 of the HMAC-SHA256 of
// id.timestamp.body under the secret is one of the signatures of version 1, and the time is within five minutes.
func verified(secret []byte, h http.Header, body []byte) error {
	id, timestamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	var at int64
	if _, err := fmt.Sscan(timestamp, &at); err != nil || now.Sub(time.Unix(at, 0)).Abs() > 5*time.Minute || id == "" {
		return fmt.Errorf("the id %q or the time %q is missing or too far away", id, timestamp)
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	want := mac.Sum(nil)
	for one := range strings.SplitSeq(h.Get("webhook-signature"), " ") {
		version, encoded, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(encoded)
		if version == "v1" && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("no signature fits")
}

// got is what a receiver was sent.
type got struct {
	header http.Header
	body   []byte
}

func receiver(t *testing.T, status int, headers ...string) (url string, seen <-chan got) {
	t.Helper()
	all := make(chan got, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all <- got{r.Header, body}
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, all
}

func TestAWebhookIsSignedAsTheStandardSays(t *testing.T) {
	t.Parallel()
	url, seen := receiver(t, 204)
	if err := webhookTo(url, secret).Send(t.Context(), note()); err != nil {
		t.Fatal(err)
	}
	g := <-seen
	if err := verified(secret, g.header, g.body); err != nil {
		t.Error(err)
	}
	if got, want := string(g.body), string(note().Payload); got != want || g.header.Get("Content-Type") != "application/json" {
		t.Errorf("got body %s of %s, want %s", got, g.header.Get("Content-Type"), want)
	}
	if err := verified(older, g.header, g.body); err == nil {
		t.Error("another secret fits")
	}
	if err := verified(secret, g.header, append(g.body, ' ')); err == nil {
		t.Error("another body fits")
	}
}

// The specification's own example.
func TestTheSpecificationsExample(t *testing.T) {
	t.Parallel()
	const text, id, at, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	url, seen := receiver(t, 200)
	d := deps()
	d.Now = func() time.Time { return time.Unix(at, 0) }
	n := note()
	n.ID, n.Payload = id, []byte(body)
	s := post.Senders(notify.Config{Receivers: []notify.Receiver{{Name: "r", Webhook: &notify.Webhook{URL: url, Secrets: [][]byte{key}}}}}, d)["r"]
	if err := s.Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if got, want := (<-seen).header.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhileSecretsAreExchangedEitherFits(t *testing.T) {
	t.Parallel()
	url, seen := receiver(t, 200)
	if err := webhookTo(url, secret, older).Send(t.Context(), note()); err != nil {
		t.Fatal(err)
	}
	g := <-seen
	if err := errors.Join(verified(secret, g.header, g.body), verified(older, g.header, g.body)); err != nil {
		t.Error(err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, seen := receiver(t, 200)
	for _, status := range []int{301, 302, 307, 308} {
		url, _ := receiver(t, status, "Location", elsewhere)
		if err := webhookTo(url, secret).Send(t.Context(), note()); err == nil || errors.Is(err, notify.ErrRefused) {
			t.Errorf("%d: got %v, want an error that is tried again", status, err)
		}
	}
	select {
	case <-seen:
		t.Error("a redirect was followed")
	default:
	}
}

func TestAnswersAreJudgedByTheirStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		headers []string
		refused bool
		busy    time.Duration
	}{
		{status: 500}, {status: 404}, {status: 400}, {status: 410, refused: true},
		{status: 429, headers: []string{"Retry-After", "7"}, busy: 7 * time.Second},
		{status: 503, headers: []string{"Retry-After", "999999"}, busy: 10 * time.Minute},
		{status: 429, headers: []string{"Retry-After", "soon"}}, {status: 429, headers: []string{"Retry-After", "-1"}},
	} {
		url, _ := receiver(t, c.status, c.headers...)
		err := webhookTo(url, secret).Send(t.Context(), note())
		var busy *notify.BusyError
		asked := errors.As(err, &busy)
		if err == nil || errors.Is(err, notify.ErrRefused) != c.refused || asked != (c.busy > 0) || asked && busy.For != c.busy {
			t.Errorf("%d %v: got %v, want refused %v, busy %v", c.status, c.headers, err, c.refused, c.busy)
		}
	}
}

// TestAReceiverThatSaysNothingIsGivenUp: it reads and never answers; and it answers without end.
func TestAReceiverThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(leave) })
	d := deps()
	d.For = 200 * time.Millisecond
	of := func(path string) notify.Sender {
		return post.Senders(notify.Config{Receivers: []notify.Receiver{{Name: "r", Webhook: &notify.Webhook{URL: s.URL + path, Secrets: [][]byte{secret}}}}}, d)["r"]
	}
	begin := time.Now()
	if err := of("/silent").Send(t.Context(), note()); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("got %v, want it given up in time", err)
	}
	if err := of("/endless").Send(t.Context(), note()); err != nil {
		t.Errorf("got %v, want the rest of an endless answer left alone", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v, want less", took)
	}
}

func TestNoErrorHoldsAnAddressOrASecret(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	plain, _ := receiver(t, 500)
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	for name, url := range map[string]string{
		"nobody there": closed.URL + "/services/T0/B0/hush", "no such name": "http://nowhere.invalid/hush", "no TLS": strings.Replace(plain, "http:", "https:", 1) + "/hush",
		"an error": plain + "/hush", "a certificate of nobody's": tls.URL + "/hush", "no address": "http://\x7f/hush",
	} {
		for _, sender := range []notify.Sender{slackTo(url), webhookTo(url, secret)} {
			err := sender.Send(t.Context(), note())
			if err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "invalid/") {
				t.Errorf("%s: got %v, want an error without the address", name, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := slackTo(plain).Send(ended, note()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the process to be told apart", err)
	}
}

// TestNothingInSlackIsMarkupButOurLink: names from outside mention nobody, link nowhere and are not set in any type.
func TestNothingInSlackIsMarkupButOurLink(t *testing.T) {
	t.Parallel()
	url, seen := receiver(t, 200)
	n := note()
	const evil = "<!channel> <https://evil.example|the page> *bold* `code` :warning: & @here"
	n.Subject, n.Title, n.Foot = evil, evil, evil
	n.Lines = []notify.Line{{Label: evil, Text: evil}}
	if err := slackTo(url).Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	var message struct {
		Text      string `json:"text"`
		Mrkdwn    *bool  `json:"mrkdwn"`
		Parse     string `json:"parse"`
		LinkNames *bool  `json:"link_names"`
		Blocks    []struct {
			Type string `json:"type"`
			Text *struct {
				Type, Text string
				Emoji      *bool
			} `json:"text"`
			Elements []struct{ Type, Text string } `json:"elements"`
		} `json:"blocks"`
	}
	g := <-seen
	if err := json.Unmarshal(g.body, &message); err != nil {
		t.Fatal(err)
	}
	const escaped = "&lt;!channel&gt; &lt;https://evil.example|the page&gt; *bold* `code` :warning: &amp; @here"
	if message.Text != escaped || message.Mrkdwn == nil || *message.Mrkdwn || message.Parse != "none" || *message.LinkNames {
		t.Errorf("got %q, markup %v, parse %q, want %q without markup", message.Text, message.Mrkdwn, message.Parse, escaped)
	}
	links := 0
	for _, b := range message.Blocks {
		switch {
		case b.Text == nil:
			if b.Type != "context" || b.Elements[0].Type != "plain_text" || b.Elements[0].Text != escaped {
				t.Errorf("got block %+v, want plain text", b)
			}
		case b.Text.Type == "mrkdwn":
			links++
			if want := "<https://cutonce.example/changes/pv_1/review|Look at it and decide>"; b.Text.Text != want {
				t.Errorf("got %q, want %q", b.Text.Text, want)
			}
		case b.Text.Type != "plain_text" || *b.Text.Emoji || !strings.Contains(b.Text.Text, "&lt;!channel&gt;") || strings.ContainsAny(b.Text.Text, "<>"):
			t.Errorf("got block %+v, want plain text, escaped", b.Text)
		}
	}
	if links != 1 {
		t.Errorf("got %d texts with markup, want our link only", links)
	}
}

func TestSlacksLimitsAreKept(t *testing.T) {
	t.Parallel()
	url, seen := receiver(t, 200)
	n := note()
	n.Title = strings.Repeat("長", 500)
	for range 100 {
		n.Lines = append(n.Lines, notify.Line{Label: "名前", Text: strings.Repeat("字", 300)})
	}
	if err := slackTo(url).Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	var message struct {
		Blocks []struct {
			Type string
			Text struct{ Text string }
		}
	}
	if err := json.Unmarshal((<-seen).body, &message); err != nil {
		t.Fatal(err)
	}
	for _, b := range message.Blocks {
		if most := map[string]int{"header": 150, "section": 3000}[b.Type]; b.Type != "context" && len([]rune(b.Text.Text)) > most {
			t.Errorf("got %d characters in a %s, want at most %d", len([]rune(b.Text.Text)), b.Type, most)
		}
	}
}
