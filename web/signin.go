package web

import (
	"net/http"

	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/signin"
)

type signInPage struct {
	frame
	// Start leads to the identity provider; empty if there is none.
	Start string
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
		return v.goTo(withQuery(c.wayIn(), "next", local(v.r.URL.RequestURI())))
	}
	page := c.waysIn(v, local("/changes/"+v.r.PathValue("id")))
	page.Kept, page.Asked = v.kept(), true
	return c.show(v, http.StatusUnauthorized, "signin", page)
}

// wayIn is where somebody without a session goes: straight to the identity provider where that is the only way, because
// whoever follows a link from a chat wants to see the change.
func (c *console) wayIn() string {
	if c.SignIn != nil && c.Dev == nil {
		return startSignIn
	}
	return "/sign-in"
}

func (c *console) waysIn(v *visit, next string) *signInPage {
	page := &signInPage{frame: c.frameOf(v, v.t("web.signin.title"), ""), Asked: next != "/"}
	if c.SignIn != nil {
		page.Start = withQuery(startSignIn, "next", next)
	}
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

const (
	startSignIn = "/sign-in/start"
	// SignInDone is where an identity provider sends the browser back to: the path of the redirect URL to register there.
	SignInDone = "/sign-in/done"
)

// startSignIn sends the browser to the identity provider. fresh=1 asks that the person shows themselves there now.
func (c *console) startSignIn(v *visit) error {
	browser, err := c.Sessions.Browser(v.w, v.r)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	to, err := c.SignIn.Begin(v.r.Context(), signin.Wish{
		Browser: browser, Next: local(q.Get("next")), Fresh: q.Get("fresh") == "1", Locale: v.in.lang,
	})
	if err != nil {
		return err
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// finishSignIn takes the identity provider's answer. The address is one of a kind, so a reload is answered as a link that does
// not work and changes nothing.
func (c *console) finishSignIn(v *visit) error {
	browser, err := c.Sessions.Browser(v.w, v.r)
	if err != nil {
		return err
	}
	done, err := c.SignIn.Finish(v.r.Context(), browser, v.r.URL.Query())
	if err != nil {
		c.Log.WarnContext(v.r.Context(), "a sign-in was refused", "request_id", v.requestID, "error", err)
		return err
	}
	if err := c.Sessions.Start(v.w, v.r, done.Who); err != nil {
		return err
	}
	return v.goTo(local(done.Next))
}

// signOutEverywhere ends every session of the person.
func (c *console) signOutEverywhere(v *visit) error {
	if err := c.Sessions.EndAll(v.w, v.r, v.who); err != nil {
		return err
	}
	c.live.doubt(listening(v.who))
	return v.goTo("/sign-in")
}

// signOut ends the session.
func (c *console) signOut(v *visit) error {
	who, unknown := c.Sessions.Peek(v.r)
	if err := c.Sessions.End(v.w, v.r); err != nil {
		return err
	}
	if unknown == nil {
		c.live.doubt(listening(who))
	}
	return v.goTo("/sign-in")
}
