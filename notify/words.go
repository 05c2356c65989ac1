package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/preview"
)

// Note is a message in the words of its receiver. Every text in it is plain and on one line: what came from outside has its hidden
// characters made visible, so that no name can begin a line, a header or a link.
type Note struct {
	// ID stays the same however often the message is tried.
	ID   string
	Kind Kind
	// At is when what it tells of happened.
	At time.Time
	// To is the address of whoever asked for the change, where that is whom it goes to.
	To string
	// Thread is the same for all messages about one change.
	Thread  string
	Subject string
	Title   string
	Lines   []Line
	// Link is the one way to act, and Act what it says.
	Link, Act string
	Foot      string
	// Payload is the message for machines: a JSON object (docs/notifications.md).
	Payload []byte
}

// Line is one thing that is told, under its name.
type Line struct{ Label, Text string }

// longest bounds one line, in characters.
const longest = 300

// plain makes a text safe to be set anywhere as it is.
func plain(text string) string {
	shown := []rune(visible.Text(text))
	if len(shown) > longest {
		shown = append(shown[:longest-1], '…')
	}
	return string(shown)
}

// note writes an item.
func (s *Service) note(i Item, c commit.Change, r Receiver) Note {
	texts := s.Texts.In(r.localeFor(c.Preview))
	w := answer.Writer{Texts: texts}
	at := func(t time.Time) string { return t.In(r.zone()).Format("2006-01-02 15:04 MST") }
	title := plain(texts.T(titleKey(i, c), nil))
	change := w.Change(c)
	n := Note{
		ID: i.ID(), Kind: i.Kind(), At: i.At, Thread: i.Preview, Title: title, Lines: lines(w, i, c, change, at),
		Subject: plain(texts.T("notify.subject", map[string]any{"title": title, "target": c.Preview.Plan.Target.Shown()})),
		Link:    s.link(i, c), Act: texts.T("notify.act."+string(i.Kind()), nil), Foot: texts.T("notify.foot", nil),
	}
	n.Payload = payload(n, dataOf(w, i, c, change, n, texts.Lang))
	return n
}

// titleKey is the message's headline: what happened, and where it matters how.
func titleKey(i Item, c commit.Change) string {
	key := "notify.title." + string(i.Kind())
	switch i.Kind() {
	case Decided:
		if i.Event == "expired" && !c.Preview.ApprovedAt.IsZero() {
			return key + ".lapsed" // people agreed, and nobody applied it in time
		}
		return key + "." + i.Event
	case OutcomeUnknown:
		if i.Event == "proposed" {
			return key + ".second"
		}
	case Settled:
		if contradicted(c) {
			return key + ".contradicted"
		}
		return key + "." + string(c.Status)
	}
	return key
}

// link leads to where something can be done, or seen.
func (s *Service) link(i Item, c commit.Change) string {
	path := "/changes/" + i.Preview
	if (i.Kind() == ApprovalWanted || i.Kind() == Expiring) && c.Status == commit.StatusPending {
		path += "/review"
	}
	return s.PublicURL + path
}

// lines are what is told of the change, in the order in which people ask.
func lines(w answer.Writer, i Item, c commit.Change, change answer.Change, at func(time.Time) string) []Line {
	var out []Line
	add := func(key, text string) {
		if text != "" {
			out = append(out, Line{Label: w.Texts.T("notify.label."+key, nil), Text: plain(text)})
		}
	}
	p := c.Preview
	add("change", change.Summary)
	add("target", fmt.Sprintf("%s (%s, %s)", p.Plan.Target.Shown(), p.Plan.Target.System, p.Plan.Target.ID))
	for _, row := range change.Changes {
		out = append(out, Line{Label: plain(row.Label), Text: plain(shown(w, row.Before) + " → " + shown(w, row.After))})
	}
	for _, warning := range change.Warnings {
		add("warning", warning.Message)
	}
	add("asked_by", askedBy(w.Texts, p))
	switch i.Kind() {
	case ApprovalWanted, Expiring:
		add("missing", w.Groups(missing(p)))
		add("until", at(p.Deadline))
	case Decided:
		decidedLines(add, i, p, at)
	case OutcomeUnknown:
		add("claimed", at(claimedAt(c)))
		add("outcome", w.Texts.T("notify.unknown", nil))
	case Settled:
		add("outcome", w.Texts.T("notify.settled."+string(c.Status), nil))
		settledLines(add, c)
	}
	return out
}

func shown(w answer.Writer, v *answer.Value) string {
	if v == nil {
		return w.Texts.T("figure.unknown", nil)
	}
	return v.Shown
}

func askedBy(texts *catalog.Texts, p preview.Preview) string {
	args := map[string]any{"name": visible.Text(p.Requester.Subject), "person": visible.Text(p.Requester.HumanName())}
	if p.Requester.HumanName() == "" || p.Requester.HumanName() == p.Requester.Subject {
		return args["name"].(string)
	}
	return texts.T("notify.asked_for", args)
}

func decidedLines(add func(key, text string), i Item, p preview.Preview, at func(time.Time) string) {
	switch i.Event {
	case "rejected":
		add("by", p.EndedBy)
		add("reason", p.EndReason)
	case "approved":
		add("by", strings.Join(approvers(p), ", "))
		if p.State == preview.Approved {
			add("apply_until", at(p.Deadline))
		}
	case "confirmed":
		if p.Confirmed != nil {
			add("by", p.Confirmed.Name)
		}
	}
}

func approvers(p preview.Preview) []string {
	var names []string
	for _, v := range p.Votes {
		if v.Round == p.Round && v.Approve && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

func claimedAt(c commit.Change) time.Time {
	if len(c.Executions) == 0 {
		return c.Now
	}
	return c.Executions[0].StartedAt
}

func settledLines(add func(key, text string), c commit.Change) {
	if len(c.Executions) > 0 {
		add("by", c.Executions[0].ResolvedBy)
		add("reason", c.Executions[0].ResolvedWhy)
	}
}

// data is what machines are told. Change has the shape that the JSON API answers with.
type data struct {
	PreviewID   string            `json:"preview_id,omitempty"`
	Tenant      string            `json:"tenant"`
	Event       string            `json:"event"`
	Status      string            `json:"status,omitempty"`
	Missing     []answer.Seats    `json:"missing,omitempty"`
	RequestedBy *answer.Requester `json:"requested_by,omitempty"`
	Digest      string            `json:"digest,omitempty"`
	Change      *answer.Change    `json:"change,omitempty"`
	URL         string            `json:"url"`
	Locale      string            `json:"locale"`
	Message     string            `json:"message"`
}

func dataOf(w answer.Writer, i Item, c commit.Change, change answer.Change, n Note, lang string) data {
	asked := w.Asked(c)
	if change.Approval != nil { // whoever asks must not put words into messages: they stand on the page, marked as theirs
		bare := *change.Approval
		bare.Justification, change.Approval = "", &bare
	}
	d := data{
		PreviewID: i.Preview, Tenant: i.Tenant, Event: i.Event, Status: string(c.Status), RequestedBy: asked.RequestedBy, Digest: asked.Digest,
		Change: &change, URL: n.Link, Locale: lang, Message: n.Subject,
	}
	if c.Status == commit.StatusPending {
		d.Missing = answer.SeatsOf(missing(c.Preview))
	}
	return d
}

// payload is the body of a webhook: a type, the time of what happened, and the data.
func payload(n Note, d data) []byte {
	raw, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      data      `json:"data"`
	}{"change." + string(n.Kind), n.At.UTC(), d})
	if err != nil {
		// The values are texts and numbers of our own; what cannot be written is still told by its link.
		raw, _ = json.Marshal(map[string]any{"type": "change." + string(n.Kind), "timestamp": n.At.UTC(), "data": map[string]string{"url": n.Link}})
	}
	return raw
}

// sample is a message about no change.
func (s *Service) sample(r Receiver, at time.Time) Note {
	texts := s.Texts.In(r.Locale)
	title := texts.T("notify.title.test", nil)
	n := Note{
		ID: Item{Tenant: r.Tenant, Preview: "test", Seq: at.UnixNano(), Event: "test", Receiver: r.Name}.ID(), Kind: "test", At: at, Thread: "test",
		Title: title, Subject: texts.T("notify.subject", map[string]any{"title": title, "target": r.Name}), Link: s.PublicURL,
		Act: texts.T("notify.act.test", nil), Foot: texts.T("notify.foot", nil),
		Lines: []Line{{Label: texts.T("notify.label.receiver", nil), Text: plain(r.Name)}},
	}
	if r.Mail != nil && r.Requester {
		n.To = r.Mail.Test
	}
	n.Payload = payload(n, data{Tenant: r.Tenant, Event: "test", URL: n.Link, Locale: texts.Lang, Message: n.Subject})
	return n
}
