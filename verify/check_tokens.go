package verify

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Tokens are the doors' own view of tokens.
type Tokens struct {
	// Verify turns a token into its actor.
	Verify func(ctx context.Context, raw string) (actor.Actor, error)
	// Unreachable is the cause of its error where an issuer's keys cannot be had.
	Unreachable error
	// StandIn makes the same judge with other keys in the place of every issuer's own, and asks nobody for them.
	StandIn func(keys []byte) (func(ctx context.Context, raw string) (actor.Actor, error), error)
	Issuers []TokenIssuer
}

// TokenIssuer is a configured issuer, with the claims that its tokens would need.
type TokenIssuer struct {
	URL, Audience, Client, TenantClaim, Tenant string
	// AgentClient is one that is named as an agent's, empty if there is none; ClientClaim is where clients are named if it is a claim of
	// the issuer's own.
	AgentClient, ClientClaim string
	// OneTenant says that the issuer may not speak for any tenant that it likes.
	OneTenant bool
}

var tokens = Check{
	ID: "tokens", Promise: "Only tokens that a configured issuer signed for this service speak for anybody",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		t := b.cfg.Tokens
		if len(t.Issuers) == 0 {
			return Proof{}, notApplicable("no identity provider is configured")
		}
		var silent error
		for _, i := range t.Issuers {
			forged, err := forgeries(i, b.cfg.Now())
			if err != nil {
				return Proof{}, err
			}
			for what, token := range forged {
				who, err := t.Verify(ctx, token)
				switch {
				case err == nil:
					return Proof{}, fail("a token of %s %s was accepted as %s", i.URL, what, who.ID())
				case errors.Is(err, t.Unreachable):
					silent = notApplicable("forged tokens are refused, and so is every other: the keys of %s cannot be had", i.URL)
				case !errors.Is(err, fault.Unauthenticated):
					return Proof{}, fail("a token of %s %s was told %v, want unauthenticated", i.URL, what, err)
				}
			}
		}
		return Proof{
			Control: "the issuers' keys can be had, so that their tokens can be told from others",
			Refusal: "tokens in their names without a signature, with a shared secret's and with a stranger's key were refused",
		}, silent
	},
}

// forgeries are tokens with all the claims that one of the issuer's would have, and no signature of the issuer's.
func forgeries(i TokenIssuer, now time.Time) (map[string]string, error) {
	claims := map[string]any{
		"iss": i.URL, "aud": i.Audience, "sub": "forged", "client_id": i.Client, "azp": i.Client, "exp": now.Add(time.Hour).Unix(),
		"iat": now.Unix(), "roles": []string{actor.RoleAdmin, actor.RoleApprover}, i.TenantClaim: i.Tenant,
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	shared := hmac.New(sha256.New, []byte(i.URL))
	out := map[string]string{}
	for what, one := range map[string]struct {
		alg  string
		sign func(message string) []byte
	}{
		"without a signature":   {"none", func(string) []byte { return nil }},
		"with a shared secret":  {"HS256", func(m string) []byte { shared.Reset(); shared.Write([]byte(m)); return shared.Sum(nil) }},
		"with a stranger's key": {"EdDSA", func(m string) []byte { return ed25519.Sign(stranger, []byte(m)) }},
	} {
		message, err := encoded(map[string]string{"alg": one.alg, "typ": "at+jwt"}, claims)
		if err != nil {
			return nil, err
		}
		out[what] = message + "." + base64.RawURLEncoding.EncodeToString(one.sign(message))
	}
	return out, nil
}

func encoded(parts ...any) (string, error) {
	var out []string
	for _, part := range parts {
		raw, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		out = append(out, base64.RawURLEncoding.EncodeToString(raw))
	}
	return strings.Join(out, "."), nil
}
