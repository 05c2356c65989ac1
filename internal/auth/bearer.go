package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/internal/fault"
)

const (
	keyMissing = "fault.unauthenticated.missing"
	keyHeader  = "fault.unauthenticated.header"
)

// FromRequest returns the bearer token of the Authorization header, and looks nowhere else: a token in a query or a body
// ends up in logs. Faults: unauthenticated, if there is none, if it is malformed, or if there are several.
func FromRequest(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) == 0:
		return "", fault.New(fault.Unauthenticated, nil).WithKey(keyMissing)
	case len(values) > 1:
		return "", fault.New(fault.Unauthenticated, nil).WithKey(keyHeader)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsFunc(token, notToken68) {
		return "", fault.New(fault.Unauthenticated, nil).WithKey(keyHeader)
	}
	return token, nil
}

// notToken68 is every character outside RFC 9110's token68.
func notToken68(r rune) bool {
	alphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !alphanumeric && !strings.ContainsRune("-._~+/=", r)
}

// Challenge builds WWW-Authenticate for one protected resource.
type Challenge struct {
	// ResourceMetadataURL is where the resource's RFC 9728 document is (MetadataURL).
	ResourceMetadataURL string
	// ReadScopes are the scopes that a first sign-in should ask for: as little as is useful.
	ReadScopes []string
}

// Header returns the value of WWW-Authenticate for a refusal, or "" if none belongs to it. A first 401 asks for the read
// scopes only; a 403 names every scope that the refused call needs (step-up).
func (c Challenge) Header(err error) string {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return ""
	}
	switch f.Code {
	case fault.Unauthenticated:
		if f.Key == keyFresh { // RFC 9470
			return c.render("insufficient_user_authentication", nil) + fmt.Sprintf(", max_age=%v", f.Data["max_age_s"])
		}
		return c.render(tokenError(f.Key), c.ReadScopes)
	case fault.InsufficientScope:
		return c.render("insufficient_scope", f.Scopes)
	}
	return ""
}

// keyFresh names the refusal of a sign-in that is too old for what was asked.
const keyFresh = "fault.unauthenticated.fresh"

// tokenError is RFC 6750's error code; a request that brought no token gets none.
func tokenError(key string) string {
	switch key {
	case keyMissing:
		return ""
	case keyHeader:
		return "invalid_request"
	}
	return "invalid_token"
}

func (c Challenge) render(code string, scopes []string) string {
	var params []string
	for _, p := range [][2]string{{"error", code}, {"scope", strings.Join(scopes, " ")}, {"resource_metadata", c.ResourceMetadataURL}} {
		if p[1] != "" {
			params = append(params, p[0]+`="`+quotable(p[1])+`"`)
		}
	}
	return strings.TrimRight("Bearer "+strings.Join(params, ", "), " ")
}

// quotable keeps what may stand in a quoted string, so that no configured value can end it or start a new header.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}
