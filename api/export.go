package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
)

// export streams all changes of a search. Once its first byte has left, a failure cuts the connection, so that no half file passes for a
// whole one.
func (c *call) export() error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	named, err := c.oneOf(paramExport, string(answer.NDJSON), string(answer.CSV))
	if err != nil {
		return err
	}
	format := answer.NDJSON
	if named != "" {
		format = answer.Format(named)
	}
	out := c.echo.Response()
	table := answer.NewTable(out, format, c.writer(), time.UTC, c.pageOf)
	begin := func() {
		if !out.Committed {
			out.Header().Set("Content-Type", format.MediaType())
			out.WriteHeader(http.StatusOK)
		}
	}
	more, err := c.Changes.Export(c.ctx(), c.who, commit.ExportOrder{Filter: f, Format: string(format)}, func(change commit.Change) error {
		begin()
		return table.Write(change)
	})
	if err != nil && !out.Committed {
		return err
	}
	begin()
	if err == nil {
		err = table.End(more)
	}
	if err != nil {
		c.Log.WarnContext(c.ctx(), "an export was cut off", "request_id", c.requestID, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// pageOf is where people find a change.
func (c *call) pageOf(id string) string {
	return strings.TrimSuffix(c.PublicURL, "/") + "/changes/" + id
}
