package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cutonce/cutonce/internal/child"
)

// The target is a lean ad platform: a real HTTP server (lean.go) in a process of its own, with versions, preconditions, keys and a count
// of its effects, as `cutonce target ads` has. It leaves out that simulator's faults, gates and search, whose cost would be
// counted as the service's. Its account holds as many campaigns as there are clients at most, and each client changes its own.

// campaignNames are unlike each other, so that no preview asks for a name.
var campaignNames = []string{
	"Hokkaido melon presale", "Kyoto maple coach tours", "Okinawa reef diving", "Hakata pollock roe gifts",
	"Shinshu soba workshop", "Edo cut glass fair", "Aomori apple juice club", "Awa dance grandstand",
	"Mount Fuji glamping", "Setouchi lemon skincare", "Hida furniture showroom", "Nagasaki castella for firms",
	"Aizu lacquer lessons", "Arima hot spring for two", "Sanuki udon freezer pack", "Sendai star festival yukata",
	"Jeju tangerines direct", "Han river night cruise", "Jeonju bibimbap kit", "Gangneung roastery subscription",
	"Busan film festival goods", "Andong mask carving", "Seorak leaf express", "Boseong green tea line",
	"Gyeongju history camp", "Icheon wedding ceramics", "Pyeongchang season pass", "Namhae anchovy parcels",
	"Incheon lounge membership", "Daegu alley audio guide", "Ulleung squid box", "Yeosu yacht evening",
}

const (
	firstBudget = 10000
	humanUser   = "sato@agency.example"
)

func campaignID(client int) string { return strconv.Itoa(2002001 + client) }

// campaign is one campaign's state.
type campaign struct {
	id, name string
	budget   string
	version  int
	keys     map[string]int
	// written is the campaign as the list shows it, until it changes.
	written []byte
}

func (c *campaign) etag() string { return fmt.Sprintf(`"%s-%d"`, c.id, c.version) }

// shown is a campaign as the API shows it.
type shown struct {
	ID          string `json:"id"`
	AccountID   string `json:"account_id"`
	Name        string `json:"name"`
	Status      string `json:"status"`
	Owner       string `json:"owner"`
	Currency    string `json:"currency"`
	DailyBudget string `json:"daily_budget"`
	ETag        string `json:"etag"`
	ChangeID    string `json:"change_id,omitempty"`
}

func (c *campaign) shown() shown {
	return shown{
		ID: c.id, AccountID: "agency-jp", Name: c.name, Status: "enabled", Owner: humanUser, Currency: "JPY",
		DailyBudget: c.budget, ETag: c.etag(),
	}
}

type permitted struct {
	Allowed bool `json:"allowed"`
}

// platform is the target's whole state.
type platform struct {
	token     string
	mu        sync.Mutex
	campaigns []*campaign
	tally     tally
	took      []time.Duration
}

// tally is what the target has counted. Twice are changes whose key had come before.
type tally struct {
	Effects int `json:"effects"`
	Twice   int `json:"twice"`
	Refused int `json:"refused"`
	// OwnP50 is the median of the target's own time for a change.
	OwnP50 time.Duration `json:"own_p50"`
}

// serveTarget serves until standard input closes.
func serveTarget(address, token string) error {
	p := &platform{token: "Bearer " + token}
	for n, name := range campaignNames {
		p.campaigns = append(p.campaigns, &campaign{id: campaignID(n), name: name, budget: strconv.Itoa(firstBudget), keys: map[string]int{}})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/campaigns/{id}", p.read)
	mux.HandleFunc("GET /v1/campaigns", p.list)
	mux.HandleFunc("GET /v1/permissions", p.permission)
	mux.HandleFunc("PATCH /v1/campaigns/{id}", p.change)
	mux.HandleFunc("GET /tally", p.count)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() { child.WaitFor(os.Stdin); _ = listener.Close() }()
	return lean{mux}.serve(listener)
}

func (p *platform) admits(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == p.token {
		return true
	}
	respond(w, http.StatusUnauthorized, refusal("unauthenticated"))
	return false
}

func (p *platform) find(id string) *campaign {
	i := slices.IndexFunc(p.campaigns, func(c *campaign) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return p.campaigns[i]
}

func (p *platform) read(w http.ResponseWriter, r *http.Request) {
	if !p.admits(w, r) {
		return
	}
	p.mu.Lock()
	c := p.find(r.PathValue("id"))
	if c == nil {
		p.mu.Unlock()
		respond(w, http.StatusNotFound, refusal("campaign_not_found"))
		return
	}
	s := c.shown()
	p.mu.Unlock()
	w.Header().Set("ETag", s.ETag)
	respond(w, http.StatusOK, s)
}

func (p *platform) list(w http.ResponseWriter, r *http.Request) {
	if !p.admits(w, r) {
		return
	}
	body := []byte(`{"campaigns":[`)
	p.mu.Lock()
	for i, c := range p.campaigns {
		if c.written == nil {
			c.written, _ = json.Marshal(c.shown()) // texts alone
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, c.written...)
	}
	p.mu.Unlock()
	body = append(body, `],"total":`...)
	body = append(strconv.AppendInt(body, int64(len(p.campaigns)), 10), '}')
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the caller may have hung up
}

func (p *platform) permission(w http.ResponseWriter, r *http.Request) {
	if !p.admits(w, r) {
		return
	}
	allowed := r.URL.Query().Get("user") == humanUser
	respond(w, http.StatusOK, permitted{allowed})
}

// change is the only call with an effect.
func (p *platform) change(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if !p.admits(w, r) {
		return
	}
	var asked struct {
		DailyBudget string `json:"daily_budget"`
		Currency    string `json:"currency"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		respond(w, http.StatusBadRequest, refusal("invalid_body"))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, key := p.find(r.PathValue("id")), r.Header.Get("Idempotency-Key")
	switch {
	case c == nil:
		p.tally.Refused++
		respond(w, http.StatusNotFound, refusal("campaign_not_found"))
		return
	case r.Header.Get("If-Match") != c.etag():
		p.tally.Refused++
		respond(w, http.StatusPreconditionFailed, refusal("etag_mismatch"))
		return
	}
	if c.keys[key]++; key == "" || c.keys[key] > 1 {
		p.tally.Twice++
	}
	c.budget, c.version, c.written = asked.DailyBudget, c.version+1, nil
	p.tally.Effects++
	s := c.shown()
	s.ChangeID = "ch_" + strconv.Itoa(p.tally.Effects)
	p.took = append(p.took, time.Since(began))
	respond(w, http.StatusOK, s)
}

// count answers with the tally and begins a new measurement of the target's own time.
func (p *platform) count(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.OwnP50 = percentile(p.took, 50)
	p.took = nil
	respond(w, http.StatusOK, p.tally)
}

func refusal(code string) any {
	return map[string]any{"error": map[string]string{"code": code, "message": strings.ReplaceAll(code, "_", " ")}}
}

func respond(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the caller may have hung up
}

// targetAt is the target as the benchmark sees it.
type targetAt struct {
	url, token string
	client     *http.Client
}

func (t targetAt) tally(ctx context.Context) (c tally, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+"/tally", nil)
	if err != nil {
		return c, err
	}
	response, err := t.client.Do(request)
	if err != nil {
		return c, fmt.Errorf("asking the target what it counted: %w", err)
	}
	defer response.Body.Close()
	return c, json.NewDecoder(response.Body).Decode(&c)
}
