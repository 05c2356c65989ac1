package main

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/signin"
	"github.com/cutonce/cutonce/web"
)

// signIn is the console's way in by an identity provider; nil where none is configured.
func (s *service) signIn() (web.SignIn, error) {
	c := s.settings.SignIn
	if c.ClientID == "" {
		return nil, nil
	}
	key, err := hkdf.Key(sha256.New, []byte(s.settings.Secret), nil, "cutonce sign-in attempts", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key for sign-in attempts: %w", err)
	}
	issuer := s.settings.SignInIssuer()
	return signin.New(signin.Config{
		Issuer: issuer, ClientID: c.ClientID, ClientSecret: string(c.ClientSecret), RedirectURL: origin(s.settings) + web.SignInDone,
		Scopes: c.Scopes, Wanted: s.verifier.WantedClaims(issuer), Key: key, Now: time.Now, Rand: rand.Reader,
		Person: func(claims map[string]any, granted []string) (actor.Actor, error) {
			return s.verifier.Person(issuer, c.ClientID, claims, granted)
		},
	})
}
