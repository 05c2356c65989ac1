package notify_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/notify"
)

const good = `
smtp: {host: smtp.example.com, port: 587, from: cutonce <cutonce@example.com>, username: u, password_env: SMTP_PASSWORD}
receivers:
  - name: leads
    tenant: acme
    groups: [ads-approvers]
    kinds: [approval_wanted]
    locale: ja
    zone: Asia/Tokyo
    slack: {url_env: SLACK_URL}
  - name: ops
    tenant: acme
    operators: true
    webhook: {url: "https://hooks.example.com/x", secret_envs: [HOOK, HOOK_OLD]}
  - name: askers
    tenant: acme
    requester: true
    mail: {domain: example.com, people: {"boss@corp": boss@example.com}}
`

var environment = map[string]string{
	"SLACK_URL": "https://hooks.slack.example/services/hush", "SMTP_PASSWORD": "hush",
	"HOOK": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "HOOK_OLD": "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4", "SHORT": "whsec_aHVzaA==", "BARE": "hush",
	"PLAIN_URL": "http://hooks.example.com/hush",
}

func variable(name string) (string, error) {
	if value, ok := environment[name]; ok {
		return value, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}

func TestReadAFile(t *testing.T) {
	t.Parallel()
	c, err := notify.Read([]byte(good), variable)
	if err != nil {
		t.Fatal(err)
	}
	leads, ops, askers := c.Receivers[0], c.Receivers[1], c.Receivers[2]
	if leads.Slack == nil || leads.Slack.URL != environment["SLACK_URL"] || leads.Zone.String() != "Asia/Tokyo" || leads.Locale != "ja" {
		t.Errorf("got %+v", leads)
	}
	if diff := cmp.Diff([]notify.Kind{notify.ApprovalWanted}, leads.Kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]notify.Kind{notify.OutcomeUnknown, notify.Settled}, ops.Kinds); diff != "" {
		t.Error(diff)
	}
	if len(ops.Webhook.Secrets) != 2 || string(ops.Webhook.Secrets[0]) != "0123456789abcdef01234567" {
		t.Errorf("got %+v, want both secrets decoded", ops.Webhook)
	}
	if len(askers.Kinds) != 5 || c.SMTP.Password != "hush" || c.SMTP.Plain || c.SMTP.Implicit {
		t.Errorf("got %+v, %+v", askers, c.SMTP)
	}
}

// TestTheExampleIsRead, as it stands and with what it has commented out.
func TestTheExampleIsRead(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../examples/notify.yaml")
	if err != nil {
		t.Fatal(err)
	}
	everything := func(name string) (string, error) {
		switch {
		case strings.HasPrefix(name, "SLACK"):
			return "https://hooks.slack.example/services/x", nil
		case strings.HasPrefix(name, "HOOK"):
			return environment["HOOK"], nil
		}
		return "x", nil
	}
	c, err := notify.Read(raw, everything)
	if err != nil || len(c.Receivers) != 4 || c.SMTP == nil {
		t.Errorf("got %d receivers, %v, want 4 and a mail server", len(c.Receivers), err)
	}
	local := strings.NewReplacer("  # - name: local", "  - name: local", "  #   tenant", "    tenant", "  #   everything", "    everything", "  #   webhook", "    webhook")
	if c, err = notify.Read([]byte(local.Replace(string(raw))), everything); err != nil || len(c.Receivers) != 5 {
		t.Errorf("got %d receivers, %v, want the local one too", len(c.Receivers), err)
	}
}

// one is a file of one receiver.
func one(more string) string {
	return "receivers:\n  - {name: r, tenant: acme, " + more + "}\n"
}

func TestWhatIsWrongWithAFileIsSaid(t *testing.T) {
	t.Parallel()
	const hook = `webhook: {url: "https://h.example", secret_envs: [HOOK]}`
	for name, c := range map[string]struct{ file, want string }{
		"an unknown key":            {one(`groups: [g], urgent: true, ` + hook), "urgent"},
		"an unknown key at the top": {"receiver: []\n", "receiver"},
		"no YAML":                   {"receivers: [", "docs/notifications.md"},
		"nobody":                    {"receivers: []\n", "there are none"},
		"no sort":                   {one(hook), "for whom does it stand"},
		"two sorts":                 {one(`groups: [g], operators: true, ` + hook), "for whom does it stand"},
		"no way":                    {one(`groups: [g]`), "how is it reached"},
		"two ways":                  {one(`groups: [g], slack: {url_env: SLACK_URL}, ` + hook), "how is it reached"},
		"no tenant":                 {"receivers:\n  - {name: r, groups: [g], " + hook + "}\n", "tenant"},
		"a bad name":                {"receivers:\n  - {name: A b, tenant: acme, groups: [g], " + hook + "}\n", "name: lower-case"},
		"one name twice":            {"receivers:\n  - {name: r, tenant: acme, groups: [g], " + hook + "}\n  - {name: r, tenant: acme, groups: [g], " + hook + "}\n", "two of them"},
		"a kind of others":          {one(`groups: [g], kinds: [settled], ` + hook), `"settled"`},
		"no such kind":              {one(`everything: true, kinds: [deciding], ` + hook), `"deciding"`},
		"no such language":          {one(`groups: [g], locale: fr, ` + hook), "locale"},
		"no such zone":              {one(`groups: [g], zone: Mars/Base, ` + hook), "Mars/Base"},
		"plain http":                {one(`groups: [g], webhook: {url: "http://h.example", secret_envs: [HOOK]}`), "https"},
		"plain http by a variable":  {one(`groups: [g], slack: {url_env: PLAIN_URL}`), "https"},
		"a name in an address":      {one(`groups: [g], webhook: {url: "https://u:p@h.example", secret_envs: [HOOK]}`), "no address"},
		"no address":                {one(`groups: [g], webhook: {url: "nonsense", secret_envs: [HOOK]}`), "no address"},
		"no secret":                 {one(`groups: [g], webhook: {url: "https://h.example"}`), "which secret"},
		"a short secret":            {one(`groups: [g], webhook: {url: "https://h.example", secret_envs: [SHORT]}`), "24 bytes"},
		"no prefix":                 {one(`groups: [g], webhook: {url: "https://h.example", secret_envs: [BARE]}`), "whsec_"},
		"a variable that is unset":  {one(`groups: [g], slack: {url_env: NOWHERE}`), "NOWHERE is not set"},
		"a setting of the service":  {one(`groups: [g], slack: {url_env: CUTONCE_SECRET}`), "CUTONCE_SECRET"},
		"a Slack address written":   {one(`groups: [g], slack: {url: "https://hooks.slack.example/hush"}`), "url"},
		"Slack for a person":        {one(`requester: true, slack: {url_env: SLACK_URL}`), "a channel is not whoever asked"},
		"mail without a server":     {one(`groups: [g], mail: {to: [a@example.com]}`), "no smtp"},
		"mail to nobody":            {one(`groups: [g], mail: {}`), "to which addresses"},
		"mail to a name":            {one(`groups: [g], mail: {to: ["A <a@example.com>"]}`), "no bare address"},
		"mail to two lines":         {one(`groups: [g], mail: {to: ["a@example.com\r\nBcc: b@example.com"]}`), "no bare address"},
		"mail to whoever asked":     {one(`requester: true, mail: {to: [a@example.com]}`), "domain or people"},
		"smtp without TLS":          {"smtp: {host: smtp.example.com, port: 25, from: a@example.com, tls: none}\n" + one(`groups: [g], `+hook), "only for a server on this machine"},
		"smtp with another TLS":     {"smtp: {host: smtp.example.com, port: 25, from: a@example.com, tls: sometimes}\n" + one(`groups: [g], `+hook), "starttls, implicit"},
		"smtp from nobody":          {"smtp: {host: smtp.example.com, port: 25, from: nobody}\n" + one(`groups: [g], `+hook), "from"},
		"smtp nowhere":              {"smtp: {from: a@example.com}\n" + one(`groups: [g], `+hook), "host and port"},
		"smtp without password":     {"smtp: {host: h.example, port: 25, from: a@example.com, username: u}\n" + one(`groups: [g], `+hook), "password_env"},
	} {
		_, err := notify.Read([]byte(c.file), variable)
		var problems notify.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: a secret is in %v", name, err)
		}
	}
}

func TestEveryProblemIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := notify.Read([]byte("receivers:\n  - {name: r, locale: fr}\n"), variable)
	for _, want := range []string{"receiver r: tenant", "receiver r: locale", "for whom", "how is it reached"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

// TestWhereMailToAPersonGoes: an agent's token names the person, so the name alone must not lead the mail anywhere.
func TestWhereMailToAPersonGoes(t *testing.T) {
	t.Parallel()
	m := notify.Mail{Domain: "example.com", People: map[string]string{"auth0|7": "kim@example.org"}}
	for person, want := range map[string]string{
		"sato": "sato@example.com", "sato@example.com": "sato@example.com", "SATO@EXAMPLE.COM": "SATO@example.com", "auth0|7": "kim@example.org",
		"evil@example.org": "", "": "", "a b": "", "a\r\nBcc: x": "", "x@example.com.evil.example": "", "a@b@example.com": "", "-sendmail": "",
		"sato@": "", "@example.com": "", "佐藤": "", "a,b": "", "a..b": "",
	} {
		if got, ok := m.AddressOf(person); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", person, got, ok, want)
		}
	}
	if got, ok := (notify.Mail{}).AddressOf("sato"); ok {
		t.Errorf("got %q without a domain, want none", got)
	}
}
