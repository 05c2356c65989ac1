package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/web"
)

// cast is the development issuer with its invented people. Only the development command's files may import it.
type cast struct {
	issuer *devissuer.Issuer
	open   bool
}

func openCast(dir, self, audience string, open bool) (*cast, error) {
	issuer, err := devissuer.New(devissuer.Config{
		Dir: dir, URL: self + issuerPath, Audience: audience, AllowRemote: open, Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return nil, err
	}
	return &cast{issuer: issuer, open: open}, nil
}

// settings configure the service to trust this issuer, in the way that any issuer is trusted.
func (c *cast) settings() config.Issuer {
	return config.Issuer{
		URL: c.issuer.URL(), JWKSURL: c.issuer.JWKSURL(), AgentClients: c.issuer.AgentClients(), HumanClients: []string{devissuer.ConsoleClient},
	}
}

func (c *cast) door() *devDoor {
	return &devDoor{
		handler: c.issuer.Handler(), paths: c.issuer.Paths(),
		signIn: func(v *auth.Verifier) web.DevSignIn { return devSignIn{c, v} },
	}
}

// devSignIn is the console's development sign-in.
type devSignIn struct {
	*cast
	verifier *auth.Verifier
}

// Allowed reports whether the request comes from this machine, or the door was opened to all.
func (s devSignIn) Allowed(r *http.Request) bool { return s.open || devissuer.IsLocal(r) }

// People lists the humans.
func (s devSignIn) People() []web.DevPerson {
	var out []web.DevPerson
	for _, p := range s.issuer.People() {
		path, err := s.issuer.SignInPath(p.ID)
		if p.Agent || err != nil {
			continue
		}
		out = append(out, web.DevPerson{Name: p.Name, Subject: p.Subject, Path: path, Roles: p.Roles, Groups: p.Groups})
	}
	return out
}

// CheckSignIn turns a link into a token, and judges that like any other.
func (s devSignIn) CheckSignIn(ctx context.Context, person, code string) (actor.Actor, error) {
	token, err := s.issuer.CheckSignIn(person, code)
	if err != nil {
		return actor.Actor{}, err
	}
	return s.verifier.Verify(ctx, token)
}

// link is a person as the banner shows them.
type link struct{ what, name, url string }

// links are the sign-in links, one for each role, the approvers by their group.
func (c *cast) links(origin string) ([]link, error) {
	var out []link
	for _, p := range c.issuer.People() {
		if p.Agent {
			continue
		}
		path, err := c.issuer.SignInPath(p.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, link{what: strings.Join(append(slices.Clone(p.Roles), p.Groups...), ", "), name: p.ID + ", " + p.Name, url: origin + path})
	}
	return out, nil
}

// keepTokens writes everybody's token into a file of its own, for trying the API and other agents by hand, and returns the
// names. Whoever may read the folder holds the issuer's key anyway.
func (c *cast) keepTokens(folder string) ([]string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range c.issuer.People() {
		token, err := c.issuer.Token(p.ID)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, p.ID), []byte(token+"\n"), 0o600); err != nil {
			return nil, err
		}
		names = append(names, p.ID)
	}
	return names, nil
}

// agentToken is the development agent's token.
func (c *cast) agentToken() (string, error) { return c.issuer.Token("agent") }
