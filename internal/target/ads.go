package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
)

// AdsConfig is what an ad platform is made from.
type AdsConfig struct {
	PlatformConfig
	// Seed decides the generated campaigns, the owners and the ETags. The fixed campaigns (see [CampaignAutumnSearch]
	// and its neighbours) have the same ID, name, status and budget under every seed.
	Seed int64
}

// Campaign is one campaign as the API shows it.
type Campaign struct {
	ID          string `json:"id"`
	AccountID   string `json:"account_id"`
	Name        string `json:"name"`
	Status      string `json:"status"` // enabled, paused or removed
	Owner       string `json:"owner"`
	Currency    string `json:"currency"`
	DailyBudget string `json:"daily_budget"` // integer KRW or JPY, two-decimal USD
	ETag        string `json:"etag"`
}

// The statuses of a campaign.
const (
	StatusEnabled = "enabled"
	StatusPaused  = "paused"
	StatusRemoved = "removed"
)

// Ads is the simulated ad platform. The package's page documents its API.
type Ads struct {
	*Platform
	seed    int64
	handler http.Handler

	// campaigns and order are guarded by Platform.mu.
	campaigns map[string]*campaign
	order     []string // IDs, ascending: the order of every list
}

// campaign is what is kept of one: as it is, and as it was before its last change.
type campaign struct {
	now, before Campaign
	version     int
}

// NewAds makes a platform with its seeded data.
func NewAds(cfg AdsConfig) *Ads {
	a := &Ads{Platform: newPlatform(cfg.PlatformConfig), seed: cfg.Seed}
	a.reseed = a.plant
	a.plant()
	a.handler = a.routes()
	return a
}

func (a *Ads) routes() http.Handler {
	guarded := http.NewServeMux()
	guarded.HandleFunc("GET /v1/campaigns", a.serveFind)
	guarded.HandleFunc("GET /v1/campaigns/{id}", a.serveRead)
	guarded.HandleFunc("PATCH /v1/campaigns/{id}", a.serveChange)
	guarded.HandleFunc("GET /v1/changes", a.serveLookup)
	guarded.HandleFunc("GET /v1/permissions", a.servePermission)
	guarded.HandleFunc("GET /v1/log", a.serveLog)
	guarded.HandleFunc("POST /_sim/campaigns", a.controlAdd)
	guarded.HandleFunc("POST /_sim/campaigns/{id}", a.controlEdit)
	return a.front(guarded)
}

// ServeHTTP serves the API and, under /_sim/, the control API.
func (a *Ads) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// plant puts the seeded campaigns and permissions in place. The caller holds mu, or is alone.
func (a *Ads) plant() {
	a.campaigns, a.order = map[string]*campaign{}, nil
	for _, c := range seededCampaigns(a.seed) {
		a.insert(c)
	}
	for _, p := range seededPermissions() {
		a.setPermission(p)
	}
}

func (a *Ads) insert(c Campaign) {
	c.ETag = a.etag(c.ID, 1)
	a.campaigns[c.ID] = &campaign{now: c, before: c, version: 1}
	i, _ := slices.BinarySearch(a.order, c.ID)
	a.order = slices.Insert(a.order, i, c.ID)
}

// etag is opaque to callers and the same in every run of the seed.
func (a *Ads) etag(id string, version int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", a.seed, id, version))
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// move changes a campaign and logs it. e names who did it. The caller holds mu and has checked everything.
func (a *Ads) move(c *campaign, next Campaign, e Entry) Entry {
	c.version++
	next.ETag = a.etag(next.ID, c.version)
	c.before, c.now = c.now, next
	e.Resource, e.Unit, e.ETag = next.ID, next.Currency, next.ETag
	e.Before, e.After = c.before.DailyBudget, next.DailyBudget
	return a.note(e)
}

// Campaign is one campaign as it is now.
func (a *Ads) Campaign(id string) (Campaign, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.campaigns[id]; ok {
		return c.now, true
	}
	return Campaign{}, false
}

// Campaigns are all campaigns as they are now, by ascending ID.
func (a *Ads) Campaigns() []Campaign {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Campaign, 0, len(a.order))
	for _, id := range a.order {
		all = append(all, a.campaigns[id].now)
	}
	return all
}
