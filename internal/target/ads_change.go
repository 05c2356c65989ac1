package target

import "net/http"

// changeReceipt is the reply to a change that happened.
type changeReceipt struct {
	Campaign
	ChangeID string `json:"change_id"`
}

// budgetChange is a well-formed change request.
type budgetChange struct {
	id, amount, currency, ifMatch string
	who                           Entry
}

func (a *Ads) serveChange(w http.ResponseWriter, r *http.Request) {
	c := call{op: OpChange, resource: r.PathValue("id"), key: r.Header.Get("Idempotency-Key")}
	change, refusal := c.readChange(w, r)
	c.refusal = refusal
	a.serve(w, c, func(bool) answer { return a.applyChange(change) })
}

// readChange reads the request and completes the call's print, or says how it is refused as malformed.
func (c *call) readChange(w http.ResponseWriter, r *http.Request) (budgetChange, *answer) {
	members, refusal := c.readMembers(w, r, "daily_budget", "currency")
	if refusal != nil {
		return budgetChange{}, refusal
	}
	return budgetChange{
		id: c.resource, amount: members["daily_budget"], currency: members["currency"],
		ifMatch: r.Header.Get("If-Match"), who: whoOf(r),
	}, nil
}

// applyChange is the effect. It runs with mu held, and refuses before it changes anything.
func (a *Ads) applyChange(change budgetChange) answer {
	c, ok := a.campaigns[change.id]
	if !ok {
		return campaignNotFound()
	}
	if refusal := c.refuse(change); refusal != nil {
		return *refusal
	}
	next := c.now
	next.DailyBudget = change.amount
	entry := a.move(c, next, change.who)
	done := reply(http.StatusOK, changeReceipt{Campaign: c.now, ChangeID: entry.ChangeID})
	done.header.Set("ETag", c.now.ETag)
	return done
}

func (c *campaign) refuse(change budgetChange) *answer {
	var a answer
	code, message := refuseAmount(change.amount, change.currency)
	switch {
	case c.now.Status == StatusRemoved:
		a = refuse(http.StatusUnprocessableEntity, "campaign_removed", "a removed campaign cannot be changed")
	case change.currency != c.now.Currency:
		a = refuse(http.StatusUnprocessableEntity, "currency_mismatch", "this campaign's currency is "+c.now.Currency)
	case code != "":
		a = refuse(http.StatusUnprocessableEntity, code, message)
	case change.ifMatch != "" && change.ifMatch != "*" && change.ifMatch != c.now.ETag:
		a = refuse(http.StatusPreconditionFailed, "etag_mismatch", "the campaign has changed since it was read")
		a.header.Set("ETag", c.now.ETag)
	default:
		return nil
	}
	return &a
}

func campaignNotFound() answer {
	return refuse(http.StatusNotFound, "campaign_not_found", "there is no campaign with this ID")
}
