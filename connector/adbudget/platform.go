package adbudget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
)

// maxReply bounds every answer of the platform.
const maxReply = 1 << 20

// The platform's statuses.
const (
	statusRemoved = "removed"
	statusPaused  = "paused"
)

// platform speaks the ad platform's API. Its errors are faults where the caller can do something about it.
type platform struct {
	base   string
	token  string
	sender *connector.Sender
	reader *connector.Reader
}

func newPlatform(cfg Config) (*platform, error) {
	cfg.HTTP.MaxBytes = maxReply
	sender, err := connector.NewSender(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	cfg.HTTP.Timeout = cfg.ReadTimeout
	reader, err := connector.NewReader(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	return &platform{base: strings.TrimRight(cfg.BaseURL, "/"), token: cfg.Token, sender: sender, reader: reader}, nil
}

// campaign is one campaign as the platform showed it. Budget is set only where one campaign was read: a strange amount in
// a list must not hide all the others.
type campaign struct {
	ID, Name, Status, Owner, ETag string
	amount, currency              string
	Budget                        money.Amount
}

func (c campaign) live() bool { return c.Status != statusRemoved }

func (p *platform) headers() http.Header {
	return http.Header{"Authorization": {"Bearer " + p.token}, "Accept": {"application/json"}}
}

// get reads one document. An answer other than 200 is a refusal for the caller to judge; no answer is a fault.
func (p *platform) get(ctx context.Context, path string, query url.Values) (document, *refusal, error) {
	address := p.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	reply, err := p.reader.Get(ctx, address, p.headers())
	if err != nil {
		return nil, nil, unavailable(err, 0)
	}
	if reply.Status != http.StatusOK {
		r := readRefusal(reply)
		return nil, &r, nil
	}
	d, err := parseDocument(reply.Body)
	if err != nil {
		return nil, nil, unavailable(err, 0)
	}
	return d, nil, nil
}

// unavailable is the fault of a read that gave no usable answer. Reads have no effect, so it may be repeated.
func unavailable(cause error, after time.Duration) error {
	return fault.New(fault.TargetUnavailable, nil).Because(cause).After(after)
}

// campaign reads one campaign. An ID that the platform does not know is not_found.
func (p *platform) campaign(ctx context.Context, id string) (campaign, error) {
	d, refused, err := p.get(ctx, "/v1/campaigns/"+url.PathEscape(id), nil)
	if err != nil {
		return campaign{}, err
	}
	if refused != nil {
		if refused.is(http.StatusNotFound, "campaign_not_found") {
			return campaign{}, fault.New(fault.NotFound, nil).WithKey("adbudget.campaign_not_found").
				WithField("/campaign_id", "adbudget.field.unknown_campaign", fault.Args{"id": id})
		}
		return campaign{}, refused.unavailable()
	}
	c, err := readCampaign(d)
	if err == nil && strings.TrimLeft(c.ID, "0") != strings.TrimLeft(id, "0") {
		err = fmt.Errorf("the platform answered about another campaign")
	}
	if err == nil {
		c.Budget, err = parseBudget(c.currency, c.amount)
	}
	if err != nil {
		return campaign{}, unavailable(err, 0)
	}
	return c, nil
}

func readCampaign(d document) (campaign, error) {
	var c campaign
	err := d.texts(map[string]*string{
		"id": &c.ID, "name": &c.Name, "status": &c.Status, "etag": &c.ETag,
		"daily_budget": &c.amount, "currency": &c.currency,
	})
	c.Owner, _ = d["owner"].(string)
	return c, err
}

// search is what campaigns are listed by.
type search struct {
	query, status, cursor string
	limit                 int
}

type campaignPage struct {
	campaigns []campaign
	next      string
	total     int
}

// list reads one page. A cursor that the platform does not take is the caller's mistake.
func (p *platform) list(ctx context.Context, s search) (campaignPage, error) {
	query := url.Values{"limit": {strconv.Itoa(s.limit)}}
	for name, value := range map[string]string{"query": s.query, "status": s.status, "cursor": s.cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	d, refused, err := p.get(ctx, "/v1/campaigns", query)
	switch {
	case err != nil:
		return campaignPage{}, err
	case refused != nil && s.cursor != "" && refused.is(http.StatusBadRequest, "invalid_parameter"):
		return campaignPage{}, fault.New(fault.InvalidInput, nil).WithField("/cursor", "adbudget.field.cursor", nil)
	case refused != nil:
		return campaignPage{}, refused.unavailable()
	}
	page, err := readPage(d)
	if err != nil {
		return campaignPage{}, unavailable(err, 0)
	}
	return page, nil
}

func readPage(d document) (campaignPage, error) {
	items, err := d.list("campaigns")
	if err != nil {
		return campaignPage{}, err
	}
	page := campaignPage{total: -1}
	for _, item := range items {
		c, err := readCampaign(item)
		if err != nil {
			return campaignPage{}, err
		}
		page.campaigns = append(page.campaigns, c)
	}
	if n, ok := d["total"].(json.Number); ok {
		if page.total, err = strconv.Atoi(string(n)); err != nil {
			return campaignPage{}, fmt.Errorf("reading the total: %w", err)
		}
	}
	page.next, _ = d["next_cursor"].(string)
	return page, nil
}

// all reads campaigns up to a number; whole says that there are no more.
func (p *platform) all(ctx context.Context, upTo int) (found []campaign, whole bool, err error) {
	const perPage = 100
	s := search{limit: perPage}
	for {
		page, err := p.list(ctx, s)
		if err != nil {
			return nil, false, err
		}
		found = append(found, page.campaigns...)
		switch {
		case page.next == "":
			return found, true, nil
		case len(found) >= upTo:
			return found, false, nil
		case page.next == s.cursor || len(page.campaigns) == 0:
			return nil, false, unavailable(fmt.Errorf("the platform's list does not advance"), 0)
		}
		s.cursor = page.next
	}
}

// permission asks whether a person may do something to a campaign.
func (p *platform) permission(ctx context.Context, user, campaignID, verb string) (connector.Permission, error) {
	query := url.Values{"user": {user}, "campaign": {campaignID}, "verb": {verb}}
	d, refused, err := p.get(ctx, "/v1/permissions", query)
	if err != nil {
		return connector.Permission{}, err
	}
	if refused != nil {
		return connector.Permission{}, refused.unavailable()
	}
	allowed, ok := d["allowed"].(bool)
	if !ok {
		return connector.Permission{}, unavailable(fmt.Errorf("the platform's permission answer says neither yes nor no"), 0)
	}
	reason, _ := d["reason"].(string)
	return connector.Permission{Allowed: allowed, Reason: reason}, nil
}

// effect is one change in the platform's history.
type effect struct {
	id, at, campaignID, after, currency, etag, key string
	before, onBehalfOf                             string
	// times is how many changes carry the key; more than one is a fault of the platform that is never hidden.
	times int
}

// effects reads what a request key changed. The answer proves something only if every entry carries that key.
func (p *platform) effects(ctx context.Context, key string) ([]effect, error) {
	d, refused, err := p.get(ctx, "/v1/changes", url.Values{"key": {key}})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused.unavailable()
	}
	items, err := d.list("changes")
	if err != nil {
		return nil, err
	}
	found := make([]effect, 0, len(items))
	for _, item := range items {
		e, err := readEffect(item)
		if err != nil {
			return nil, err
		}
		if e.key != key {
			return nil, fmt.Errorf("the platform's history answered about another key")
		}
		found = append(found, e)
	}
	return found, nil
}

func readEffect(d document) (effect, error) {
	var e effect
	err := d.texts(map[string]*string{
		"change_id": &e.id, "time": &e.at, "campaign_id": &e.campaignID, "before": &e.before, "after": &e.after,
		"currency": &e.currency, "etag": &e.etag, "key": &e.key,
	})
	e.onBehalfOf, _ = d["on_behalf_of"].(string)
	return e, err
}
