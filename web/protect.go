package web

import (
	"fmt"
	"net/http"

	"github.com/cutonce/cutonce/internal/fault"
)

// policyOfPages lets a page load its own style, images and script, ask and post to itself, and nothing else. What the script makes of a
// text passes through its one policy, which only parses pages of this console.
const policyOfPages = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types cutonce"

// maxForm bounds a posted form: two texts of 2000 characters fit several times over.
const maxForm = 64 << 10

// protect sets the headers of every answer and refuses what another site made the browser send. With no-referrer a browser
// writes "Origin: null" on our own forms, so it is Sec-Fetch-Site that tells them apart; browsers send it to https and to
// loopback, which are the only places where a session cookie is set.
func (c *console) protect(origin string, next http.Handler) (http.Handler, error) {
	guard := http.NewCrossOriginProtection()
	if err := guard.AddTrustedOrigin(origin); err != nil {
		return nil, fmt.Errorf("the console's public URL: %w", err)
	}
	guard.SetDenyHandler(c.open(func(*visit) error {
		return fault.New(fault.Forbidden, nil).WithKey("web.fault.cross_origin").WithNext(fault.NextNone)
	}))
	guarded := guard.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policyOfPages)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		guarded.ServeHTTP(w, r)
	}), nil
}
