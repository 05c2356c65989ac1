package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

type historyPage struct {
	frame
	Rows []historyRow
	More string
	search
	Statuses, Actions []statusOption
	// CSV and NDJSON are the addresses of the export of the same search, empty for whoever may not export.
	CSV, NDJSON string
	Problem     *problem
}

type statusOption struct {
	Value, Label string
	Chosen       bool
}

type historyRow struct {
	Change answer.Change
	Asks   string
	// Contradicted marks an incident.
	Contradicted bool
}

// search is what the address of a history asks for, as it was typed.
type search struct {
	Status, Target, Action, Person, From, To string
	Contradicted                             bool
}

func searchOf(q url.Values) search {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return search{
		Status: text("status"), Target: text("target"), Action: text("action"), Person: text("person"), From: text("from"), To: text("to"),
		Contradicted: q.Get("contradicted") != "",
	}
}

// Filtered reports whether anything is asked for.
func (s search) Filtered() bool { return s != search{} }

// query is the search as an address says it.
func (s search) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"status": s.Status, "target": s.Target, "action": s.Action, "person": s.Person, "from": s.From, "to": s.To,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if s.Contradicted {
		q.Set("contradicted", "1")
	}
	return q
}

// mostTyped bounds a search's texts, in bytes.
const mostTyped = 200

// filter reads a search. Days are the reader's: from the beginning of the first to the end of the last. Fault: invalid_input.
func (v *visit) filter(s search) (commit.Filter, error) {
	bad := fault.New(fault.InvalidInput, nil)
	f := commit.Filter{
		Status: commit.Status(s.Status), TargetID: s.Target, Action: s.Action, Person: s.Person, Contradicted: s.Contradicted,
		Cursor: v.r.URL.Query().Get("cursor"), Limit: pageOfChanges,
	}
	if f.Status != "" && !slices.Contains(commit.Statuses(), f.Status) {
		bad.WithField("/status", "web.field.status", nil)
	}
	for name, text := range map[string]string{"target": s.Target, "action": s.Action, "person": s.Person} {
		if len(text) > mostTyped {
			bad.WithField("/"+name, "web.field.too_long", fault.Args{"most": mostTyped})
		}
	}
	for _, day := range []struct {
		name, text string
		add        int
		into       *time.Time
	}{{"from", s.From, 0, &f.Since}, {"to", s.To, 1, &f.Until}} {
		if day.text == "" {
			continue
		}
		at, err := time.ParseInLocation(time.DateOnly, day.text, v.in.zone)
		if err != nil || at.Year() < 2000 || at.Year() > 9999 {
			bad.WithField("/"+day.name, "web.field.day", nil)
			continue
		}
		*day.into = at.AddDate(0, 0, day.add)
	}
	if len(bad.Fields) > 0 {
		return f, bad
	}
	return f, nil
}

// lately is how far back an action is searched if nothing else narrows it: no index leads to an action's rare changes.
const lately = 92 * 24 * time.Hour

// narrowed fills in the days of a search that nothing else narrows.
func (c *console) narrowed(v *visit, s search) search {
	if c.Now != nil && s.Action != "" && s.From == "" && s.To == "" && s.Target == "" && s.Person == "" {
		s.From = v.day(c.Now().Add(-lately))
	}
	return s
}

// history lists all changes that this person may see, the newest first. A change's own ID leads to its page.
func (c *console) history(v *visit) error {
	s := searchOf(v.r.URL.Query())
	if id, ok := preview.ParseID(s.Target); ok {
		return v.goTo("/changes/" + id.String())
	}
	s = c.narrowed(v, s)
	page := historyPage{
		frame: c.frameOf(v, v.t("web.history.title"), "/history"), search: s,
		Statuses: v.statusOptions(commit.Status(s.Status)), Actions: c.actionOptions(v, s.Action),
	}
	if c.Exports != nil && v.who.May(actor.Export) {
		q := s.query()
		page.CSV, page.NDJSON = "/history/export.csv?"+q.Encode(), "/history/export.ndjson?"+q.Encode()
	}
	if err := c.fillHistory(v, s, &page); err != nil {
		if fault.CodeOf(err) != fault.InvalidInput {
			return err
		}
		page.Problem = v.problemOf(err)
		return c.show(v, http.StatusUnprocessableEntity, "history", &page)
	}
	return c.show(v, http.StatusOK, "history", &page)
}

func (c *console) fillHistory(v *visit, s search, page *historyPage) error {
	f, err := v.filter(s)
	if err != nil {
		return err
	}
	changes, next, err := c.Commits.List(v.r.Context(), v.who, f)
	if err != nil {
		return err
	}
	for _, change := range changes {
		row := historyRow{Change: v.writer().Change(change), Asks: v.asks(change.Preview.Requester)}
		row.Contradicted = row.Change.Outcome != nil && row.Change.Outcome.Contradicted
		page.Rows = append(page.Rows, row)
	}
	if next != "" {
		q := s.query()
		q.Set("cursor", next)
		page.More = "/history?" + q.Encode()
	}
	return nil
}

func (v *visit) statusOptions(chosen commit.Status) []statusOption {
	options := []statusOption{{Label: v.t("web.history.any_status"), Chosen: chosen == ""}}
	for _, s := range commit.Statuses() {
		options = append(options, statusOption{Value: string(s), Label: v.t("web.status." + string(s)), Chosen: s == chosen})
	}
	return options
}

// actionOptions are the actions that this process serves, and the one that was asked for.
func (c *console) actionOptions(v *visit, chosen string) []statusOption {
	var names []string
	if c.Freezes != nil {
		names, _ = c.Freezes.Freezable()
	}
	if chosen != "" && !slices.Contains(names, chosen) {
		names = append(names, chosen)
	}
	options := []statusOption{{Label: v.t("web.history.any_action"), Chosen: chosen == ""}}
	for _, name := range names {
		options = append(options, statusOption{Value: name, Label: name, Chosen: name == chosen})
	}
	return options
}
