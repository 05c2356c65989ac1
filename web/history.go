package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

type historyPage struct {
	frame
	Rows     []historyRow
	More     string
	Statuses []statusOption
	Target   string
	Filtered bool
	Problem  *problem
}

type statusOption struct {
	Value, Label string
	Chosen       bool
}

type historyRow struct {
	Change answer.Change
	Asks   string
}

// history lists all changes that this person may see, the newest first.
func (c *console) history(v *visit) error {
	q := v.r.URL.Query()
	f := commit.Filter{
		Status: commit.Status(q.Get("status")), TargetID: q.Get("target"), Cursor: q.Get("cursor"), Limit: pageOfChanges,
	}
	page := historyPage{
		frame: c.frameOf(v, v.t("web.history.title"), "/history"), Target: f.TargetID, Filtered: f.Status != "" || f.TargetID != "",
		Statuses: v.statusOptions(f.Status),
	}
	if err := c.fillHistory(v, f, &page); err != nil {
		if fault.CodeOf(err) != fault.InvalidInput {
			return err
		}
		page.Problem = v.problemOf(err)
		return c.show(v, http.StatusUnprocessableEntity, "history", &page)
	}
	return c.show(v, http.StatusOK, "history", &page)
}

func (c *console) fillHistory(v *visit, f commit.Filter, page *historyPage) error {
	if f.Status != "" && !slices.Contains(commit.Statuses(), f.Status) {
		return fault.New(fault.InvalidInput, nil).WithField("/status", "web.field.status", nil)
	}
	changes, next, err := c.Commits.List(v.r.Context(), v.who, f)
	if err != nil {
		return err
	}
	for _, change := range changes {
		page.Rows = append(page.Rows, historyRow{Change: v.writer().Change(change), Asks: v.asks(change.Preview.Requester)})
	}
	if next != "" {
		page.More = "/history?" + url.Values{"status": {string(f.Status)}, "target": {f.TargetID}, "cursor": {next}}.Encode()
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
