package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Either side has more of what is listed than a page holds, so that both pages are as long.
const (
	waiting   = 60
	withdrawn = 30
)

// said is what the measured calls need of an answer.
type said struct {
	PreviewID string            `json:"preview_id"`
	Status    string            `json:"status"`
	Items     []json.RawMessage `json:"items"`
}

// call makes one request on a kept connection and reads the whole answer.
func (at *side) call(ctx context.Context, method, path, token, body, key string, want int) (said, time.Duration, error) {
	var answer said
	request, err := http.NewRequestWithContext(ctx, method, at.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, 0, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	took := time.Since(began)
	if err != nil || response.StatusCode != want {
		return answer, took, fmt.Errorf("%s %s on %s: got %d %s %w", method, path, at.name, response.StatusCode, raw, orNone(err))
	}
	return answer, took, json.Unmarshal(raw, &answer)
}

func orNone(err error) error {
	if err == nil {
		return errNotAsWanted
	}
	return err
}

var errNotAsWanted = fmt.Errorf("(another answer was wanted)")

// seed makes the queue, some canceled changes, and one change of a human-approved life from which the stored ones are multiplied.
func (at *side) seed(ctx context.Context, tokens map[string]string) error {
	for n := range waiting + withdrawn + 1 {
		id, err := at.ask(ctx, tokens, 160_000+n)
		if err != nil {
			return err
		}
		if n < waiting {
			continue
		}
		if n < waiting+withdrawn {
			if _, _, err := at.call(ctx, "POST", "/v1/previews/"+id+"/cancel", tokens["agent"], "", "", http.StatusOK); err != nil {
				return err
			}
			continue
		}
		shown, err := at.digest(ctx, tokens["kim"], id)
		if err != nil {
			return err
		}
		decision := `{"decision":"approve","digest":"` + shown + `"}`
		if _, _, err := at.call(ctx, "POST", "/v1/previews/"+id+"/decisions", tokens["kim"], decision, "", http.StatusOK); err != nil {
			return err
		}
		if _, _, err := at.call(ctx, "POST", "/v1/previews/"+id+"/apply", tokens["agent"], "", "", http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

// ask prepares a raise that people must approve, and asks for them.
func (at *side) ask(ctx context.Context, tokens map[string]string, won int) (string, error) {
	prepared, _, err := at.call(ctx, "POST", prepares, tokens["agent"], budgetOf(at.seeded, "krw", won), "", http.StatusCreated)
	if err != nil {
		return "", err
	}
	_, _, err = at.call(ctx, "POST", "/v1/previews/"+prepared.PreviewID+"/approval-request", tokens["agent"], `{"justification":"it sells well"}`, "", http.StatusOK)
	return prepared.PreviewID, err
}

const prepares = "/v1/actions/budget_change/previews"

func budgetOf(campaign, currency string, budget int) string {
	return `{"campaign_id":"` + campaign + `","new_daily_budget_` + currency + `":` + strconv.Itoa(budget) + `,"reason":"the weekend"}`
}

func (at *side) digest(ctx context.Context, token, id string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", at.url+"/v1/previews/"+id+"?response_format=detailed", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var shown struct {
		Change struct {
			Digest string `json:"digest"`
		} `json:"change"`
	}
	return shown.Change.Digest, json.NewDecoder(response.Body).Decode(&shown)
}

// measured are the calls, in the order of a round. The first four are the promise; the others are what else people and agents look at.
var measured = []string{
	"prepare", "status", "apply", "queue page", "an agent's changes", "a person's changes", "unknown outcomes", "a target's changes", "canceled changes",
}

// promised is how many of them count for the worst ratio.
const promised = 4

// round makes every call once and says how long each took. campaign is this side's own: nobody else moves it.
func (at *side) round(ctx context.Context, tokens map[string]string, campaign string, n int) ([]time.Duration, error) {
	key := ""
	if n%2 == 1 {
		key = fmt.Sprintf("round-%d-%d", at.began, n)
	}
	took := make([]time.Duration, len(measured))
	prepared, d, err := at.call(ctx, "POST", prepares, tokens["agent"], budgetOf(campaign, "jpy", 10_001+(7*at.began+n)%4000), key, http.StatusCreated)
	if err != nil {
		return nil, err
	}
	took[0] = d
	change := "/v1/previews/" + prepared.PreviewID
	for i, c := range []struct {
		method, path, who string
		items             int
		status            string
	}{
		{"GET", change, "agent", 0, "approved"}, {"POST", change + "/apply", "agent", 0, "applied"}, {"GET", "/v1/approvals?limit=50", "kim", 50, ""},
		{"GET", "/v1/previews?limit=20", "agent", 20, ""}, {"GET", "/v1/previews?limit=20", "sato", 20, ""}, {"GET", "/v1/outcomes", "oper", 0, ""},
		{"GET", "/v1/previews?limit=20&target_id=" + at.seeded, "kim", 20, ""}, {"GET", "/v1/previews?limit=20&status=canceled", "kim", 20, ""},
	} {
		answer, d, err := at.call(ctx, c.method, c.path, tokens[c.who], "", "", http.StatusOK)
		if err != nil {
			return nil, err
		}
		if len(answer.Items) != c.items || answer.Status != c.status {
			return nil, fmt.Errorf("%s on %s: got %d items and status %q, want %d and %q", c.path, at.name, len(answer.Items), answer.Status, c.items, c.status)
		}
		took[i+1] = d
	}
	return took, nil
}
