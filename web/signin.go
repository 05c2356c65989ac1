package web

import (
	"net/http"

	"github.com/cutonce/cutonce/internal/fault"
)

type signInPage struct {
	frame
	// Dev says that this is a development server with invented people.
	Dev    bool
	People []personLink
	// Kept is what was typed when the session had ended.
	Kept []kept
	// Asked says that the page was reached because a session was needed.
	Asked bool
}

type personLink struct {
	DevPerson
	Href string
}

// signIn shows the ways in.
func (c *console) signIn(v *visit) error {
	return c.show(v, http.StatusOK, "signin", c.waysIn(v, local(v.r.URL.Query().Get("next"))))
}

// askToSignIn leads somebody without a session to the way in, and from there to where they wanted to go. A refused post keeps
// what was typed.
func (c *console) askToSignIn(v *visit) error {
	if v.r.Method != http.MethodPost {
		return v.goTo(withQuery("/sign-in", "next", local(v.r.URL.RequestURI())))
	}
	page := c.waysIn(v, local("/changes/"+v.r.PathValue("id")))
	page.Kept, page.Asked = v.kept(), true
	return c.show(v, http.StatusUnauthorized, "signin", page)
}

func (c *console) waysIn(v *visit, next string) *signInPage {
	page := &signInPage{frame: c.frameOf(v, v.t("web.signin.title"), ""), Asked: next != "/"}
	if c.Dev == nil || !c.Dev.Allowed(v.r) {
		return page
	}
	page.Dev = true
	for _, p := range c.Dev.People() {
		page.People = append(page.People, personLink{p, withQuery(p.Path, "next", next)})
	}
	return page
}

// devSignIn follows a link of the development issuer. Whatever is wrong with it gets the same answer.
func (c *console) devSignIn(v *visit) error {
	if !c.Dev.Allowed(v.r) {
		return fault.New(fault.NotFound, nil)
	}
	q := v.r.URL.Query()
	who, err := c.Dev.CheckSignIn(v.r.Context(), q.Get("person"), q.Get("code"))
	if err != nil {
		c.Log.WarnContext(v.r.Context(), "a development sign-in was refused", "request_id", v.requestID, "error", err)
		return fault.New(fault.Unauthenticated, nil).WithKey("web.fault.sign_in_link").WithNext(fault.NextNone)
	}
	if err := c.Sessions.Start(v.w, v.r, who); err != nil {
		return err
	}
	return v.goTo(local(q.Get("next")))
}

// signOut ends the session.
func (c *console) signOut(v *visit) error {
	if err := c.Sessions.End(v.w, v.r); err != nil {
		return err
	}
	return v.goTo("/sign-in")
}
