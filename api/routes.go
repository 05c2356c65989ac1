package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// route is one operation. Its path is written as in openapi.yaml.
type route struct {
	method, path string
	// query names the parameters that the operation knows; any other is refused.
	query []string
	// open operations need no token.
	open  bool
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
)

// routes is every operation of this door, and openapi.yaml says the same; a test compares the two.
func routes() []route {
	format := []string{paramFormat}
	return []route{
		{method: http.MethodGet, path: "/v1/actions", serve: (*call).actions},
		{method: http.MethodPost, path: "/v1/finds/{tool}", serve: (*call).find},
		{method: http.MethodPost, path: "/v1/actions/{action}/previews", query: format, serve: (*call).prepare},
		{
			method: http.MethodGet, path: "/v1/previews", serve: (*call).list,
			query: []string{paramStatus, paramNeedsOperator, paramTarget, paramAction, paramCursor, paramLimit, paramFormat},
		},
		{method: http.MethodGet, path: "/v1/previews/{id}", query: []string{paramWait, paramFormat}, serve: (*call).show},
		{method: http.MethodGet, path: "/v1/previews/{id}/why", serve: (*call).why},
		{method: http.MethodPost, path: "/v1/previews/{id}/approval-request", query: format, serve: (*call).requestApproval},
		{method: http.MethodPost, path: "/v1/previews/{id}/decisions", query: format, serve: (*call).decide},
		{method: http.MethodPost, path: "/v1/previews/{id}/apply", query: format, serve: (*call).apply},
		{method: http.MethodPost, path: "/v1/previews/{id}/cancel", query: format, serve: (*call).cancel},
		{method: http.MethodPost, path: "/v1/previews/{id}/undo", query: format, serve: (*call).undo},
		{method: http.MethodPost, path: "/v1/previews/{id}/probe", query: format, serve: (*call).probe},
		{method: http.MethodPost, path: "/v1/previews/{id}/resolve", query: format, serve: (*call).resolve},
		{method: http.MethodGet, path: "/v1/freezes", serve: (*call).freezes},
		{method: http.MethodPost, path: "/v1/freezes", query: format, serve: (*call).freeze},
		{method: http.MethodDelete, path: "/v1/freezes", query: []string{paramKind, paramName, paramReason}, serve: (*call).thaw},
		{method: http.MethodGet, path: "/v1/approvals", query: []string{paramCursor, paramLimit, paramFormat}, serve: (*call).queue},
		{
			method: http.MethodGet, path: "/v1/outcomes", serve: (*call).outcomes,
			query: []string{paramNeedsOperator, paramCursor, paramLimit, paramFormat},
		},
		{method: http.MethodGet, path: "/healthz", open: true, serve: (*call).healthy},
		{method: http.MethodGet, path: "/readyz", open: true, serve: (*call).ready},
		{method: http.MethodGet, path: "/openapi.yaml", open: true, serve: (*call).describe},
	}
}

// echoPath writes {name} as Echo does.
func (r route) echoPath() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(r.path)
}

// handler does what is the same for every operation, in this order: who calls, whether the query is known, the operation.
func (s *server) handler(r route) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := callOf(ec)
		c.route = r.path
		if !r.open {
			if err := c.identify(); err != nil {
				return err
			}
		}
		if err := c.readQuery(r.query); err != nil {
			return err
		}
		return r.serve(c)
	}
}
