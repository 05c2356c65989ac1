package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

// freezes lists what is frozen for the caller's tenant.
func (c *call) freezes() error {
	all, _, err := c.Freezes.Standing(c.ctx(), c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Freezes(all))
}

// freeze forbids applying what it names, and tells what is in flight all the same.
func (c *call) freeze() error {
	body, err := c.body(bodyFreeze)
	if err != nil {
		return err
	}
	order := commit.FreezeOrder{Kind: commit.FreezeKind(body.Text("kind")), Name: body.Text("name"), By: c.who, Reason: body.Text("reason")}
	if number, given := body["for_s"].(json.Number); given {
		seconds, err := number.Int64()
		if err != nil {
			return fault.New(fault.InvalidNumber, nil).Because(err)
		}
		order.For = time.Duration(seconds) * time.Second
	}
	frozen, err := c.Freezes.Freeze(c.ctx(), order)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Frozen(frozen))
}

// thaw ends a freeze.
func (c *call) thaw() error {
	if _, given := c.query[paramKind]; !given {
		return badParam(paramKind, "field.one_of", fault.Args{"values": "everything, tenant, connector, action"})
	}
	kind := commit.FreezeKind(c.query.Get(paramKind))
	if _, named := c.query[paramName]; !named && (kind == commit.FreezeAction || kind == commit.FreezeConnector) {
		return badParam(paramName, "field.required", nil)
	}
	err := c.Freezes.Lift(c.ctx(), commit.FreezeOrder{
		Kind: kind, Name: c.query.Get(paramName), By: c.who, Reason: c.query.Get(paramReason),
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.writer().Lifted())
}
