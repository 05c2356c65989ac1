package web

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/preview"
)

// Previews prepares a change again (preview.Service).
type Previews interface {
	Prepare(ctx context.Context, who actor.Actor, r preview.Request) (preview.Prepared, error)
}

// again says how a change that is over can be prepared anew: as another change, with a life of its own.
type again struct {
	// Tool and Call are what the requester's agent does: the tool, and the call as JSON to be copied, which is empty where it holds
	// what the page hides.
	Tool, Call string
	// As says in words what to do with the old input: to take it as it is, or to mend it first.
	As string
	// Mine says that this person asked, and may prepare it from here.
	Mine bool
}

// againOf is nil where there is nothing to prepare again.
func (c *console) againOf(v *visit, change commit.Change) *again {
	p := change.Preview
	as := ""
	switch s := change.Status; {
	case s == commit.StatusExpired, s == commit.StatusNotApplied:
		as = "same"
	case s == commit.StatusRejected, s == commit.StatusCanceled:
		as = "mended"
	default:
		return nil
	}
	tool := p.Action + "_preview"
	call, err := exactJSON(map[string]any{"name": tool, "arguments": map[string]any(p.Input)})
	if err != nil {
		return nil
	}
	if v.writer().Hides(p) {
		call = ""
	}
	return &again{Tool: tool, Call: call, As: v.t("web.again." + as), Mine: c.Previews != nil && preview.Owns(v.who, p)}
}

// exactJSON is JSON that can be copied from a page: what a reader would not see is written by its number, which reads back as itself.
func exactJSON(value any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, r := range strings.TrimSpace(b.String()) {
		if r == '\n' || visible.Text(string(r)) == string(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String(), nil
}

// prepareAgain prepares the change anew for the person who asked for it, or for whom it was asked, as theirs. It goes the same way as
// every other: the target is read, the policy asked, and nothing is sent.
func (c *console) prepareAgain(v *visit) error {
	_, y, err := c.readable(v)
	if err != nil {
		return err
	}
	p := y.Change.Preview
	if a := c.againOf(v, y.Change); a == nil || !a.Mine {
		return c.settleAgain(v, fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.again"))
	}
	input, err := json.Marshal(map[string]any(p.Input))
	if err != nil {
		return fmt.Errorf("writing the input of %s: %w", p.ID, err)
	}
	made, err := c.Previews.Prepare(v.r.Context(), v.who, preview.Request{Action: p.Action, Input: input})
	if err != nil {
		return c.settleAgain(v, err)
	}
	return v.goTo("/changes/" + made.Preview.ID.String())
}
