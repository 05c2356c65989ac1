package commit

import (
	"context"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// ExportOrder asks for all changes of a filter at once, in a format that is named for the record.
type ExportOrder struct {
	Filter
	Format string
}

// Journal keeps on record what was taken out.
type Journal interface {
	// Exported records that somebody takes changes out, in the chain of their tenant's controls.
	Exported(ctx context.Context, who actor.Actor, o ExportOrder) error
}

const (
	// mostExported bounds one export where nothing else is said. What is more is asked for by another range of time.
	mostExported = 100_000
	// exportPage is how many changes are read at once; nothing is held between two pages, so that an export blocks nobody.
	exportPage = 500
	// mostExports bounds how many exports one process writes at a time.
	mostExports = 2
)

// Export hands over all changes of a filter, the newest first, as far as MostExported; more says that there were others. That it was
// asked for is on record before the first change is handed over. Changes that move meanwhile are handed over as they are when they are
// read. It ends with the first error of each. Faults: forbidden, rate_limited, invalid_input.
func (s *Service) Export(ctx context.Context, who actor.Actor, o ExportOrder, each func(Change) error) (more bool, err error) {
	if s.Journal == nil || !who.May(actor.Export) {
		return false, fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.export")
	}
	select {
	case s.exporting <- struct{}{}:
		defer func() { <-s.exporting }()
	default:
		return false, fault.New(fault.RateLimited, fault.Args{"seconds": 5}).WithKey("fault.rate_limited.exports").After(5 * time.Second)
	}
	f := o.Filter
	f.Tenant, f.OwnerID, f.OwnerPerson, f.Limit = who.Tenant, "", "", min(exportPage, s.MostExported)
	page, next, err := s.Store.List(ctx, f)
	if err != nil {
		return false, err
	}
	if err := s.Journal.Exported(ctx, who, o); err != nil {
		return false, err
	}
	for done := 0; ; {
		for _, c := range page {
			if err := each(c); err != nil {
				return false, err
			}
		}
		if done += len(page); next == "" || done >= s.MostExported {
			return next != "", nil
		}
		f.Cursor = next
		if page, next, err = s.Store.List(ctx, f); err != nil {
			return false, err
		}
	}
}
