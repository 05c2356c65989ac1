package outbox

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"

	"github.com/cutonce/cutonce/notify"
)

// worker tries one delivery.
type worker struct {
	river.WorkerDefaults[delivery]
	outbox *Outbox
}

// Work implements river.Worker. A panic in it is River's to contain, and counts as a failed try.
func (w *worker) Work(ctx context.Context, job *river.Job[delivery]) error {
	o, item := w.outbox, job.Args.Item
	log := o.Log.With("message", item.ID(), "receiver", item.Receiver, "kind", string(item.Kind()), "preview_id", item.Preview, "try", job.Attempt)
	told, err := o.Notify.Tell(ctx, item)
	var busy *notify.BusyError
	switch {
	case err == nil && told.Wait > 0:
		return river.JobSnooze(told.Wait)
	case err == nil && told.Dropped != "":
		log.InfoContext(ctx, "a notification was dropped", "because", told.Dropped)
		o.Observe.Delivery(item.Receiver, "dropped")
		return nil
	case err == nil:
		log.InfoContext(ctx, "a notification was delivered")
		o.Observe.Delivery(item.Receiver, "delivered")
		return nil
	case errors.As(err, &busy):
		log.InfoContext(ctx, "a receiver asks for time", "error", err)
		return river.JobSnooze(busy.For + time.Duration(rand.Int64N(int64(time.Second))))
	case errors.Is(ctx.Err(), context.Canceled): // the error itself may be the cause that River gave
		return river.JobSnooze(0) // the process is ending: the try does not count
	}
	return w.failed(ctx, log, item, job.Attempt, job.MaxAttempts, err)
}

func (w *worker) failed(ctx context.Context, log *slog.Logger, item notify.Item, attempt, most int, err error) error {
	switch {
	case errors.Is(err, notify.ErrRefused):
		log.ErrorContext(ctx, "a notification is given up: cutonce notify list shows it", "error", err)
		w.outbox.Observe.Delivery(item.Receiver, "dead")
		return river.JobCancel(err)
	case attempt >= most:
		log.ErrorContext(ctx, "a notification is given up after its last try: cutonce notify list shows it", "error", err)
		w.outbox.Observe.Delivery(item.Receiver, "dead")
	default:
		log.WarnContext(ctx, "a notification could not be delivered; it is tried again", "error", err)
		w.outbox.Observe.Delivery(item.Receiver, "failed")
	}
	return err
}

// severe passes on errors only.
type severe struct{ slog.Handler }

// Enabled implements slog.Handler.
func (s severe) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && s.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (s severe) WithAttrs(attrs []slog.Attr) slog.Handler { return severe{s.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (s severe) WithGroup(name string) slog.Handler { return severe{s.Handler.WithGroup(name)} }
