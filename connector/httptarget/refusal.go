package httptarget

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/connector"
)

// Refusal is an answer other than the one documented for success. Its code is empty unless the body is the target's own
// error document.
type Refusal struct {
	Status        int
	Code, Message string
	RetryAfter    time.Duration
}

// ReadRefusal reads {"error": {"code": …, "message": …}}. What is not that, whole and strict, is a refusal without a code.
func ReadRefusal(reply connector.Reply) Refusal {
	r := Refusal{Status: reply.Status}
	if s, err := strconv.Atoi(reply.Header.Get("Retry-After")); err == nil && s > 0 {
		r.RetryAfter = time.Duration(min(s, 3600)) * time.Second
	}
	d, err := ParseDocument(reply.Body)
	if err != nil {
		return r
	}
	if inner, err := d.Object("error"); err == nil {
		r.Code, _ = inner["code"].(string)
		r.Message, _ = inner["message"].(string)
	}
	return r
}

// Says compares both: a status alone is anybody's.
func (r Refusal) Says(status int, code string) bool { return r.Status == status && r.Code == code }

// Error is for logs. The target's words are not in it: they are data.
func (r Refusal) Error() string {
	return fmt.Sprintf("the platform answered %d (%q)", r.Status, r.Code)
}

// Unavailable is the fault of a read that was refused.
func (r Refusal) Unavailable() error { return Unavailable(r, r.RetryAfter) }

// Words are what a person is told about a refusal.
func (r Refusal) Words() string {
	if r.Message == "" {
		return r.Code
	}
	return r.Code + ": " + r.Message
}

// Refusals are documented answers, by status: each of its codes says that nothing was changed. An answer that is not listed
// is unknown, and leaving one out is always the safe side.
type Refusals map[int][]string

func (t Refusals) has(r Refusal) bool { return slices.Contains(t[r.Status], r.Code) }
