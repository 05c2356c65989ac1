package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/config"
)

// dialFor bounds how long a target's host is dialled.
const dialFor = 5 * time.Second

// connectorChecks is one check for each configured platform, about its connector and its host.
func (d *Deployment) connectorChecks() []Check {
	checks := []Check{{"connectors", d.connectors}}
	for _, t := range []struct {
		name   string
		target config.Target
	}{{"ads", d.Settings.Ads}, {"deploys", d.Settings.Deploys}} {
		if t.target.URL != "" {
			checks = append(checks, Check{"target " + t.name, func(ctx context.Context, s *Seen) { reach(ctx, s, t.target.URL, nil) }})
		}
	}
	return checks
}

// connectors says what each declares of its target, and what follows from that for an unknown outcome.
func (d *Deployment) connectors(_ context.Context, see *Seen) {
	if d.ConnectorsErr != nil {
		see.fail("mend its settings", "%s", oneLine(d.ConnectorsErr))
		return
	}
	if err := registered(d.Connectors); err != nil {
		see.fail("mend the connectors", "%s", oneLine(err))
		return
	}
	for _, c := range d.Connectors {
		is := c.Describe()
		var actions []string
		for _, a := range is.Actions {
			actions = append(actions, a.Name)
		}
		name := strings.Join(actions, ", ") + " at " + is.System
		see.ok("%s: at most one effect by one send; %s", name, settles(is.Able))
		if is.Able.Sandbox {
			see.warn("unset its _SANDBOX in production", "%s is declared a sandbox: cutonce connector test may change it", name)
		}
		if !is.Able.Lookup && !is.Able.Replay {
			see.warn("see that operators are there", "%s: nothing settles an unknown outcome but an operator's word", name)
		}
	}
}

// settles is what a declaration gives, in the words of docs/guarantees.md.
func settles(a connector.Capabilities) string {
	var all []string
	if a.Lookup {
		all = append(all, fmt.Sprintf("an unknown outcome is settled by look-up, absence proved %s after the lease", a.SettleFor))
	}
	if a.Replay {
		all = append(all, fmt.Sprintf("a lost effect is found by the same key for %s", a.ReplayFor))
	}
	if len(all) == 0 {
		all = append(all, "an unknown outcome is settled by an operator")
	}
	if a.Precondition {
		all = append(all, "a change in between is refused by the target")
	} else {
		all = append(all, "a change in between is seen by a read just before the send, with a small window")
	}
	return strings.Join(all, "; ") + " (declared; cutonce connector test shows it)"
}

// reach dials a target's host, and says nothing to it beyond TLS.
func reach(ctx context.Context, see *Seen, address string, trust *tls.Config) {
	const fix = "check the URL, the network and the certificate"
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		see.fail(fix, "its URL is not readable")
		return
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	how := "TCP"
	if u.Scheme == "https" {
		dial, how = (&tls.Dialer{Config: trust}).DialContext, "TLS"
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		see.fail(fix, "%s does not answer by %s: %v", u.Host, how, err)
		return
	}
	_ = conn.Close()
	see.ok("%s answers by %s; its API and the credential were not tried, because that would be a call", u.Host, how)
}
