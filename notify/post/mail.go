package post

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/cutonce/cutonce/notify"
)

// mailer hands mail to one server, over a connection of its own each time.
type mailer struct {
	to     notify.Mail
	server notify.SMTP
	deps   Deps
}

// Send hands the message over.
func (m mailer) Send(ctx context.Context, n notify.Note) error {
	ctx, cancel := context.WithTimeout(ctx, m.deps.For)
	defer cancel()
	message, err := m.message(n)
	if err != nil {
		return err
	}
	client, err := mail.NewClient(m.server.Host, m.options()...)
	if err != nil {
		return errors.New("the mail server's settings are not usable")
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil && !message.IsDelivered() { // taking leave may fail after that
		return refusedBy(err)
	}
	return nil
}

func (m mailer) options() []mail.Option {
	options := []mail.Option{mail.WithPort(m.server.Port), mail.WithTimeout(m.deps.For), mail.WithoutNoop()}
	switch {
	case m.server.Plain:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	case m.server.Implicit:
		options = append(options, mail.WithSSL())
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if m.deps.TLS != nil {
		with := m.deps.TLS.Clone()
		with.ServerName = m.server.Host
		options = append(options, mail.WithTLSConfig(with))
	}
	if m.server.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(m.server.Username), mail.WithPassword(m.server.Password))
	}
	return options
}

// message writes the mail: plain text, with an ID that stays the same over all tries, and marked as sent by no person, so that no
// machine answers it.
func (m mailer) message(n notify.Note) (*mail.Msg, error) {
	message := mail.NewMsg(mail.WithNoDefaultUserAgent())
	to := m.to.To
	if n.To != "" {
		to = []string{n.To}
	}
	if err := errors.Join(message.From(m.server.From), message.To(to...)); err != nil || len(to) == 0 {
		return nil, fmt.Errorf("%w: an address cannot be written to", notify.ErrRefused)
	}
	host := m.host()
	message.Subject("[cutonce] " + n.Subject)
	message.SetMessageIDWithValue(n.ID + "@" + host)
	message.SetDateWithValue(m.deps.Now())
	message.SetGenHeader("References", "<"+n.Thread+"@"+host+">")
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetGenHeader("X-Auto-Response-Suppress", "All")
	message.SetBodyString(mail.TypeTextPlain, bodyOf(n))
	return message, nil
}

func (m mailer) host() string {
	if u, err := url.Parse(m.deps.PublicURL); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "cutonce.invalid"
}

func bodyOf(n notify.Note) string {
	var b strings.Builder
	b.WriteString(n.Title + "\n\n")
	for _, l := range n.Lines {
		b.WriteString(l.Label + ": " + l.Text + "\n")
	}
	b.WriteString("\n" + n.Act + ":\n" + n.Link + "\n\n-- \n" + n.Foot + "\n")
	return b.String()
}

// refusedBy judges what the server said, by its code alone.
func refusedBy(err error) error {
	var said *mail.SendError
	switch {
	case errors.As(err, &said) && said.ErrorCode() >= 500:
		return fmt.Errorf("%w: the mail server answered %d", notify.ErrRefused, said.ErrorCode())
	case errors.As(err, &said) && said.ErrorCode() > 0:
		return fmt.Errorf("the mail server answered %d", said.ErrorCode())
	}
	return unreached(err)
}
