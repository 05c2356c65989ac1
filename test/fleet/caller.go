package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// Caller is somebody with a token at the JSON API of one replica.
type Caller struct {
	URL, Token string
	// HTTP is the client; nil means one of its own with a minute's patience.
	HTTP *http.Client
}

// Reply is an answer of the service, whatever its HTTP status.
type Reply struct {
	HTTP int
	answer.Body
}

// As is a caller at a replica; person is an ID of devissuer.DefaultPeople.
func (f *Fleet) As(person string, at *Process) (Caller, error) {
	token, err := f.Issuer.Token(person)
	return Caller{URL: at.URL, Token: token}, err
}

// At is the same caller at another replica.
func (c Caller) At(p *Process) Caller { c.URL = p.URL; return c }

// Budget is the daily budget in yen of every campaign that Campaign makes. The policy lets half as much more pass by itself,
// and asks an approver for anything above.
const Budget = 100_000

// Campaign adds a campaign of its own to the platform, whose name looks like no other's.
func (f *Fleet) Campaign(ctx context.Context) (id string, err error) {
	id = fmt.Sprintf("9%09d", f.made.Add(1))
	name := sha256.Sum256([]byte(id))
	return id, f.Ads.AddCampaign(ctx, target.Campaign{
		ID: id, AccountID: "acc-jp-01", Name: hex.EncodeToString(name[:]), Status: target.StatusEnabled, Owner: target.UserSato,
		Currency: "JPY", DailyBudget: strconv.Itoa(Budget),
	})
}

// Key is what the target knows a preview by.
func (f *Fleet) Key(previewID string) (string, error) {
	id, ok := preview.ParseID(previewID)
	if !ok {
		return "", fmt.Errorf("%q is no preview ID", previewID)
	}
	return commit.IdempotencyKey([]byte(f.Secret), Tenant, id, 0), nil
}

// Effects asks the target how often a preview took effect.
func (f *Fleet) Effects(ctx context.Context, previewID string) (int, error) {
	key, err := f.Key(previewID)
	if err != nil {
		return 0, err
	}
	tally, err := f.Ads.CountersFor(ctx, key)
	return tally.Effects, err
}

// Prepare asks for a daily budget. key is an idempotency key, "" for none.
func (c Caller) Prepare(ctx context.Context, campaign string, yen int, key string) (Reply, error) {
	body := map[string]any{"campaign_id": campaign, "new_daily_budget_jpy": yen, "reason": "a test of the fleet"}
	return c.Do(ctx, http.MethodPost, "/v1/actions/budget_change/previews", body, "Idempotency-Key", key)
}

// Request asks for approval.
func (c Caller) Request(ctx context.Context, id string) (Reply, error) {
	return c.Do(ctx, http.MethodPost, "/v1/previews/"+id+"/approval-request", map[string]any{"justification": "please"})
}

// Decide approves or rejects what has the digest.
func (c Caller) Decide(ctx context.Context, id, decision, digest string) (Reply, error) {
	return c.Do(ctx, http.MethodPost, "/v1/previews/"+id+"/decisions",
		map[string]any{"decision": decision, "digest": digest, "reason": "looked at it"})
}

// Apply applies.
func (c Caller) Apply(ctx context.Context, id string) (Reply, error) {
	return c.Do(ctx, http.MethodPost, "/v1/previews/"+id+"/apply", nil)
}

// Cancel withdraws.
func (c Caller) Cancel(ctx context.Context, id string) (Reply, error) {
	return c.Do(ctx, http.MethodPost, "/v1/previews/"+id+"/cancel", map[string]any{"reason": "not needed any more"})
}

// Status asks how the change stands, in detail, waiting up to wait for news.
func (c Caller) Status(ctx context.Context, id string, wait time.Duration) (Reply, error) {
	q := url.Values{"response_format": {"detailed"}, "wait_s": {strconv.Itoa(int(wait.Seconds()))}}
	return c.Do(ctx, http.MethodGet, "/v1/previews/"+id+"?"+q.Encode(), nil)
}

// Resolve settles an unknown outcome by an operator's word.
func (c Caller) Resolve(ctx context.Context, id, outcome string) (Reply, error) {
	return c.Do(ctx, http.MethodPost, "/v1/previews/"+id+"/resolve",
		map[string]any{"outcome": outcome, "reason": "seen at the platform", "evidence": "the platform's console"})
}

// Do sends one call. headers are pairs; empty values are left out. The error is of the way, never of the answer.
func (c Caller) Do(ctx context.Context, method, path string, body any, headers ...string) (r Reply, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return r, err
	}
	if body == nil {
		raw = nil
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := c.client().Do(request)
	if err != nil {
		return r, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return r, fmt.Errorf("%s %s: %w", method, path, err)
	}
	r.HTTP = response.StatusCode
	return r, r.read(text)
}

func (c Caller) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
}

// read parses the answer. In a problem (RFC 9457) the member "status" is HTTP's, so the change's own tells.
func (r *Reply) read(text []byte) error {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("HTTP %d: %s: %w", r.HTTP, text, err)
	}
	if r.HTTP >= http.StatusBadRequest {
		delete(members, "status")
	}
	rest, err := json.Marshal(members)
	if err := errors.Join(err, json.Unmarshal(rest, &r.Body)); err != nil {
		return fmt.Errorf("HTTP %d: %s: %w", r.HTTP, text, err)
	}
	if r.Status == "" && r.Change != nil {
		r.Status = r.Change.Status
	}
	return nil
}
