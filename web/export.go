package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Exports hands changes over in bulk (commit.Service).
type Exports interface {
	Export(ctx context.Context, who actor.Actor, o commit.ExportOrder, each func(commit.Change) error) (more bool, err error)
}

// export streams the changes of a search as a file. Once its first byte has left, a failure cuts the connection: no half file passes
// for a whole one.
func (c *console) export(v *visit, format answer.Format) error {
	f, err := v.filter(c.narrowed(v, searchOf(v.r.URL.Query())))
	if err != nil {
		return err
	}
	f.Cursor = ""
	began := false
	table := answer.NewTable(v.w, format, v.writer(), v.in.zone, func(id string) string { return c.address(id) })
	begin := func() {
		began = true
		v.w.Header().Set("Content-Type", format.MediaType())
		v.w.Header().Set("Content-Language", v.in.lang)
		v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "cutonce-changes."+string(format)))
	}
	order := commit.ExportOrder{Filter: f, Format: string(format)}
	more, err := c.Exports.Export(v.r.Context(), v.who, order, func(change commit.Change) error {
		if !began {
			begin()
		}
		return table.Write(change)
	})
	switch {
	case err != nil && !began:
		return err
	case err != nil:
		c.Log.WarnContext(v.r.Context(), "an export was cut off", "request_id", v.requestID, "code", fault.CodeOf(err), "error", err)
		panic(http.ErrAbortHandler)
	case !began:
		begin()
	}
	if err := table.End(more); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (c *console) exportCSV(v *visit) error    { return c.export(v, answer.CSV) }
func (c *console) exportNDJSON(v *visit) error { return c.export(v, answer.NDJSON) }

// taken lets an export be caused from here, or by an address that somebody opens themselves. Another site's link leads to the search that it
// would take out: an export is on record under the reader's name.
func taken(h handler) handler {
	return func(v *visit) error {
		if site := v.r.Header.Get("Sec-Fetch-Site"); site == "" || site == "same-origin" || site == "none" {
			return h(v)
		}
		return v.goTo((&url.URL{Path: "/history", RawQuery: v.r.URL.RawQuery}).String())
	}
}

// onlyGet refuses to say what a GET would answer: an export is on record as taken out, and by a HEAD nothing is.
func onlyGet(v *visit) error {
	v.w.Header().Set("Allow", http.MethodGet)
	v.w.WriteHeader(http.StatusMethodNotAllowed)
	return nil
}
