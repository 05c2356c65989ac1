package doctor

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/config"
)

// settings says what is allowed and yet seldom meant.
func (d *Deployment) settings(_ context.Context, see *Seen) {
	s := d.Settings
	see.ok("all of them are known and readable")
	if s.AllowUnsafe == config.Unsafe {
		see.warn("unset it in production", "CUTONCE_ALLOW_UNSAFE_DATABASE=%s accepts a database that forgets", config.Unsafe)
	}
	if s.PolicyReinstate {
		see.warn("unset it after this start", "CUTONCE_POLICY_REINSTATE lets a replica with old files loosen the rules")
	}
	for name, t := range map[string]config.Target{"CUTONCE_ADS": s.Ads, "CUTONCE_DEPLOYS": s.Deploys} {
		u, err := url.Parse(t.URL)
		if err == nil && u.Scheme == "http" && !config.IsLoopback(u.Hostname()) {
			see.warn("use https", "%s_URL is plain http: its credential travels in the clear", name)
		}
	}
}

const (
	shortSettle   = 10 * time.Second
	shortApproval = 10 * time.Minute
	// slack is what a drain needs beside a send.
	slack = time.Second
)

// durations says which clocks are unlikely to be meant.
func (d *Deployment) durations(_ context.Context, see *Seen) {
	s, before := d.Settings, false
	warn := func(fix, format string, args ...any) { before = true; see.warn(fix, format, args...) }
	if s.DrainFor < s.Clock.Send+slack {
		warn("make it longer than CUTONCE_CLOCK_SEND", "CUTONCE_DRAIN (%s) cuts off sends (%s): each becomes an unknown outcome", s.DrainFor, s.Clock.Send)
	}
	if s.Clock.Settle < shortSettle {
		warn("use 60s, or what the target promises", "CUTONCE_CLOCK_SETTLE is %s: a slow target may still act on a change that was called not applied", s.Clock.Settle)
	}
	if s.Clock.Approval < shortApproval {
		warn("use hours", "CUTONCE_CLOCK_APPROVAL is %s: people will find requests expired", s.Clock.Approval)
	}
	for name, t := range map[string]config.Target{"CUTONCE_ADS": s.Ads, "CUTONCE_DEPLOYS": s.Deploys} {
		if t.URL != "" && t.HonoursKeys && t.KeyRetention < s.Clock.Approval+s.Clock.ApplyWindow {
			warn("see that the platform remembers them for longer", "%s_KEY_RETENTION (%s) is shorter than a change may wait: a late replay is not possible", name, t.KeyRetention)
		}
	}
	switch {
	case before:
	case s.Retention == 0:
		see.ok("plausible; changes are kept for ever (CUTONCE_RETENTION is not set)")
	default:
		see.ok("plausible; changes are kept for %s", s.Retention)
	}
}

// leastVariety is how many different bytes 32 random ones, or their hexadecimal digits, hold almost always.
const leastVariety = 10

// secret says what a secret's text tells. Whether it is the one that the database knows is told by the seal key, which is made from
// it.
func (d *Deployment) secret(_ context.Context, see *Seen) {
	text, different := string(d.Settings.Secret), map[byte]bool{}
	for n := range len(text) {
		different[text[n]] = true
	}
	if len(different) < leastVariety {
		see.warn("make one with openssl rand -hex 32 before anything is open", "CUTONCE_SECRET is long enough and looks guessable: it holds %d different characters", len(different))
		return
	}
	see.ok("%d bytes", len(text))
}

func (d *Deployment) publicURL(_ context.Context, see *Seen) {
	u, err := url.Parse(d.Settings.PublicURL)
	switch {
	case err != nil:
		see.fail("https://host", "CUTONCE_PUBLIC_URL is not readable")
	case config.IsLoopback(u.Hostname()):
		see.warn("set the address by which people and agents reach it", "CUTONCE_PUBLIC_URL is this machine's own")
	default:
		see.ok("%s (it was not asked: the service need not be running)", strings.TrimSuffix(d.Settings.PublicURL, "/"))
	}
}

// signIn asks the provider, as the first sign-in would.
func (d *Deployment) signIn(ctx context.Context, see *Seen) {
	if d.SignIn == nil {
		see.warn("set CUTONCE_SIGNIN_CLIENT_ID", "no client is configured: nobody can sign in to the console")
		return
	}
	at, err := d.SignIn(ctx)
	switch {
	case err != nil:
		see.fail("check CUTONCE_SIGNIN_ISSUER and the network", "the provider does not tell how people sign in: %v", cmp.Or(errors.Unwrap(err), err))
	case !trustworthy(at):
		see.fail("let the provider publish https addresses", "people would sign in at %s, in the clear", at)
	default:
		see.ok("client %s signs in at %s; register the redirect URL %s there (not tried)", d.Settings.SignIn.ClientID, at, d.RedirectURL)
	}
	if d.Settings.SignIn.ClientSecret == "" {
		see.ok("a public client without secret, with PKCE")
	}
}

// trustworthy reports whether secrets may be sent to an address.
func trustworthy(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && config.IsLoopback(u.Hostname()))
}
