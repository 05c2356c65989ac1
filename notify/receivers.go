package notify

import (
	"cmp"
	"net/mail"
	"regexp"
	"strings"
	"time"

	"github.com/cutonce/cutonce/preview"
)

// Receiver is one place that messages go to, and what it is told. It belongs to one tenant. Exactly one of Groups, Operators, Requester
// and Everything says for whom it stands, and exactly one of Webhook, Slack and Mail how it is reached.
type Receiver struct {
	Name   string
	Tenant string
	// Groups are those of the people who read it: it is told of what one of them can still approve.
	Groups []string
	// Operators read it: it is told of outcomes that people must settle.
	Operators bool
	// Requester: it reaches whoever asked for a change, or for whom it was asked.
	Requester bool
	// Everything is for machines that keep or pass on what they are told.
	Everything bool
	Kinds      []Kind
	Locale     string
	Zone       *time.Location
	Webhook    *Webhook
	Slack      *Slack
	Mail       *Mail
}

// Webhook is an address for signed messages.
type Webhook struct {
	URL string
	// Secrets sign each message, every one of them: while secrets are exchanged there are two.
	Secrets [][]byte
}

// Slack is an incoming webhook. Its address is its secret.
type Slack struct{ URL string }

// Mail is where mail goes: to fixed addresses, or to whoever asked for a change.
type Mail struct {
	To []string
	// Domain is where people's own mailboxes are, People are those whose address is not their name there.
	Domain string
	People map[string]string
	// Test is where a test message goes, where there are no fixed addresses.
	Test string
}

// SMTP is the server that mail is handed to.
type SMTP struct {
	Host string
	Port int
	From string
	// Implicit is TLS from the first byte on; otherwise STARTTLS is required. Plain is neither, for a server on this machine.
	Implicit, Plain    bool
	Username, Password string
}

// mailbox are the names that become an address at the domain. Everything else needs an entry of its own.
var mailbox = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// AddressOf is the address of a person, by the name that their identity provider gives them. A name that is an address already counts
// only at the domain, so that no agent can have mail sent to where it likes.
func (m Mail) AddressOf(person string) (string, bool) {
	if address, ok := m.People[person]; ok {
		return address, true
	}
	local, domain, whole := strings.Cut(person, "@")
	if m.Domain == "" || !mailbox.MatchString(local) || whole && !strings.EqualFold(domain, m.Domain) {
		return "", false
	}
	address := local + "@" + m.Domain
	if parsed, err := mail.ParseAddress(address); err != nil || parsed.Address != address {
		return "", false
	}
	return address, true
}

func (r Receiver) zone() *time.Location {
	if r.Zone == nil {
		return time.UTC
	}
	return r.Zone
}

// localeFor is the receiver's language, or that of whoever asked where it is they who are told.
func (r Receiver) localeFor(p preview.Preview) string {
	if r.Requester {
		return cmp.Or(r.Locale, p.Requester.Locale)
	}
	return r.Locale
}
