package post_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/notify/post"
)

// smtpServer is a mail server: it speaks enough of SMTP to be handed mail, with STARTTLS, and keeps what it was given.
type smtpServer struct {
	t        *testing.T
	listener net.Listener
	tls      *tls.Config
	roots    *x509.CertPool
	// refuse is said instead of 250 to RCPT.
	refuse string
	// silent never says a word.
	silent bool
	got    chan letter
}

type letter struct {
	encrypted bool
	from      string
	to        []string
	data      string
}

func newSMTP(t *testing.T, options ...func(*smtpServer)) *smtpServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &smtpServer{t: t, listener: listener, got: make(chan letter, 10)}
	for _, o := range options {
		o(s)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func withTLS(s *smtpServer) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(certificate)
	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func (s *smtpServer) serve(conn net.Conn) {
	defer func() { conn.Close() }()
	if s.silent {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\r\n", args...) }
	in := bufio.NewReader(conn)
	var l letter
	say("220 test ESMTP")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		switch verb, rest, _ := strings.Cut(line, " "); strings.ToUpper(verb) {
		case "EHLO", "HELO":
			if s.tls != nil && !l.encrypted {
				say("250-test")
				say("250 STARTTLS")
				continue
			}
			say("250 test")
		case "STARTTLS":
			say("220 go on")
			secure := tls.Server(conn, s.tls)
			if secure.Handshake() != nil {
				return
			}
			conn, in, l.encrypted = secure, bufio.NewReader(secure), true
		case "MAIL":
			l.from = rest
			say("250 ok")
		case "RCPT":
			if s.refuse != "" {
				say("%s", s.refuse)
				continue
			}
			l.to = append(l.to, rest)
			say("250 ok")
		case "DATA":
			say("354 go on")
			l.data = readData(in)
			say("250 taken")
			s.got <- l
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func readData(in *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return b.String()
		}
		b.WriteString(strings.TrimPrefix(line, "."))
	}
}

func (s *smtpServer) sender(plain bool, options ...func(*notify.Mail)) notify.Sender {
	address := s.listener.Addr().(*net.TCPAddr)
	to := notify.Mail{To: []string{"leads@example.com", "second@example.com"}}
	for _, o := range options {
		o(&to)
	}
	d := deps()
	d.For = 3 * time.Second
	if s.roots != nil {
		d.TLS = &tls.Config{RootCAs: s.roots}
	}
	return post.Senders(notify.Config{
		SMTP:      &notify.SMTP{Host: "127.0.0.1", Port: address.Port, From: "cutonce <cutonce@example.com>", Plain: plain},
		Receivers: []notify.Receiver{{Name: "r", Mail: &to}},
	}, d)["r"]
}

func TestMailIsHandedOverAfterSTARTTLS(t *testing.T) {
	t.Parallel()
	s := newSMTP(t, withTLS)
	if err := s.sender(false).Send(t.Context(), note()); err != nil {
		t.Fatal(err)
	}
	l := <-s.got
	if !l.encrypted || l.from != "FROM:<cutonce@example.com>" || len(l.to) != 2 {
		t.Errorf("got %+v, want it encrypted, from us to two", l)
	}
	m, err := mail.ReadMessage(strings.NewReader(l.data))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Subject": "[cutonce] Approval wanted: Spring", "Message-Id": "<msg_1@cutonce.example>", "References": "<pv_1@cutonce.example>",
		"Auto-Submitted": "auto-generated", "Date": "Tue, 01 Dec 2026 03:04:05 +0000", "User-Agent": "",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	kind, _, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "text/plain" {
		t.Errorf("got %s, %v, want plain text", kind, err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Change: 10,000 JPY → 16,000 JPY", "https://cutonce.example/changes/pv_1/review", "This message decides nothing."} {
		if !strings.Contains(string(body), want) {
			t.Errorf("got %s, want it to say %q", body, want)
		}
	}
}

func TestAServerWithoutTLSGetsNoMail(t *testing.T) {
	t.Parallel()
	s := newSMTP(t)
	if err := s.sender(false).Send(t.Context(), note()); err == nil {
		t.Error("got nil, want mail without TLS refused")
	}
	if len(s.got) != 0 {
		t.Error("mail was handed over without TLS")
	}
	if err := s.sender(true).Send(t.Context(), note()); err != nil {
		t.Errorf("got %v, want it handed over where that is allowed", err)
	}
}

func TestACertificateOfSomebodyElseGetsNoMail(t *testing.T) {
	t.Parallel()
	s := newSMTP(t, withTLS)
	s.roots = x509.NewCertPool()
	if err := s.sender(false).Send(t.Context(), note()); err == nil || len(s.got) != 0 {
		t.Errorf("got %v and %d letters, want none", err, len(s.got))
	}
}

// TestNothingOfAMessageBecomesAHeader: whatever a note's texts hold, the letter has the headers that it should have, and its body.
func TestNothingOfAMessageBecomesAHeader(t *testing.T) {
	t.Parallel()
	s := newSMTP(t)
	n := note()
	n.Subject = "x\r\nBcc: evil@example.com\r\n\r\nbody"
	n.ID, n.Thread = "msg\r\nX-One: 1", "pv\r\nX-Two: 2"
	n.Title = ".\r\nQUIT\r\n"
	if err := s.sender(true).Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	l := <-s.got
	m, err := mail.ReadMessage(strings.NewReader(l.data))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Bcc", "X-One", "X-Two"} {
		if got := m.Header.Get(name); got != "" {
			t.Errorf("got the header %s: %s", name, got)
		}
	}
	if len(l.to) != 2 {
		t.Errorf("got %v, want two recipients", l.to)
	}
}

func TestAMailServersAnswersAreJudgedByTheirCode(t *testing.T) {
	t.Parallel()
	for refuse, want := range map[string]bool{"550 no such user, ask postmaster@example.com": true, "451 later": false} {
		s := newSMTP(t, func(s *smtpServer) { s.refuse = refuse })
		err := s.sender(true).Send(t.Context(), note())
		if err == nil || errors.Is(err, notify.ErrRefused) != want || strings.Contains(err.Error(), "postmaster") {
			t.Errorf("%s: got %v, want refused for good %v, without the server's words", refuse, err, want)
		}
	}
}

func TestAMailServerThatSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newSMTP(t, func(s *smtpServer) { s.silent = true })
	begin := time.Now()
	if err := s.sender(true).Send(t.Context(), note()); err == nil {
		t.Error("got nil, want it given up")
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v, want about three seconds", took)
	}
}

func TestMailForWhoeverAskedGoesToThem(t *testing.T) {
	t.Parallel()
	s := newSMTP(t)
	n := note()
	n.To = "sato@example.com"
	if err := s.sender(true, func(m *notify.Mail) { m.To = nil }).Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if l := <-s.got; len(l.to) != 1 || l.to[0] != "TO:<sato@example.com>" {
		t.Errorf("got %v, want the one who asked", l.to)
	}
	n.To = ""
	if err := s.sender(true, func(m *notify.Mail) { m.To = nil }).Send(t.Context(), n); !errors.Is(err, notify.ErrRefused) {
		t.Errorf("got %v, want mail to nobody refused", err)
	}
}
