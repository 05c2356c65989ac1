package auth

import (
	"slices"
	"strings"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// identify settles the kind of caller. Only a human may decide, so whatever is not surely one is something else:
//
//	act claim                                  agent act.sub, for the token's subject (RFC 8693)
//	an agent's client, for itself              agent, answered for by the owner claim
//	an agent's client, for a person            agent, for that person
//	a client for itself (client credentials)   service
//	anything else                              human
func (i *issuer) identify(c claims, a *actor.Actor) (err error) {
	if a.Client, err = i.clientOf(c); err != nil {
		return err
	}
	acting, delegated, err := i.actingParty(c)
	if err != nil {
		return err
	}
	machine := isMachine(c, a.Subject, a.Client)
	switch {
	case delegated:
		a.Kind, a.Subject, a.For = actor.Agent, acting, a.Subject
	case machine && slices.Contains(i.AgentClients, a.Client):
		a.Kind = actor.Agent
	case machine:
		a.Kind = actor.Service
	case i.isAgentClient(a.Client):
		a.Kind, a.Subject, a.For = actor.Agent, a.Client, a.Subject
	default:
		a.Kind = actor.Human
	}
	if a.Kind == actor.Human {
		a.Owner = "" // people answer for themselves
	}
	return nil
}

// clientOf reads the OAuth client. Where the issuer's clients tell agents from people, a token that names none is refused:
// it could be an agent's.
func (i *issuer) clientOf(c claims) (string, error) {
	names := []string{"client_id", "azp"}
	if i.Claims.Client != "" {
		names = []string{i.Claims.Client}
	}
	for _, name := range names {
		client, err := c.id(name)
		if err != nil || client != "" {
			return client, err
		}
	}
	if len(i.AgentClients)+len(i.HumanClients) > 0 {
		return "", refuse("claim", fault.Args{"claim": names[0]})
	}
	return "", nil
}

func (i *issuer) isAgentClient(client string) bool {
	return slices.Contains(i.AgentClients, client) || len(i.HumanClients) > 0 && !slices.Contains(i.HumanClients, client)
}

// isMachine recognises a token that a client got for itself: RFC 9068 says that its subject is the client; the rest are
// the marks of issuers that do otherwise.
func isMachine(c claims, subject, client string) bool {
	return client != "" && (subject == client || subject == client+"@clients") ||
		c["gty"] == "client-credentials" || c["idtyp"] == "app" ||
		strings.HasPrefix(c.text("preferred_username"), "service-account-")
}

// actingParty reads the act claim. Its outermost subject acts now; those nested in it acted before and have no say (RFC 8693
// §4.1), but a chain that is malformed, endless or of another issuer's people is refused.
func (i *issuer) actingParty(c claims) (subject string, delegated bool, err error) {
	value, delegated := c["act"]
	for depth := 0; value != nil; depth++ {
		link, ok := value.(map[string]any)
		if !ok || depth == maxActors {
			return "", false, refuse("act", nil)
		}
		acting := claims(link)
		if iss, named := acting["iss"]; named && iss != i.URL {
			return "", false, refuse("act", nil)
		}
		sub, err := acting.id("sub")
		if err != nil || sub == "" {
			return "", false, refuse("act", nil)
		}
		if depth == 0 {
			subject = sub
		}
		value = acting["act"]
	}
	if delegated && subject == "" {
		return "", false, refuse("act", nil) // act: null says that someone acts, and not who
	}
	return subject, delegated, nil
}
