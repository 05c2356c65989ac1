package rollback

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/connector"
)

// refusal is an answer other than the one documented for success. Its code is empty unless the body is the platform's own
// error document.
type refusal struct {
	status        int
	code, message string
	retryAfter    time.Duration
}

// refusals are the platform's documented refusals of a rollback, each of which says that nothing was changed. Status and code
// must both match: a gateway in front of the platform answers with the same statuses, and knows nothing of what is behind it.
//
// Left out on purpose, and therefore unknown: 409 in_progress (the first request with our key is being worked on), 422
// key_reused (our key never goes with two bodies, so something is very wrong), 403, 429, every 2xx but 201, every 5xx.
var refusals = map[int][]string{
	http.StatusBadRequest:            {"invalid_body", "invalid_key"},
	http.StatusUnauthorized:          {"unauthenticated"},
	http.StatusNotFound:              {"service_not_found", "environment_not_found"},
	http.StatusRequestEntityTooLarge: {"too_large"},
	http.StatusUnsupportedMediaType:  {"unsupported_media_type"},
	http.StatusUnprocessableEntity:   {"unknown_deployment", "deployment_failed", "already_current"},
}

func readRefusal(reply connector.Reply) refusal {
	r := refusal{status: reply.Status}
	if s, err := strconv.Atoi(reply.Header.Get("Retry-After")); err == nil && s > 0 {
		r.retryAfter = time.Duration(min(s, 3600)) * time.Second
	}
	d, err := parseDocument(reply.Body)
	if err != nil {
		return r
	}
	if inner, err := d.object("error"); err == nil {
		r.code, _ = inner["code"].(string)
		r.message, _ = inner["message"].(string)
	}
	return r
}

func (r refusal) is(status int, code string) bool { return r.status == status && r.code == code }

// documented reports whether the platform itself says that it changed nothing.
func (r refusal) documented() bool { return slices.Contains(refusals[r.status], r.code) }

// moved reports whether the platform refused because another deployment is active than the plan's.
func (r refusal) moved() bool { return r.is(http.StatusPreconditionFailed, "etag_mismatch") }

// there reports whether the platform refused because the build that was asked for is active. Only a history can tell
// whether that was our own doing.
func (r refusal) there() bool { return r.is(http.StatusUnprocessableEntity, "already_current") }

// Error is for logs. The platform's words are not in it: they are data.
func (r refusal) Error() string {
	return fmt.Sprintf("the platform answered %d (%q)", r.status, r.code)
}

// unavailable is the fault of a read that was refused.
func (r refusal) unavailable() error { return unavailable(r, r.retryAfter) }

// words are what a person is told about a refusal.
func (r refusal) words() string {
	if r.message == "" {
		return r.code
	}
	return r.code + ": " + r.message
}
