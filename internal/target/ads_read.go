package target

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// campaignPage is the document of a search.
type campaignPage struct {
	Campaigns  []Campaign `json:"campaigns"`
	Total      int        `json:"total"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// search is a well-formed search request.
type search struct {
	query, status, after string
	limit                int
}

// Change is one change as the ad platform shows it in look-ups and in its log.
type Change struct {
	ChangeID   string    `json:"change_id"`
	Time       time.Time `json:"time"`
	CampaignID string    `json:"campaign_id"`
	Before     string    `json:"before"`
	After      string    `json:"after"`
	Currency   string    `json:"currency"`
	ETag       string    `json:"etag"`
	Key        string    `json:"key,omitempty"`
	OnBehalfOf string    `json:"on_behalf_of,omitempty"`
	ApprovedBy string    `json:"approved_by,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Source     Source    `json:"source"`
}

func (a *Ads) serveRead(w http.ResponseWriter, r *http.Request) {
	c := call{op: OpRead, resource: r.PathValue("id"), refusal: onlyParameters(r)}
	a.serve(w, c, func(stale bool) answer {
		found, ok := a.campaigns[c.resource]
		if !ok {
			return campaignNotFound()
		}
		shown := found.view(stale)
		done := reply(http.StatusOK, shown)
		done.header.Set("ETag", shown.ETag)
		return done
	})
}

func (c *campaign) view(stale bool) Campaign {
	if stale {
		return c.before
	}
	return c.now
}

func (a *Ads) serveFind(w http.ResponseWriter, r *http.Request) {
	s, refusal := readSearch(r)
	a.serve(w, call{op: OpFind, refusal: refusal}, func(stale bool) answer {
		return reply(http.StatusOK, a.page(s, stale))
	})
}

// page runs with mu held.
func (a *Ads) page(s search, stale bool) campaignPage {
	page := campaignPage{Campaigns: []Campaign{}}
	for _, id := range a.order {
		c := a.campaigns[id].view(stale)
		if !s.matches(c) {
			continue
		}
		page.Total++
		if id <= s.after {
			continue
		}
		if len(page.Campaigns) == s.limit {
			page.NextCursor = cursorOf(s.filter(), page.Campaigns[s.limit-1].ID)
			continue
		}
		page.Campaigns = append(page.Campaigns, c)
	}
	return page
}

func (s search) matches(c Campaign) bool {
	return (s.status == "" || s.status == c.Status) && strings.Contains(fold(c.Name), fold(s.query))
}

// fold makes names comparable: full-width and half-width, composed and decomposed (a Mac types Hangul decomposed),
// upper and lower case are the same to a person who searches.
func fold(s string) string { return strings.ToLower(norm.NFKC.String(s)) }

func readSearch(r *http.Request) (search, *answer) {
	refusal := onlyParameters(r, "query", "status", "cursor", "limit")
	if refusal != nil {
		return search{}, refusal
	}
	q := r.URL.Query()
	s := search{query: q.Get("query"), status: q.Get("status")}
	switch s.status {
	case "", StatusEnabled, StatusPaused, StatusRemoved:
	default:
		return s, badParameter("status is enabled, paused or removed")
	}
	if s.limit, refusal = readLimit(q); refusal != nil {
		return s, refusal
	}
	if text := q.Get("cursor"); text != "" {
		after, ok := openCursor(s.filter(), text)
		if !ok {
			return s, badParameter("cursor is not one that this query and status gave")
		}
		s.after = after
	}
	return s, nil
}

// filter is what a cursor is sealed to.
func (s search) filter() url.Values { return url.Values{"q": {s.query}, "s": {s.status}} }

func (a *Ads) serveLookup(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c := call{op: OpLookup, key: q.Get("key"), resource: q.Get("campaign")}
	c.refusal = onlyParameters(r, "key", "campaign")
	if c.key == "" {
		c.refusal = badParameter("key is required")
	}
	only := c.resource
	c.resource = a.resourceFor(c)
	a.serve(w, c, func(stale bool) answer {
		found := documents(a.changesOf(c.key), only, "")
		if stale && len(found) > 0 {
			found = found[:len(found)-1]
		}
		return reply(http.StatusOK, map[string][]Change{"changes": found})
	})
}

func (a *Ads) serveLog(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c := call{op: OpLog, key: q.Get("key"), resource: q.Get("campaign"), refusal: onlyParameters(r, "key", "campaign")}
	a.serve(w, c, func(bool) answer {
		return reply(http.StatusOK, map[string][]Change{"entries": documents(a.history, c.resource, c.key)})
	})
}

func documents(entries []Entry, campaign, key string) []Change {
	shown := []Change{}
	for _, e := range entries {
		if (campaign == "" || campaign == e.Resource) && (key == "" || key == e.Key) {
			shown = append(shown, Change{
				ChangeID: e.ChangeID, Time: e.At, CampaignID: e.Resource, Before: e.Before, After: e.After,
				Currency: e.Unit, ETag: e.ETag, Key: e.Key, OnBehalfOf: e.OnBehalfOf, ApprovedBy: e.ApprovedBy,
				Agent: e.Agent, Source: e.Source,
			})
		}
	}
	return shown
}

func (a *Ads) servePermission(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	user, verb := q.Get("user"), q.Get("verb")
	c := call{op: OpPermission, resource: q.Get("campaign"), refusal: onlyParameters(r, "user", "campaign", "verb")}
	if user == "" || c.resource == "" || (verb != "read" && verb != "write") {
		c.refusal = badParameter("user, campaign and verb (read or write) are required")
	}
	a.serve(w, c, func(bool) answer {
		if _, ok := a.campaigns[c.resource]; !ok {
			return reply(http.StatusOK, permissionAnswer{Reason: "unknown_campaign"})
		}
		return reply(http.StatusOK, a.permits(user, verb, c.resource))
	})
}
