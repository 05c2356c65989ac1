// Package notify tells people that something waits for them, or has become of what they asked for: what is told, to whom, in which words.
//
// It promises that nobody is asked who cannot act (a group only while the change's ruling still misses somebody of it, operators only
// while an outcome is unknown and the service could not settle it by itself), that the change is read again just before anything is
// said, so that what is over is not told, and that a message decides nothing: it holds a link to a page where people sign in.
// A message may come twice, under the same ID; it may come late; and one that a receiver refused for hours is given up and listed.
//
// It does not promise an order, and it is no record: the audit chain is. How messages travel is post, how they are kept until then is
// outbox. Start at Service.Items (what an event gives rise to) and Service.Tell.
package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Kind is what is told.
type Kind string

// The kinds.
const (
	// ApprovalWanted: a change waits for people, and somebody of the group can still act.
	ApprovalWanted Kind = "approval_wanted"
	// Expiring: it still waits, and its time is nearly over.
	Expiring Kind = "expiring"
	// Decided: it was approved or rejected, or nobody decided in time.
	Decided Kind = "decided"
	// OutcomeUnknown: whether it happened is not known, and operators must say.
	OutcomeUnknown Kind = "outcome_unknown"
	// Settled: it is known what became of it.
	Settled Kind = "settled"
)

// Kinds lists all of them.
func Kinds() []Kind { return []Kind{ApprovalWanted, Expiring, Decided, OutcomeUnknown, Settled} }

// told is what the events of a change's chain give rise to. Events that are not in it are told to nobody.
var told = map[string]Kind{
	"approval_requested": ApprovalWanted,
	"approved":           Decided,
	"confirmed":          Decided,
	"rejected":           Decided,
	"expired":            Decided,
	"unknown":            OutcomeUnknown,
	"lease_lapsed":       OutcomeUnknown,
	"proposed":           OutcomeUnknown, // by one operator, and a second one is needed
	"applied":            Settled,
	"not_applied":        Settled,
	"resolved":           Settled,
	"contradicted":       Settled,
	string(Expiring):     Expiring, // no event: the clock's
}

// Item is one message to one receiver in the making. It holds no words and nothing of the change: those are read when it is told.
type Item struct {
	Tenant   string `json:"tenant"`
	Preview  string `json:"preview_id"`
	Seq      int64  `json:"seq"`
	Event    string `json:"event"`
	Receiver string `json:"receiver"`
	// At is when the event was, by the database's clock.
	At time.Time `json:"at"`
}

// Kind is what the item tells.
func (i Item) Kind() Kind { return told[i.Event] }

var idText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// ID names the message. It is made from what the message is about, so that it stays the same however often it is tried.
func (i Item) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q %q", i.Tenant, i.Preview, i.Seq, i.Event, i.Receiver))
	return "msg_" + idText.EncodeToString(sum[:16])
}

// Sender carries a message to one receiver. A nil error means that the receiver has taken it. An error that wraps ErrRefused means that
// trying again is of no use.
type Sender interface {
	Send(ctx context.Context, n Note) error
}

// ErrRefused is a receiver that wants no such message, now or ever.
var ErrRefused = errors.New("the receiver refuses this for good")

// BusyError is a receiver that asks for time.
type BusyError struct{ For time.Duration }

// Error is for logs.
func (e *BusyError) Error() string { return fmt.Sprintf("the receiver asks to come back in %s", e.For) }

// Changes reads changes; it is the workers' way, and checks no caller.
type Changes interface {
	Load(ctx context.Context, tenant string, id preview.ID, detail bool) (commit.Change, commit.Epochs, error)
}

// Deps are what a Service needs.
type Deps struct {
	Changes   Changes
	Texts     *catalog.Catalog
	Receivers []Receiver
	// Senders carry the messages, by the receivers' names.
	Senders map[string]Sender
	// PublicURL is the address of the console, without a slash at its end.
	PublicURL string
	Log       *slog.Logger
}

// Service says what is told.
type Service struct {
	Deps
	receivers map[string]Receiver
}

// NewService makes a Service.
func NewService(d Deps) *Service {
	s := &Service{Deps: d, receivers: map[string]Receiver{}}
	for _, r := range d.Receivers {
		s.receivers[r.Name] = r
	}
	return s
}

// Items are the messages that one event gives rise to, as far as the event alone can tell.
func (s *Service) Items(m preview.Moved) []Item {
	kind, ok := told[m.Kind]
	if !ok {
		return nil
	}
	var items []Item
	for _, r := range s.Receivers {
		if r.Tenant == m.Tenant && slices.Contains(r.Kinds, kind) && !idle(m, kind, r) {
			items = append(items, Item{Tenant: m.Tenant, Preview: m.ID.String(), Seq: m.Seq, Event: m.Kind, Receiver: r.Name, At: m.At.UTC()})
		}
	}
	return items
}

// idle spares the queue what would surely be dropped, and is most of what happens: outcomes that were never unknown are not for operators,
// and what expired without a question is for nobody.
func idle(m preview.Moved, kind Kind, r Receiver) bool {
	return kind == Settled && r.Operators && m.Before == "claimed" || m.Kind == "expired" && m.Before == "prepared"
}

// Told is what became of an item.
type Told struct {
	// Dropped says why nothing was sent, empty if something was.
	Dropped string
	// Wait asks to be called again after that time: it is too early to tell.
	Wait time.Duration
}

// Tell reads the change again, and sends what there still is to say. When an error is returned, the receiver may have got it all the
// same: it is told again under the same ID.
func (s *Service) Tell(ctx context.Context, i Item) (Told, error) {
	r, ok := s.receivers[i.Receiver]
	id, named := preview.ParseID(i.Preview)
	sender := s.Senders[i.Receiver]
	if !ok || !named || sender == nil || r.Tenant != i.Tenant {
		return Told{Dropped: "there is no such receiver any more"}, nil
	}
	c, _, err := s.Changes.Load(ctx, i.Tenant, id, true)
	switch {
	case errors.Is(err, fault.NotFound):
		return Told{Dropped: "the change is no longer on record"}, nil
	case err != nil:
		return Told{}, fmt.Errorf("reading the change: %w", err)
	}
	if t := standing(i, c, r); t.Dropped != "" || t.Wait > 0 {
		return t, nil
	}
	note := s.note(i, c, r)
	if r.Mail != nil && r.Requester {
		if note.To, ok = r.Mail.AddressOf(c.Preview.Requester.HumanName()); !ok {
			return Told{Dropped: "no address is known of whoever asked for it"}, nil
		}
	}
	return Told{}, sender.Send(ctx, note)
}

// Sample sends a message about no change to one receiver, to see whether it arrives.
func (s *Service) Sample(ctx context.Context, name string, at time.Time) error {
	r, ok := s.receivers[name]
	if !ok || s.Senders[name] == nil {
		return fmt.Errorf("there is no receiver %q; there are %s", name, strings.Join(s.names(), ", "))
	}
	return s.Senders[name].Send(ctx, s.sample(r, at))
}

func (s *Service) names() []string {
	var names []string
	for _, r := range s.Receivers {
		names = append(names, r.Name)
	}
	return names
}
