package adbudget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
)

// The platform's statuses.
const (
	statusRemoved = "removed"
	statusPaused  = "paused"
)

// platform speaks the ad platform's API. Its errors are faults where the caller can do something about it.
type platform struct{ *httptarget.Client }

// campaign is one campaign as the platform showed it. Budget is set only where one campaign was read: a strange amount in
// a list must not hide all the others.
type campaign struct {
	ID, Name, Status, Owner, ETag string
	amount, currency              string
	Budget                        money.Amount
}

func (c campaign) live() bool { return c.Status != statusRemoved }

// campaign reads one campaign. An ID that the platform does not know is not_found.
func (p *platform) campaign(ctx context.Context, id string) (campaign, error) {
	d, refused, err := p.Get(ctx, "/v1/campaigns/"+url.PathEscape(id), nil)
	if err != nil {
		return campaign{}, err
	}
	if refused != nil {
		if refused.Says(http.StatusNotFound, "campaign_not_found") {
			return campaign{}, fault.New(fault.NotFound, nil).WithKey("adbudget.campaign_not_found").
				WithField("/campaign_id", "adbudget.field.unknown_campaign", fault.Args{"id": id})
		}
		return campaign{}, refused.Unavailable()
	}
	c, err := readCampaign(d)
	if err == nil && strings.TrimLeft(c.ID, "0") != strings.TrimLeft(id, "0") {
		err = fmt.Errorf("the platform answered about another campaign")
	}
	if err == nil {
		c.Budget, err = parseBudget(c.currency, c.amount)
	}
	if err != nil {
		return campaign{}, httptarget.Unavailable(err, 0)
	}
	return c, nil
}

func readCampaign(d httptarget.Document) (campaign, error) {
	var c campaign
	// One by one, because an account has thousands.
	for _, member := range [...]struct {
		name string
		into *string
	}{
		{"id", &c.ID}, {"name", &c.Name}, {"status", &c.Status}, {"etag", &c.ETag}, {"daily_budget", &c.amount}, {"currency", &c.currency},
	} {
		if err := d.Text(member.name, member.into); err != nil {
			return c, err
		}
	}
	c.Owner, _ = d["owner"].(string)
	return c, nil
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
	d, refused, err := p.Get(ctx, "/v1/campaigns", query)
	switch {
	case err != nil:
		return campaignPage{}, err
	case refused != nil && s.cursor != "" && refused.Says(http.StatusBadRequest, "invalid_parameter"):
		return campaignPage{}, fault.New(fault.InvalidInput, nil).WithField("/cursor", "adbudget.field.cursor", nil)
	case refused != nil:
		return campaignPage{}, refused.Unavailable()
	}
	page, err := readPage(d)
	if err != nil {
		return campaignPage{}, httptarget.Unavailable(err, 0)
	}
	return page, nil
}

func readPage(d httptarget.Document) (campaignPage, error) {
	items, err := d.List("campaigns")
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
			return nil, false, httptarget.Unavailable(fmt.Errorf("the platform's list does not advance"), 0)
		}
		s.cursor = page.next
	}
}

// permission asks whether a person may do something to a campaign.
func (p *platform) permission(ctx context.Context, user, campaignID, verb string) (connector.Permission, error) {
	query := url.Values{"user": {user}, "campaign": {campaignID}, "verb": {verb}}
	d, refused, err := p.Get(ctx, "/v1/permissions", query)
	if err != nil {
		return connector.Permission{}, err
	}
	if refused != nil {
		return connector.Permission{}, refused.Unavailable()
	}
	allowed, ok := d["allowed"].(bool)
	if !ok {
		return connector.Permission{}, httptarget.Unavailable(fmt.Errorf("the platform's permission answer says neither yes nor no"), 0)
	}
	reason, _ := d["reason"].(string)
	return connector.Permission{Allowed: allowed, Reason: reason}, nil
}
