package target

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Control drives a simulator from another process, through its control API. It is for demos and tests; a service
// has no use for it.
type Control struct {
	BaseURL string       // "http://127.0.0.1:8790"
	Token   string       // the simulator's bearer credential
	Client  *http.Client // http.DefaultClient if nil
}

// AddFault appends rules to the queue, all or none.
func (c Control) AddFault(ctx context.Context, faults ...Fault) error {
	return c.do(ctx, http.MethodPost, "/_sim/faults", faults, nil)
}

// Faults are the rules that still wait for a request.
func (c Control) Faults(ctx context.Context) (faults []Fault, err error) {
	return faults, c.do(ctx, http.MethodGet, "/_sim/faults", nil, &faults)
}

// ClearFaults forgets the queue.
func (c Control) ClearFaults(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/_sim/faults", nil, nil)
}

// Counters are all counts.
func (c Control) Counters(ctx context.Context) (counters Counters, err error) {
	return counters, c.do(ctx, http.MethodGet, "/_sim/counters", nil, &counters)
}

// CountersFor is the tally of one request key, which must not be empty.
func (c Control) CountersFor(ctx context.Context, key string) (tally Tally, err error) {
	return tally, c.do(ctx, http.MethodGet, "/_sim/counters?"+url.Values{"key": {key}}.Encode(), nil, &tally)
}

// Release opens a gate; "" opens all.
func (c Control) Release(ctx context.Context, gate string) error {
	return c.do(ctx, http.MethodPost, "/_sim/release", gateName{Gate: gate}, nil)
}

// Wait returns when n matching requests have reached the stage, or with an error when ctx ends or the simulator's
// own limit (a minute) passes first.
func (c Control) Wait(ctx context.Context, e Event, n int) error {
	q := url.Values{
		"stage": {string(e.Stage)}, "op": {string(e.Op)}, "resource": {e.Resource}, "key": {e.Key},
		"n": {strconv.Itoa(n)}, "timeout_ms": {strconv.FormatInt(longestWait.Milliseconds(), 10)},
	}
	return c.do(ctx, http.MethodGet, "/_sim/wait?"+q.Encode(), nil, nil)
}

// SetPermission takes effect for the next question.
func (c Control) SetPermission(ctx context.Context, change Permission) error {
	return c.do(ctx, http.MethodPost, "/_sim/permissions", change, nil)
}

// SetHonourKeys turns idempotency keys on or off.
func (c Control) SetHonourKeys(ctx context.Context, on bool) error {
	return c.do(ctx, http.MethodPost, "/_sim/settings", settings{HonourKeys: on}, nil)
}

// Reset goes back to the seed.
func (c Control) Reset(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/_sim/reset", nil, nil)
}

// AddCampaign puts one more campaign in place.
func (c Control) AddCampaign(ctx context.Context, added Campaign) error {
	return c.do(ctx, http.MethodPost, "/_sim/campaigns", added, nil)
}

// EditCampaign is someone else's change; it returns the campaign afterwards.
func (c Control) EditCampaign(ctx context.Context, id string, edit CampaignEdit) (after Campaign, err error) {
	return after, c.do(ctx, http.MethodPost, "/_sim/campaigns/"+url.PathEscape(id), edit, &after)
}

// Campaign reads one campaign through the platform's own API; scripted faults apply.
func (c Control) Campaign(ctx context.Context, id string) (found Campaign, err error) {
	return found, c.do(ctx, http.MethodGet, "/v1/campaigns/"+url.PathEscape(id), nil, &found)
}

// Changes is the platform's own log for a request key ("" for all), oldest first; scripted faults apply.
func (c Control) Changes(ctx context.Context, key string) ([]Change, error) {
	var log struct {
		Entries []Change `json:"entries"`
	}
	return log.Entries, c.do(ctx, http.MethodGet, "/v1/log?"+url.Values{"key": {key}}.Encode(), nil, &log)
}

// do sends one control request; in and out may be nil.
func (c Control) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		rendered, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("render %s: %w", path, err)
		}
		body = bytes.NewReader(rendered)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.BaseURL, "/")+path, body)
	if err != nil {
		return fmt.Errorf("request %s: %w", path, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	client := c.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return readReply(resp, method+" "+path, out)
}

func readReply(resp *http.Response, what string, out any) error {
	if resp.StatusCode != http.StatusOK {
		var d errorDocument
		_ = json.NewDecoder(resp.Body).Decode(&d) // a body that says nothing leaves the status to speak
		return fmt.Errorf("%s: %d %s: %s", what, resp.StatusCode, d.Error.Code, d.Error.Message)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("%s: read: %w", what, err)
	}
	return nil
}
