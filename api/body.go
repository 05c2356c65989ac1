package api

import (
	"embed"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
)

//go:embed schema/*.json
var schemas embed.FS

// bodies are the closed schemas of the bodies that this door itself defines; those of actions are their connector's.
type bodies map[string]*intake.Schema

// The schemas' names. bodyNone is the body of a call that takes nothing but the ID in its path, param is any query
// parameter.
const (
	bodyNone            = "none"
	bodyApprovalRequest = "approval_request"
	bodyCancel          = "cancel"
	bodyDecision        = "decision"
	bodyResolution      = "resolution"
	bodyUndo            = "undo"
	bodyFreeze          = "freeze"
	bodyRemoval         = "removal"
	param               = "param"
)

func compileBodies() (bodies, error) {
	all := bodies{}
	for _, name := range []string{bodyNone, bodyApprovalRequest, bodyCancel, bodyDecision, bodyResolution, bodyUndo, bodyFreeze, bodyRemoval, param} {
		raw, err := schemas.ReadFile("schema/" + name + ".json")
		if err != nil {
			return nil, fmt.Errorf("reading the schema %s: %w", name, err)
		}
		if all[name], err = intake.Compile(name, raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// rawBody reads the body whole, but never more than the limit. No body is an empty object.
func (c *call) rawBody() ([]byte, error) {
	r := c.echo.Request()
	tooLarge := fault.New(fault.TooLarge, fault.Args{"limit": c.MaxBody})
	if r.ContentLength > int64(c.MaxBody) {
		return nil, tooLarge
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, int64(c.MaxBody)+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.InvalidInput, nil).WithField("", "field.json.syntax", nil).Because(err)
	case len(raw) > c.MaxBody:
		return nil, tooLarge
	case len(raw) == 0:
		return []byte("{}"), nil
	}
	return raw, labelled(r.Header)
}

// labelled refuses a body that does not say that it is plain JSON: a form that a page elsewhere submits never is.
func labelled(h http.Header) error {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset, named := params["charset"]
	encoding := h.Get("Content-Encoding")
	if err == nil && media == "application/json" && (!named || strings.EqualFold(charset, "utf-8")) && (encoding == "" || encoding == "identity") {
		return nil
	}
	return withStatus(http.StatusUnsupportedMediaType, fault.New(fault.InvalidInput, nil).WithKey("http.media_type"))
}

// body reads the body strictly and holds it up to a schema.
func (c *call) body(schema string) (connector.Input, error) {
	raw, err := c.rawBody()
	if err != nil {
		return nil, err
	}
	value, err := intake.Read(raw, c.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := c.bodies[schema].Check(value); err != nil {
		return nil, err
	}
	return connector.Input(value.(map[string]any)), nil
}
