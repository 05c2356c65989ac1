package target

import (
	"errors"
	"fmt"
	"net/http"
)

// CampaignEdit is what the console may set at once; empty members stay as they are.
type CampaignEdit struct {
	DailyBudget string `json:"daily_budget,omitempty"`
	Name        string `json:"name,omitempty"`
	Status      string `json:"status,omitempty"`
}

// Edit is someone else's change, made outside the API: a new ETag, a log entry from the console, no effect counted.
// It returns the campaign as it is afterwards.
func (a *Ads) Edit(id string, edit CampaignEdit) (Campaign, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.campaigns[id]
	if !ok {
		return Campaign{}, fmt.Errorf("campaign %q is unknown", id)
	}
	next, err := edit.on(c.now)
	if err != nil {
		return Campaign{}, err
	}
	a.move(c, next, Entry{Agent: "console", Source: SourceConsole})
	return c.now, nil
}

// SetBudget is [Ads.Edit] of the budget alone.
func (a *Ads) SetBudget(id, amount string) error {
	_, err := a.Edit(id, CampaignEdit{DailyBudget: amount})
	return err
}

func (e CampaignEdit) on(c Campaign) (Campaign, error) {
	if e == (CampaignEdit{}) {
		return c, errors.New("the edit sets nothing")
	}
	if e.DailyBudget != "" {
		c.DailyBudget = e.DailyBudget
	}
	if e.Name != "" {
		c.Name = e.Name
	}
	if e.Status != "" {
		c.Status = e.Status
	}
	return c, c.check()
}

// Add puts one more campaign in place; its ETag is given by the platform.
func (a *Ads) Add(c Campaign) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, taken := a.campaigns[c.ID]; taken {
		return fmt.Errorf("campaign %q is there already", c.ID)
	}
	if err := c.check(); err != nil {
		return err
	}
	a.insert(c)
	return nil
}

func (c Campaign) check() error {
	if c.ID == "" || c.AccountID == "" || c.Name == "" || c.Owner == "" {
		return errors.New("a campaign has an id, account_id, name and owner")
	}
	if c.Status != StatusEnabled && c.Status != StatusPaused && c.Status != StatusRemoved {
		return fmt.Errorf("status %q is unknown", c.Status)
	}
	if code, message := refuseAmount(c.DailyBudget, c.Currency); code != "" {
		return errors.New(message)
	}
	return nil
}

func (a *Ads) controlAdd(w http.ResponseWriter, r *http.Request) {
	var c Campaign
	control(w, r, &c, func() (any, error) {
		if err := a.Add(c); err != nil {
			return nil, err
		}
		added, _ := a.Campaign(c.ID)
		return added, nil
	})
}

func (a *Ads) controlEdit(w http.ResponseWriter, r *http.Request) {
	var edit CampaignEdit
	control(w, r, &edit, func() (any, error) { return a.Edit(r.PathValue("id"), edit) })
}
