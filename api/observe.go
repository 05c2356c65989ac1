package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cutonce/cutonce/internal/fault"
)

// requestIDHeader carries a name for the request, ours or the caller's, back to the caller and into every log line.
const requestIDHeader = "X-Request-Id"

// usableID keeps foreign request IDs from writing into our logs whatever they like.
var usableID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// observe is around every request, found or not: it names it, answers what nobody else answered, and logs one line.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := s.begin(ec)
		startedAt := s.Now()
		if err := c.contain(next); err != nil {
			c.fail(err)
		}
		c.log(s.Now().Sub(startedAt))
		return nil
	}
}

func (s *server) begin(ec echo.Context) *call {
	c := &call{server: s, echo: ec, requestID: ec.Request().Header.Get(requestIDHeader)}
	if !usableID.MatchString(c.requestID) {
		c.requestID = s.NewRequestID()
	}
	ec.Set(callKey, c)
	h := ec.Response().Header()
	h.Set(requestIDHeader, c.requestID)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	c.speak()
	return c
}

// contain turns a panic into an internal error. The stack goes to the log, and nothing of it to the caller.
func (c *call) contain(next echo.HandlerFunc) (err error) {
	defer func() {
		switch p := recover(); {
		case p == http.ErrAbortHandler:
			panic(p)
		case p != nil:
			c.Log.ErrorContext(c.ctx(), "a handler panicked", "request_id", c.requestID, "route", c.route, "stack", string(debug.Stack()))
			err = fmt.Errorf("a handler panicked: %v", p)
		}
	}()
	return next(c.echo)
}

// statusGone is what the log says where the caller has hung up; nobody receives it.
const statusGone = 499

// fail answers with an error that no operation has answered.
func (c *call) fail(err error) {
	if c.echo.Response().Committed {
		c.Log.WarnContext(c.ctx(), "the answer could not be sent", "request_id", c.requestID, "error", err)
		return
	}
	if errors.Is(err, context.Canceled) && c.ctx().Err() != nil {
		c.echo.Response().Status = statusGone
		return
	}
	err = c.routing(err)
	if err := c.problem(c.writer().Fault(err), err); err != nil {
		c.Log.WarnContext(c.ctx(), "the problem could not be sent", "request_id", c.requestID, "error", err)
	}
}

// routing translates the router's own refusals.
func (c *call) routing(err error) error {
	he, ok := err.(*echo.HTTPError)
	switch {
	case !ok:
		return err
	case he.Code == http.StatusNotFound:
		return fault.New(fault.NotFound, nil).WithKey("http.no_route")
	case he.Code == http.StatusMethodNotAllowed:
		args := fault.Args{"method": clip(c.echo.Request().Method), "allow": c.echo.Response().Header().Get("Allow")}
		return withStatus(http.StatusMethodNotAllowed, fault.New(fault.InvalidInput, args).WithKey("http.method"))
	}
	return err
}

func clip(s string) string {
	const most = 20
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

// log writes the one line of a request: no token, no body, no query, and of the path only what is known to be harmless.
func (c *call) log(took time.Duration) {
	level := slog.LevelInfo
	if c.code == fault.Internal {
		level = slog.LevelError
	}
	if !c.Log.Enabled(c.ctx(), level) {
		return
	}
	c.Log.LogAttrs(c.ctx(), level, "request",
		slog.String("request_id", c.requestID), slog.String("method", clip(c.echo.Request().Method)), slog.String("route", c.route),
		slog.String("tenant", c.who.Tenant), slog.String("actor", c.actorID()), slog.String("preview_id", c.subject),
		slog.Int("status", c.echo.Response().Status), slog.String("code", string(c.code)), slog.Duration("took", took))
}

func (c *call) actorID() string {
	if c.who.Subject == "" {
		return ""
	}
	return c.who.ID()
}
