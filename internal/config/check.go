package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// MinSecret is how many bytes the deployment's secret must have.
const MinSecret = 32

// Unsafe is the word that allows a database without durability.
const Unsafe = "development"

// CheckServe refuses settings that production cannot run with. The error is Problems.
func (s Settings) CheckServe() error {
	var p Problems
	p.need("CUTONCE_DATABASE_URL (or _FILE)", string(s.DatabaseURL), "which Postgres?")
	p.need("CUTONCE_POLICY_DIR", s.PolicyDir, "who must agree to what? examples/policies/budgets.yaml explains the files")
	p.need("CUTONCE_PUBLIC_URL", s.PublicURL, "by which address is the service reached?")
	if s.Ads.URL == "" && s.Deploys.URL == "" {
		p.add("CUTONCE_ADS_URL or CUTONCE_DEPLOYS_URL: required: which platform is changed?")
	}
	p.target("CUTONCE_ADS", s.Ads)
	p.target("CUTONCE_DEPLOYS", s.Deploys)
	p.need("CUTONCE_ISSUER_URL", s.Issuer.URL, "whose tokens are accepted?")
	for name, issuer := range map[string]Issuer{"ISSUER": s.Issuer, "ISSUER2": s.Issuer2, "ISSUER3": s.Issuer3} {
		if issuer.URL != "" && len(issuer.HumanClients) == 0 {
			p.add("CUTONCE_%s_HUMAN_CLIENTS: required: through which clients do people sign in? Every other client's tokens are an agent's or a service's", name)
		}
	}
	p = append(p, s.checkSignIn()...)
	if len(s.Secret) < MinSecret {
		p.add("CUTONCE_SECRET (or _FILE): %d bytes or more are needed, got %d; make one with: openssl rand -hex 32", MinSecret, len(s.Secret))
	}
	p = append(p, s.common()...)
	return p.orNil()
}

// checkSignIn asks for a way in for people, except on this machine alone.
func (s Settings) checkSignIn() Problems {
	var p Problems
	public, err := url.Parse(s.PublicURL)
	if err == nil && public.Hostname() != "" && !IsLoopback(public.Hostname()) {
		p.need("CUTONCE_SIGNIN_CLIENT_ID", s.SignIn.ClientID, "as which client do people sign in to the console? Its redirect URL is "+
			strings.TrimSuffix(s.PublicURL, "/")+"/sign-in/done")
	}
	if at := s.SignInIssuer(); !slices.Contains([]string{s.Issuer.URL, s.Issuer2.URL, s.Issuer3.URL}, at) {
		p.add("CUTONCE_SIGNIN_ISSUER: it is none of the configured issuers' URLs")
	}
	if s.SignIn.FreshFor < time.Minute {
		p.add("CUTONCE_SIGNIN_FRESH_FOR: at least a minute")
	}
	if s.SignIn.IdleFor <= 0 || s.SignIn.AbsoluteFor < s.SignIn.IdleFor {
		p.add("CUTONCE_SIGNIN_ABSOLUTE: at least CUTONCE_SIGNIN_IDLE, which is longer than nothing")
	}
	return p
}

// SignInIssuer is the identity provider that people sign in at.
func (s Settings) SignInIssuer() string { return cmp.Or(s.SignIn.Issuer, s.Issuer.URL) }

// Check refuses settings that no command can run with. The error is Problems.
func (s Settings) Check() error { return s.common().orNil() }

func (s Settings) common() Problems {
	var p Problems
	if s.PublicURL != "" && !trustworthy(s.PublicURL) {
		p.add("CUTONCE_PUBLIC_URL: https://host, without a path; plain http on loopback only")
	}
	if s.AllowUnsafe != "" && s.AllowUnsafe != Unsafe {
		p.add("CUTONCE_ALLOW_UNSAFE_DATABASE: only the word %s is understood", Unsafe)
	}
	if s.MCPListing != "grantable" && s.MCPListing != "granted" {
		p.add("CUTONCE_MCP_LISTING: grantable or granted")
	}
	for _, zone := range s.ConsoleZones {
		if _, err := time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
			p.add("CUTONCE_CONSOLE_ZONES: there is no time zone %q; write them as Asia/Tokyo", zone)
		}
	}
	if s.DatabasePool < 1 || s.DatabasePool > 1000 {
		p.add("CUTONCE_DATABASE_POOL: 1 to 1000")
	}
	if s.DatabasePooler != "auto" && s.DatabasePooler != "none" && s.DatabasePooler != "transaction" {
		p.add("CUTONCE_DATABASE_POOLER: auto, none or transaction")
	}
	if s.Retention != 0 && s.Retention < s.minRetention() {
		p.add("CUTONCE_RETENTION: at least %s, or nothing for ever: what is removed must be older than every clock and every key that a platform remembers",
			s.minRetention())
	}
	p.address("CUTONCE_LISTEN", s.Listen)
	if s.MetricsListen != Off {
		p.address("CUTONCE_METRICS_LISTEN", s.MetricsListen)
	}
	if host, _, _ := net.SplitHostPort(s.MetricsListen); s.Profile && !IsLoopback(host) {
		p.add("CUTONCE_METRICS_PROFILE: only with CUTONCE_METRICS_LISTEN on loopback, such as 127.0.0.1:8781")
	}
	return append(append(p, s.Clock.check()...), s.Limit.check()...)
}

// leastLimit is the least rate into which every call fits.
const leastLimit = 10

func (l Limit) check() Problems {
	var p Problems
	for name, n := range map[string]int{"ACTOR": l.Actor, "TENANT": l.Tenant, "ACTION": l.Action} {
		if n != 0 && n < leastLimit {
			p.add("CUTONCE_LIMIT_%s: %d or more a minute, or 0 for no limit", name, leastLimit)
		}
	}
	if l.Open < 0 {
		p.add("CUTONCE_LIMIT_OPEN: 1 or more, or 0 for no limit")
	}
	slices.Sort(p)
	return p
}

// MinRetention is the schema's own floor under CUTONCE_RETENTION.
const MinRetention = 30 * 24 * time.Hour

// minRetention lies above every clock, and above the keys that the platforms remember.
func (s Settings) minRetention() time.Duration {
	clocks := s.Clock.PreviewTTL + s.Clock.Approval + s.Clock.ApplyWindow + s.Clock.Lease + s.Clock.Settle
	return max(MinRetention, clocks, s.Ads.KeyRetention+s.Clock.ApplyWindow, s.Deploys.KeyRetention+s.Clock.ApplyWindow)
}

// Off turns a listener off.
const Off = "off"

// sendReserve is what a claim needs of its lease beside the send and its margin: two round trips to the database, and the
// drift check.
const sendReserve = 10 * time.Millisecond

func (c Clock) check() Problems {
	var p Problems
	for _, one := range []struct {
		name string
		d    time.Duration
	}{
		{"PREVIEW_TTL", c.PreviewTTL}, {"APPROVAL", c.Approval}, {"APPLY_WINDOW", c.ApplyWindow}, {"SEND", c.Send}, {"LEASE", c.Lease},
		{"SEND_MARGIN", c.SendMargin}, {"SETTLE", c.Settle}, {"SWEEP", c.Sweep}, {"PROBE_BASE", c.ProbeBase}, {"SEAL", c.Seal},
		{"EXPIRING", c.Expiring},
	} {
		if one.d <= 0 {
			p.add("CUTONCE_CLOCK_%s: longer than nothing", one.name)
		}
	}
	if c.Lease < c.Send+c.SendMargin+sendReserve {
		p.add("CUTONCE_CLOCK_LEASE: longer than CUTONCE_CLOCK_SEND and CUTONCE_CLOCK_SEND_MARGIN together, or nothing can ever be sent")
	}
	if c.ApplyWindow > 24*time.Hour {
		p.add("CUTONCE_CLOCK_APPLY_WINDOW: at most 24h")
	}
	if c.Sweep > 10*time.Second {
		p.add("CUTONCE_CLOCK_SWEEP: at most 10s")
	}
	if c.Seal > time.Minute {
		p.add("CUTONCE_CLOCK_SEAL: at most 1m")
	}
	if c.ApplyWait > 50*time.Second {
		p.add("CUTONCE_CLOCK_APPLY_WAIT: at most 50s, because clients give up after sixty")
	}
	return p
}

func (p *Problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p *Problems) need(name, value, why string) {
	if value == "" {
		p.add("%s: required: %s", name, why)
	}
}

// target asks for all that a platform needs, if anything of it is set.
func (p *Problems) target(name string, t Target) {
	if t.URL == "" && t.Token == "" && t.System == "" {
		return
	}
	p.need(name+"_URL", t.URL, "where is the platform?")
	p.need(name+"_TOKEN (or _FILE)", string(t.Token), "with which credential?")
	if t.ResolveBy != 1 && t.ResolveBy != 2 {
		p.add("%s_RESOLVE_BY: 1 or 2", name)
	}
	p.need(name+"_SYSTEM", t.System, "what is the platform's host and account called?")
}

func (p *Problems) address(name, value string) {
	if _, _, err := net.SplitHostPort(value); err != nil {
		p.add("%s: host:port, such as 127.0.0.1:8780", name)
	}
}

func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// trustworthy reports whether a browser and a client may send secrets to this origin.
func trustworthy(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && IsLoopback(u.Hostname())
}

// IsLoopback reports whether a host name or address is this machine's own.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
