package post

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cutonce/cutonce/notify"
)

// webhook signs messages as Standard Webhooks lay down (github.com/standard-webhooks/standard-webhooks, spec): an ID that stays the same
// over all tries, the time of the try, and a signature over both and the body.
type webhook struct {
	to     notify.Webhook
	client *http.Client
	deps   Deps
}

// Send posts the message's payload.
func (w webhook) Send(ctx context.Context, n notify.Note) error {
	ctx, cancel := context.WithTimeout(ctx, w.deps.For)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to.URL, bytes.NewReader(n.Payload))
	if err != nil {
		return unreached(err)
	}
	at := w.deps.Now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "cutonce/"+w.deps.Version)
	r.Header.Set("webhook-id", n.ID)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("webhook-signature", signatures(w.to.Secrets, n.ID, at, n.Payload))
	return do(w.client, r)
}

// signatures are one for each secret: a receiver that has either of two can check the message while they are exchanged.
func signatures(secrets [][]byte, id string, at time.Time, body []byte) string {
	all := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
