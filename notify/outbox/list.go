package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cutonce/cutonce/notify"
)

// Failed is a delivery that has failed at least once: given up, or tried again later.
type Failed struct {
	Job      int64
	Item     notify.Item
	Attempt  int
	GivenUp  bool
	LastAt   time.Time
	NextAt   time.Time
	LastSaid string
}

// Desk looks at deliveries and has them tried again; it works none.
type Desk struct{ client *river.Client[pgx.Tx] }

// NewDesk makes a Desk.
func NewDesk(pool *pgxpool.Pool) (*Desk, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("looking at deliveries: %w", err)
	}
	return &Desk{client: client}, nil
}

// Failed lists what has failed, the newest first.
func (d *Desk) Failed(ctx context.Context, most int) ([]Failed, error) {
	found, err := d.client.JobList(ctx, river.NewJobListParams().Kinds(JobKind).First(most).
		States(rivertype.JobStateDiscarded, rivertype.JobStateCancelled, rivertype.JobStateRetryable).
		OrderBy(river.JobListOrderByID, river.SortOrderDesc))
	if err != nil {
		return nil, fmt.Errorf("listing deliveries: %w", err)
	}
	failed := make([]Failed, 0, len(found.Jobs))
	for _, job := range found.Jobs {
		failed = append(failed, failedOf(job))
	}
	return failed, nil
}

func failedOf(job *rivertype.JobRow) Failed {
	f := Failed{Job: job.ID, Attempt: job.Attempt, GivenUp: job.State != rivertype.JobStateRetryable, NextAt: job.ScheduledAt}
	_ = json.Unmarshal(job.EncodedArgs, &f.Item) // ours; what cannot be read shows as empty
	if n := len(job.Errors); n > 0 {
		f.LastAt, f.LastSaid = job.Errors[n-1].At, job.Errors[n-1].Error
	}
	return f
}

// Retry has one delivery tried again, at once and with one more try. The error wraps ErrNone if there is none of that number.
func (d *Desk) Retry(ctx context.Context, job int64) error {
	row, err := d.client.JobGet(ctx, job)
	switch {
	case errors.Is(err, rivertype.ErrNotFound), err == nil && row.Kind != JobKind:
		return fmt.Errorf("%w: %d", ErrNone, job)
	case err != nil:
		return fmt.Errorf("finding the delivery: %w", err)
	}
	if _, err := d.client.JobRetry(ctx, job); err != nil {
		return fmt.Errorf("having the delivery tried again: %w", err)
	}
	return nil
}

// ErrNone means that there is no such delivery.
var ErrNone = errors.New("there is no such delivery")
