package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/auth"
)

// issuer asks one identity provider for what it publishes.
func (d *Deployment) issuer(ctx context.Context, see *Seen, i auth.Issuer) {
	found, err := auth.Look(ctx, d.Tokens, i.URL)
	switch {
	case err != nil:
		see.fail("check its URL and the network: while its keys are unknown, none of its tokens are accepted", "%v", err)
		return
	case !trustworthy(found.JWKSURL):
		see.fail("let it publish https addresses", "its keys are at %s, in the clear", found.JWKSURL)
		return
	case len(found.Usable) == 0:
		see.fail("let it sign with one of "+strings.Join(algorithms(d.Tokens), ", "), "none of its keys can verify a token here (%s)", reasons(found.Unusable))
		return
	}
	see.ok("%d usable keys at %s", len(found.Usable), found.JWKSURL)
	if len(found.Unusable) > 0 {
		see.ok("%d keys are not used: %s", len(found.Unusable), reasons(found.Unusable))
	}
	d.issuerClock(see, found)
	if i.Tenant == "" && len(i.Tenants) == 0 {
		see.warn("set CUTONCE_ISSUER_TENANT, or _TENANTS where it serves several", "it may speak for any tenant that its tokens name")
	}
}

func algorithms(c auth.Config) []string {
	if len(c.Algorithms) > 0 {
		return c.Algorithms
	}
	return auth.DefaultAlgorithms
}

func reasons(all []string) string {
	if len(all) == 0 {
		return "it publishes none"
	}
	return strings.Join(all, "; ")
}

// leeway is what tokens allow between two clocks, and near what is nothing to speak of.
const (
	leeway = 30 * time.Second
	near   = 5 * time.Second
)

func (d *Deployment) issuerClock(see *Seen, found auth.Survey) {
	if found.Date.IsZero() {
		see.ok("it does not tell its time")
		return
	}
	// A Date header is of whole seconds, cut off.
	compare(see, "its clock", apart(found.Date, found.Asked, found.Answered, time.Second))
}

// apart is by how much a clock that was read between two moments of ours is surely wrong against ours: positive if it is ahead.
func apart(theirs, asked, answered time.Time, grain time.Duration) time.Duration {
	switch {
	case theirs.After(answered):
		return theirs.Sub(answered)
	case theirs.Add(grain).Before(asked):
		return theirs.Add(grain).Sub(asked)
	}
	return 0
}

func compare(see *Seen, whose string, by time.Duration) {
	const fix = "let both machines follow a time server"
	by = by.Round(time.Millisecond)
	switch size := by.Abs(); {
	case size > leeway:
		see.fail(fix, "%s is %s from this machine's: tokens are refused beyond %s", whose, by, leeway)
	case size > near:
		see.warn(fix, "%s is %s from this machine's", whose, by)
	default:
		see.ok("%s agrees with this machine's", whose)
	}
}
