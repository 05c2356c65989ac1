package api

import (
	"strconv"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/fault"
)

// problemType is the stable URI of a code; docs/errors.md describes each.
const problemType = "urn:cutonce:error:"

// problem is RFC 9457's object with the members of answer.Body beside its own. Its status is HTTP's, as the RFC wants; the
// change's own is at change.status.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	answer.Body
}

// problem writes a refusal. err is what the body was made of, nil where the status of the change made it one.
func (c *call) problem(body answer.Body, err error) error {
	c.code = fault.Code(body.Code)
	if c.code == fault.Internal {
		c.Log.ErrorContext(c.ctx(), "an internal error was answered", "request_id", c.requestID, "route", c.route, "error", err)
	}
	if body.PreviewID != "" {
		c.subject = body.PreviewID
	}
	if challenge := c.Challenge.Header(err); challenge != "" {
		c.echo.Response().Header().Set("WWW-Authenticate", challenge)
	}
	c.retryAfter(body.RetryAfterS)
	status := statusOf(c.code, err)
	return c.write(status, "application/problem+json", problem{
		Type: problemType + body.Code, Title: c.texts.T("problem."+body.Code, nil), Status: status, Detail: body.Message, Body: body,
	})
}

func (c *call) retryAfter(seconds int) {
	if seconds > 0 {
		c.echo.Response().Header().Set("Retry-After", strconv.Itoa(seconds))
	}
}
