package web

import (
	"net/http"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

type outcomesPage struct {
	frame
	Rows []outcomeRow
	More string
	// Incidents are the latest outcomes that proof has contradicted; Others leads to all of them, empty where these are all.
	Incidents []historyRow
	Others    string
}

// outcomeRow is one change of which it is not known whether it happened.
type outcomeRow struct {
	Change answer.Change
	Asks   string
	// Since is how long the outcome has been open, in words.
	Since   string
	Started time.Time
	Probes  int
	// Key is what the target calls it, for whoever searches its log.
	Key string
}

// mostIncidents bounds the incidents that are listed beside what is unknown.
const mostIncidents = 5

// pageOfChanges is how many changes one page of a list shows.
const pageOfChanges = 25

// outcomes lists what nobody knows yet.
func (c *console) outcomes(v *visit) error {
	changes, next, err := c.Commits.List(v.r.Context(), v.who, commit.Filter{
		Status: commit.StatusUnknown, Cursor: v.r.URL.Query().Get("cursor"), Limit: pageOfChanges,
	})
	if err != nil {
		return err
	}
	page := outcomesPage{frame: c.frameOf(v, v.t("web.outcomes.title"), "/outcomes")}
	for _, change := range changes {
		page.Rows = append(page.Rows, c.outcomeRow(v, change))
	}
	if cursor := v.r.URL.Query().Get("cursor"); cursor == "" {
		if err := c.incidents(v, &page); err != nil {
			return err
		}
	}
	if next != "" {
		page.More = withQuery("/outcomes", "cursor", next)
	}
	return c.show(v, http.StatusOK, "outcomes", &page)
}

// incidents lists what was settled one way and proved to be the other.
func (c *console) incidents(v *visit, page *outcomesPage) error {
	changes, next, err := c.Commits.List(v.r.Context(), v.who, commit.Filter{Contradicted: true, Limit: mostIncidents})
	if err != nil {
		return err
	}
	for _, change := range changes {
		page.Incidents = append(page.Incidents, historyRow{Change: v.writer().Change(change), Asks: v.asks(change.Preview.Requester), Contradicted: true})
	}
	if next != "" {
		page.Others = "/history?contradicted=1"
	}
	return nil
}

func (c *console) outcomeRow(v *visit, change commit.Change) outcomeRow {
	row := outcomeRow{Change: v.writer().Change(change), Asks: v.asks(change.Preview.Requester)}
	if len(change.Executions) > 0 {
		e := change.Executions[0]
		row.Since, row.Started, row.Probes = v.since(change.Now.Sub(e.StartedAt)), e.StartedAt.UTC(), e.Probes
		if p := change.Preview; c.Key != nil && preview.Reviews(v.who) {
			row.Key = c.Key(p.Tenant, p.ID, e.Item)
		}
	}
	return row
}
