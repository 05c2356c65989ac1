package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cutonce/cutonce/internal/actor"
)

// route is one operation. Its path is written as in openapi.yaml.
type route struct {
	method, path string
	// query names the parameters that the operation knows; any other is refused.
	query []string
	// open operations need no token.
	open bool
	// power is what the caller needs (actor.Grants); the services check it.
	power actor.Power
	serve func(*call) error
}

// The query parameters.
const (
	paramFormat        = "response_format"
	paramWait          = "wait_s"
	paramStatus        = "status"
	paramTarget        = "target_id"
	paramAction        = "action"
	paramCursor        = "cursor"
	paramLimit         = "limit"
	paramNeedsOperator = "needs_operator"
	paramKind          = "kind"
	paramName          = "name"
	paramReason        = "reason"
	paramSince         = "since"
	paramUntil         = "until"
	paramContradicted  = "contradicted"
	paramExport        = "format"
	paramPerson        = "person"
)

// found are the parameters of a search.
func found() []string {
	return []string{paramStatus, paramNeedsOperator, paramTarget, paramAction, paramPerson, paramSince, paramUntil, paramContradicted}
}

// routes is every operation of this door, and openapi.yaml says the same; a test compares the two.
func routes() []route {
	format := []string{paramFormat}
	return []route{
		{method: http.MethodGet, path: "/v1/actions", power: actor.Call, serve: (*call).actions},
		{method: http.MethodPost, path: "/v1/finds/{tool}", power: actor.Find, serve: (*call).find},
		{method: http.MethodPost, path: "/v1/actions/{action}/previews", query: format, power: actor.Prepare, serve: (*call).prepare},
		{
			method: http.MethodGet, path: "/v1/previews", power: actor.Call, serve: (*call).list,
			query: append(found(), paramCursor, paramLimit, paramFormat),
		},
		{method: http.MethodGet, path: "/v1/previews/export", power: actor.Export, query: append(found(), paramExport), serve: (*call).export},
		{method: http.MethodGet, path: "/v1/previews/{id}", query: []string{paramWait, paramFormat}, power: actor.Read, serve: (*call).show},
		{method: http.MethodGet, path: "/v1/previews/{id}/why", power: actor.Read, serve: (*call).why},
		{method: http.MethodPost, path: "/v1/previews/{id}/approval-request", query: format, power: actor.Request, serve: (*call).requestApproval},
		{method: http.MethodPost, path: "/v1/previews/{id}/decisions", query: format, power: actor.Decide, serve: (*call).decide},
		{method: http.MethodPost, path: "/v1/previews/{id}/apply", query: format, power: actor.Apply, serve: (*call).apply},
		{method: http.MethodPost, path: "/v1/previews/{id}/cancel", query: format, power: actor.Cancel, serve: (*call).cancel},
		{method: http.MethodPost, path: "/v1/previews/{id}/undo", query: format, power: actor.Read, serve: (*call).undo},
		{method: http.MethodPost, path: "/v1/previews/{id}/probe", query: format, power: actor.Probe, serve: (*call).probe},
		{method: http.MethodPost, path: "/v1/previews/{id}/resolve", query: format, power: actor.Resolve, serve: (*call).resolve},
		{method: http.MethodPost, path: "/v1/previews/{id}/reveal", query: format, power: actor.Reveal, serve: (*call).reveal},
		{method: http.MethodGet, path: "/v1/freezes", power: actor.SeeFreezes, serve: (*call).freezes},
		{method: http.MethodPost, path: "/v1/freezes", query: format, power: actor.Freeze, serve: (*call).freeze},
		{method: http.MethodDelete, path: "/v1/freezes", query: []string{paramKind, paramName, paramReason}, power: actor.Freeze, serve: (*call).thaw},
		{method: http.MethodGet, path: "/v1/removed-approvers", power: actor.ReadAll, serve: (*call).removals},
		{method: http.MethodPost, path: "/v1/removed-approvers", power: actor.RemoveApprover, serve: (*call).removeApprover},
		{method: http.MethodDelete, path: "/v1/removed-approvers", query: []string{paramPerson, paramReason}, power: actor.RemoveApprover, serve: (*call).restoreApprover},
		{method: http.MethodGet, path: "/v1/approvals", query: []string{paramCursor, paramLimit, paramFormat}, power: actor.Queue, serve: (*call).queue},
		{
			method: http.MethodGet, path: "/v1/outcomes", power: actor.Call, serve: (*call).outcomes,
			query: []string{paramNeedsOperator, paramCursor, paramLimit, paramFormat},
		},
		{method: http.MethodGet, path: "/healthz", open: true, serve: (*call).healthy},
		{method: http.MethodGet, path: "/readyz", open: true, serve: (*call).ready},
		{method: http.MethodGet, path: "/openapi.yaml", open: true, serve: (*call).describe},
	}
}

// Operation is one route, for documents. Power is empty where no token is needed.
type Operation struct {
	Method, Path string
	Power        actor.Power
}

// Operations lists every route.
func Operations() []Operation {
	var all []Operation
	for _, r := range routes() {
		all = append(all, Operation{r.method, r.path, r.power})
	}
	return all
}

// echoPath writes {name} as Echo does.
func (r route) echoPath() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(r.path)
}

// handler does what is the same for every operation, in this order: who calls, whether they call too often, whether the query is known,
// the operation.
func (s *server) handler(r route) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := callOf(ec)
		c.route = r.path
		if !r.open {
			if err := c.identify(); err != nil {
				return err
			}
			if err := c.limit(r.power); err != nil {
				return err
			}
		}
		if err := c.readQuery(r.query); err != nil {
			return err
		}
		return r.serve(c)
	}
}
