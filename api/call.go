package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// call is one request on its way through the door.
type call struct {
	*server
	echo      echo.Context
	requestID string
	route     string
	texts     *catalog.Texts
	// who is set once the token has been verified; on open paths nobody is.
	who      actor.Actor
	query    url.Values
	detailed bool
	// revealed is the change whose hidden values the answer holds, because that is on record.
	revealed preview.ID

	// For the log line.
	subject string
	code    fault.Code
}

const callKey = "cutonce.call"

func callOf(ec echo.Context) *call { return ec.Get(callKey).(*call) }

func (c *call) ctx() context.Context { return c.echo.Request().Context() }

// identify settles who calls, and in which language they read unless the request says so itself.
func (c *call) identify() error {
	token, err := auth.FromRequest(c.echo.Request())
	if err != nil {
		return err
	}
	if c.who, err = c.Verifier.Verify(c.ctx(), token); err != nil {
		return err
	}
	c.speak()
	return nil
}

func (c *call) limit(p actor.Power) error {
	if c.Limit == nil {
		return nil
	}
	return c.Limit(c.who, p)
}

// speak chooses the language: the request's wish, then the token's locale.
func (c *call) speak() {
	c.texts = c.Catalog.In(c.echo.Request().Header.Get("Accept-Language"), c.who.Locale)
	c.echo.Response().Header().Set("Content-Language", c.texts.Lang)
}

func (c *call) writer() answer.Writer {
	return answer.Writer{Texts: c.texts, Detailed: c.detailed, RequestID: c.requestID, Revealed: c.revealed}
}

// previewID reads the ID of the path. What cannot be an ID gets the answer of an unknown one.
func (c *call) previewID() (preview.ID, error) {
	id, ok := preview.ParseID(c.echo.Param("id"))
	if !ok {
		return id, fault.New(fault.NotFound, nil)
	}
	c.subject = id.String()
	return id, nil
}

// heard are the HTTP statuses of answers that are no refusals. A change that is still being applied is accepted, not done.
var heard = map[commit.Status]int{commit.StatusApplying: http.StatusAccepted}

// answer writes the answer to a call about a change: a problem exactly when the body carries a code.
func (c *call) answer(op answer.Op, change commit.Change, replayed bool, err error) error {
	body := c.writer().Of(op, change, replayed, err)
	if body.Code != "" {
		return c.problem(body, err)
	}
	status := http.StatusOK
	if s, ok := heard[change.Status]; ok && op == answer.OpApply {
		status = s
	}
	c.subject = body.PreviewID
	c.retryAfter(body.RetryAfterS)
	return c.json(status, body)
}

// asItStands writes the answer to a call that moved, or refused to move, a change: with the change as the database gave it back, or
// read anew, if the caller may see it. Either way the answer shows what is stored and not what was meant.
func (c *call) asItStands(op answer.Op, id preview.ID, p preview.Preview, moved error) error {
	change, err := c.standing(id, p, moved)
	switch {
	case err != nil && moved == nil:
		return err
	case err != nil:
		return moved
	}
	return c.answer(op, change, false, moved)
}

func (c *call) standing(id preview.ID, p preview.Preview, moved error) (commit.Change, error) {
	if change, ok := commit.Unclaimed(p); ok && moved == nil && !c.detailed {
		return change, nil
	}
	return c.Changes.Status(c.ctx(), c.who, id, 0, c.detailed)
}

// json writes a whole answer at once, so that a body that cannot be written is still a problem.
func (c *call) json(status int, body any) error {
	return c.write(status, "application/json", body)
}

func (c *call) write(status int, mediaType string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return c.echo.Blob(status, mediaType, append(raw, '\n'))
}
