package notify

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cutonce/cutonce/internal/catalog"
)

// Config is what the file says, with the secrets that it names.
type Config struct {
	SMTP      *SMTP
	Receivers []Receiver
}

// Problems is all that is wrong with a file.
type Problems []string

// Error lists them, one a line.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// The file as it is written. Unknown keys are refused. Secrets are named by environment variables, never written.
type (
	file struct {
		SMTP      *smtpIn      `yaml:"smtp"`
		Receivers []receiverIn `yaml:"receivers"`
	}
	smtpIn struct {
		Host        string `yaml:"host"`
		Port        int    `yaml:"port"`
		From        string `yaml:"from"`
		TLS         string `yaml:"tls"`
		Username    string `yaml:"username"`
		PasswordEnv string `yaml:"password_env"`
	}
	receiverIn struct {
		Name       string     `yaml:"name"`
		Tenant     string     `yaml:"tenant"`
		Groups     []string   `yaml:"groups"`
		Operators  bool       `yaml:"operators"`
		Requester  bool       `yaml:"requester"`
		Everything bool       `yaml:"everything"`
		Kinds      []Kind     `yaml:"kinds"`
		Locale     string     `yaml:"locale"`
		Zone       string     `yaml:"zone"`
		Webhook    *webhookIn `yaml:"webhook"`
		Slack      *slackIn   `yaml:"slack"`
		Mail       *mailIn    `yaml:"mail"`
	}
	webhookIn struct {
		URL        string   `yaml:"url"`
		URLEnv     string   `yaml:"url_env"`
		SecretEnvs []string `yaml:"secret_envs"`
	}
	slackIn struct {
		URLEnv string `yaml:"url_env"`
	}
	mailIn struct {
		To     []string          `yaml:"to"`
		Domain string            `yaml:"domain"`
		People map[string]string `yaml:"people"`
		Test   string            `yaml:"test_to"`
	}
)

// Read reads a file. secret gives the value of an environment variable that it names. The error is Problems: all of them at once.
func Read(raw []byte, secret func(name string) (string, error)) (Config, error) {
	var in file
	if err := yaml.UnmarshalWithOptions(raw, &in, yaml.Strict()); err != nil {
		return Config{}, Problems{"it is not as docs/notifications.md says: " + yaml.FormatError(err, false, false)}
	}
	r := reader{secret: secret, names: map[string]bool{}}
	c := Config{SMTP: r.smtp(in.SMTP)}
	for n, one := range in.Receivers {
		r.at = fmt.Sprintf("receivers[%d]", n)
		if one.Name != "" {
			r.at = "receiver " + one.Name
		}
		c.Receivers = append(c.Receivers, r.receiver(one, in.SMTP != nil))
	}
	if len(in.Receivers) == 0 {
		r.add("receivers: there are none, so that nobody would be told")
	}
	if len(r.problems) > 0 {
		return Config{}, r.problems
	}
	return c, nil
}

// reader gathers what is wrong.
type reader struct {
	secret   func(string) (string, error)
	names    map[string]bool
	at       string
	problems Problems
}

func (r *reader) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.at != "" {
		text = r.at + ": " + text
	}
	r.problems = append(r.problems, text)
}

// named reads a secret by the name of its variable.
func (r *reader) named(key, name string) string {
	switch {
	case name == "":
		r.add("%s: which environment variable holds it?", key)
		return ""
	case strings.HasPrefix(name, "CUTONCE_"):
		r.add("%s: %s: names that begin with CUTONCE_ are the service's own settings; take another one", key, name)
		return ""
	}
	value, err := r.secret(name)
	if err != nil {
		r.add("%s: %v", key, err)
	}
	return value
}

// receiverName is also the end of a queue's name.
var receiverName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (r *reader) receiver(in receiverIn, smtp bool) Receiver {
	out := Receiver{
		Name: in.Name, Tenant: in.Tenant, Groups: in.Groups, Operators: in.Operators, Requester: in.Requester, Everything: in.Everything,
		Locale: in.Locale,
	}
	switch {
	case !receiverName.MatchString(in.Name) || len(in.Name) > 40:
		r.add("name: lower-case letters, digits and single hyphens, at most 40")
	case r.names[in.Name]:
		r.add("name: there are two of them")
	}
	r.names[in.Name] = true
	if in.Tenant == "" {
		r.add("tenant: whose changes is it told of?")
	}
	if in.Locale != "" && !slices.Contains(catalog.Languages, in.Locale) {
		r.add("locale: %s", strings.Join(catalog.Languages, " or "))
	}
	var err error
	if out.Zone, err = time.LoadLocation(in.Zone); err != nil {
		r.add("zone: no time zone is called %q", in.Zone)
	}
	out.Kinds = r.kinds(in)
	r.way(in, &out, smtp)
	return out
}

// kindsFor is what each sort of receiver can be told of.
func kindsFor(in receiverIn) (kinds []Kind, sorts int) {
	for _, one := range []struct {
		is    bool
		kinds []Kind
	}{
		{len(in.Groups) > 0, []Kind{ApprovalWanted, Expiring, Decided}},
		{in.Operators, []Kind{OutcomeUnknown, Settled}},
		{in.Requester, []Kind{ApprovalWanted, Expiring, Decided, OutcomeUnknown, Settled}},
		{in.Everything, Kinds()},
	} {
		if one.is {
			kinds = one.kinds
			sorts++
		}
	}
	return kinds, sorts
}

func (r *reader) kinds(in receiverIn) []Kind {
	able, sorts := kindsFor(in)
	if sorts != 1 {
		r.add("for whom does it stand? One of groups, operators, requester and everything")
		return nil
	}
	if len(in.Kinds) == 0 {
		return able
	}
	for _, k := range in.Kinds {
		if !slices.Contains(able, k) {
			r.add("kinds: %q is nothing that it could be told; there are %v", k, able)
		}
	}
	return in.Kinds
}

// way reads how a receiver is reached.
func (r *reader) way(in receiverIn, out *Receiver, smtp bool) {
	ways := 0
	if in.Webhook != nil {
		ways++
		out.Webhook = r.webhook(*in.Webhook)
	}
	if in.Slack != nil {
		ways++
		out.Slack = &Slack{URL: r.address("slack: url_env", r.named("slack: url_env", in.Slack.URLEnv))}
		if in.Requester {
			r.add("slack: a channel is not whoever asked: use groups, operators or everything")
		}
	}
	if in.Mail != nil {
		ways++
		if out.Mail = r.mail(*in.Mail, in.Requester); !smtp {
			r.add("mail: there is no smtp in the file")
		}
	}
	if ways != 1 {
		r.add("how is it reached? One of webhook, slack and mail")
	}
}

// leastSecret is the length that Standard Webhooks ask for.
const leastSecret = 24

func (r *reader) webhook(in webhookIn) *Webhook {
	out := Webhook{URL: in.URL}
	switch {
	case (in.URL == "") == (in.URLEnv == ""):
		r.add("webhook: one of url and url_env")
		return nil
	case in.URLEnv != "":
		out.URL = r.named("webhook: url_env", in.URLEnv)
	}
	out.URL = r.address("webhook: url", out.URL)
	if len(in.SecretEnvs) == 0 {
		r.add("webhook: secret_envs: with which secret is it signed?")
	}
	for _, name := range in.SecretEnvs {
		text := r.named("webhook: secret_envs", name)
		encoded, prefixed := strings.CutPrefix(text, "whsec_")
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if text != "" && (!prefixed || err != nil || len(secret) < leastSecret) {
			r.add("webhook: secret_envs: %s: whsec_ and the base64 of at least %d bytes (printf 'whsec_%%s' \"$(openssl rand -base64 32)\")", name, leastSecret)
		}
		out.Secrets = append(out.Secrets, secret)
	}
	return &out
}

// address checks where something is sent: over TLS, except on this machine.
func (r *reader) address(key, text string) string {
	if text == "" {
		return "" // said already
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		r.add("%s: no address such as https://host/path", key)
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())):
		r.add("%s: https, or http on this machine", key)
	}
	return text
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r *reader) mail(in mailIn, requester bool) *Mail {
	out := Mail{To: in.To, Domain: in.Domain, People: in.People, Test: in.Test}
	switch {
	case requester && (len(in.To) > 0 || in.Domain == "" && len(in.People) == 0):
		r.add("mail: for whoever asked, domain or people say their address, and there is no to")
	case !requester && (len(in.To) == 0 || in.Domain != "" || len(in.People) > 0):
		r.add("mail: to: to which addresses? (domain and people are for requester)")
	}
	all := slices.Clone(in.To)
	for _, address := range in.People {
		all = append(all, address)
	}
	if in.Test != "" {
		all = append(all, in.Test)
	}
	for _, address := range all {
		if parsed, err := mail.ParseAddress(address); err != nil || parsed.Address != address {
			r.add("mail: %q is no bare address", address)
		}
	}
	return &out
}

func (r *reader) smtp(in *smtpIn) *SMTP {
	if in == nil {
		return nil
	}
	out := SMTP{Host: in.Host, Port: in.Port, From: in.From, Username: in.Username}
	if in.Host == "" || in.Port < 1 || in.Port > 65535 {
		r.add("smtp: host and port: where is the server?")
	}
	if _, err := mail.ParseAddress(in.From); err != nil {
		r.add("smtp: from: an address, such as cutonce <cutonce@example.com>")
	}
	switch in.TLS {
	case "", "starttls":
	case "implicit":
		out.Implicit = true
	case "none":
		if out.Plain = loopback(in.Host); !out.Plain {
			r.add("smtp: tls: none only for a server on this machine")
		}
	default:
		r.add("smtp: tls: starttls, implicit, or none on this machine")
	}
	if in.Username != "" || in.PasswordEnv != "" {
		out.Password = r.named("smtp: password_env", in.PasswordEnv)
	}
	return &out
}
