package web

import (
	"net/http"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
)

type outcomesPage struct {
	frame
	Rows []outcomeRow
	More string
}

// outcomeRow is one change of which it is not known whether it happened.
type outcomeRow struct {
	Change answer.Change
	Asks   string
	// Since is how long the outcome has been open, in words.
	Since   string
	Started string
	Probes  int
}

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
		page.Rows = append(page.Rows, v.outcomeRow(change))
	}
	if next != "" {
		page.More = withQuery("/outcomes", "cursor", next)
	}
	return c.show(v, http.StatusOK, "outcomes", &page)
}

func (v *visit) outcomeRow(change commit.Change) outcomeRow {
	row := outcomeRow{Change: v.writer().Change(change), Asks: v.asks(change.Preview.Requester)}
	if len(change.Executions) > 0 {
		e := change.Executions[0]
		row.Since, row.Started, row.Probes = v.since(change.Now.Sub(e.StartedAt)), v.stamp(e.StartedAt), e.Probes
	}
	return row
}
