package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

// offered is what GET /v1/actions answers.
type offered struct {
	Message string          `json:"message"`
	Actions []offeredAction `json:"actions"`
	Finds   []offeredFind   `json:"finds"`
	Next    fault.Next      `json:"next"`
}

type offeredAction struct {
	Name        string          `json:"name"`
	Version     int             `json:"version"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Scopes      []string        `json:"scopes"`
	InputSchema json.RawMessage `json:"input_schema"`
	Clocks      clocks          `json:"clocks"`
	// Path is where a change is prepared.
	Path string `json:"path"`
}

type offeredFind struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Scopes      []string        `json:"scopes"`
	InputSchema json.RawMessage `json:"input_schema"`
	ItemSchema  json.RawMessage `json:"item_schema"`
	Path        string          `json:"path"`
}

// clocks are in seconds.
type clocks struct {
	Preview  float64 `json:"preview_ttl_s"`
	Approval float64 `json:"approval_deadline_s"`
	Apply    float64 `json:"apply_window_s"`
}

// actions lists what can be changed and looked for, with the schemas of the inputs. It is the same for everybody: what a
// caller may do is checked at each call.
func (c *call) actions() error {
	out := offered{Message: c.texts.T("http.actions", nil), Actions: []offeredAction{}, Finds: []offeredFind{}, Next: fault.NextNone}
	for _, a := range c.Actions.Actions() {
		out.Actions = append(out.Actions, offeredAction{
			Name: a.Name, Version: a.Version, Scopes: a.Scopes, InputSchema: a.Input, Path: "/v1/actions/" + a.Name + "/previews",
			Title: c.texts.T("action."+a.Name+".title", nil), Description: c.texts.T("action."+a.Name+".preview", nil),
			Clocks: clocksOf(a.Clocks.Or(c.Clocks)),
		})
	}
	for _, f := range c.Actions.Finds() {
		out.Finds = append(out.Finds, offeredFind{
			Name: f.Name, Scopes: f.Scopes, InputSchema: f.Input, ItemSchema: f.Item, Path: "/v1/finds/" + f.Name,
			Title: c.texts.T("find."+f.Name+".title", nil), Description: c.texts.T("find."+f.Name+".description", nil),
		})
	}
	return c.json(http.StatusOK, out)
}

func clocksOf(k connector.Clocks) clocks {
	s := time.Duration.Seconds
	return clocks{Preview: s(k.PreviewTTL), Approval: s(k.ApprovalFor), Apply: s(k.ApplyWindow)}
}
