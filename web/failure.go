package web

import (
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// statuses is the console's one table from codes to HTTP. A test compares it with the vocabulary.
var statuses = map[fault.Code]int{
	fault.InvalidInput:        http.StatusUnprocessableEntity,
	fault.InvalidNumber:       http.StatusUnprocessableEntity,
	fault.CurrencyMismatch:    http.StatusUnprocessableEntity,
	fault.ExpectMismatch:      http.StatusUnprocessableEntity,
	fault.NotFound:            http.StatusNotFound,
	fault.Forbidden:           http.StatusForbidden,
	fault.Unauthenticated:     http.StatusUnauthorized,
	fault.InsufficientScope:   http.StatusForbidden,
	fault.PolicyDenied:        http.StatusForbidden,
	fault.ApprovalRequired:    http.StatusConflict,
	fault.Rejected:            http.StatusConflict,
	fault.Expired:             http.StatusGone,
	fault.Canceled:            http.StatusConflict,
	fault.DigestMismatch:      http.StatusConflict,
	fault.Drifted:             http.StatusConflict,
	fault.TargetBusy:          http.StatusConflict,
	fault.TargetRefused:       http.StatusConflict,
	fault.TargetUnavailable:   http.StatusServiceUnavailable,
	fault.OutcomeUnknown:      http.StatusGatewayTimeout,
	fault.IdempotencyConflict: http.StatusConflict,
	fault.InProgress:          http.StatusConflict,
	fault.Conflict:            http.StatusConflict,
	fault.Frozen:              http.StatusLocked,
	fault.ExposureExceeded:    http.StatusConflict,
	fault.RateLimited:         http.StatusTooManyRequests,
	fault.TooManyOpen:         http.StatusConflict,
	fault.TooLarge:            http.StatusRequestEntityTooLarge,
	fault.Internal:            http.StatusInternalServerError,
}

// problem is a refusal in words for a person.
type problem struct {
	Message string
	// Next says what to do now; empty where the message says it all.
	Next string
	// Fields are the wrong places by name ("reason").
	Fields    map[string]string
	RequestID string
}

// problemOf writes a refusal. Texts made for people ("web.fault.…") go before those that also serve agents.
func (v *visit) problemOf(err error) *problem {
	f := fault.From(err)
	body := v.writer().Fault(err)
	p := &problem{Message: body.Message, Fields: map[string]string{}, RequestID: body.RequestID}
	if text := v.forPeople(f.Key, f.Args); text != "" {
		p.Message = text
	}
	p.Next = v.t("web.next." + string(f.Next))
	for i, field := range f.Fields {
		reason := v.forPeople(field.Key, field.Args)
		if reason == "" {
			reason = body.Fields[i].Reason
		}
		p.Fields[strings.TrimPrefix(field.Path, "/")] = reason
	}
	return p
}

// forPeople is the console's own wording of a text, empty if it has none.
func (v *visit) forPeople(key string, args map[string]any) string {
	own := "web." + strings.TrimPrefix(key, "web.")
	text := v.writer().Say(connector.Say(own, v.until(args)))
	if text == own {
		return ""
	}
	return text
}

type failurePage struct {
	frame
	Problem *problem
	Kept    []kept
	// Home says where to go on; empty for somebody not signed in.
	Home string
}

// fail shows a failure. The text of an internal error goes to the log and nowhere else.
func (c *console) fail(v *visit, err error) {
	code := fault.CodeOf(err)
	if code == fault.Internal {
		c.Log.ErrorContext(v.r.Context(), "a page failed", "request_id", v.requestID, "path", v.r.URL.Path, "error", err)
	}
	page := failurePage{
		frame: frame{Title: v.t("web.failure.title." + string(fault.Codes()[code].Kind)), Lang: v.in.lang, Version: c.Version},
		Home:  "/",
	}
	if v.who.Subject != "" { // what another site made the browser send was typed by nobody here
		page.Kept = v.kept()
	}
	if code == fault.NotFound {
		page.frame = c.frameOf(v, v.t("web.failure.title.not_found"), "").astray()
	}
	page.Problem = v.problemOf(err)
	if code == fault.NotFound { // nothing was typed wrongly but the address
		page.Problem.Next = v.t("web.next.not_found")
	}
	if showing := c.show(v, statusOf(err), "failure", &page); showing != nil {
		c.Log.ErrorContext(v.r.Context(), "the failure's page failed", "request_id", v.requestID, "error", showing)
		http.Error(v.w, "internal error "+v.requestID, http.StatusInternalServerError)
	}
}

// statusOf is the status of a failure's page. What may be tried again (a database or a provider that cannot be reached) is a
// 503, so that machines on the way see it as passing.
func statusOf(err error) int {
	f := fault.From(err)
	if f.Code == fault.Internal && f.Retryable {
		return http.StatusServiceUnavailable
	}
	return statuses[f.Code]
}

// nowhere is any other address. Whoever is signed in finds their lists around it.
func (c *console) nowhere(v *visit) error {
	if who, err := c.Sessions.Peek(v.r); err == nil && who.Kind == actor.Human {
		v.who = who
		v.speak(c)
	}
	return fault.New(fault.NotFound, nil)
}
