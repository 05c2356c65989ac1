// Package outbox keeps messages until they are told, as jobs of River (riverqueue.com) in the same database as the changes.
//
// It promises that each event becomes its jobs exactly once, in the transaction that moves the place in the feed, whichever replica does
// it; that a job is tried until its receiver has taken it, for hours and ever more slowly, with the same message ID each time; and that
// whatever receivers do takes nothing away from changes: it runs on a small pool of its own, each receiver in a lane of its own, and no
// call about a change ever waits for it. A process that is killed in the middle of a try leaves the job to be tried again, so a message
// may come twice.
//
// It does not know what is told: notify does. Start at New and Run.
package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/preview"
)

// JobKind is what deliveries are called in the queue.
const JobKind = "notify_delivery"

// Feed hands over what happened, in transactions.
type Feed interface {
	Begin(ctx context.Context) error
	Relay(ctx context.Context, limit int, hand func(context.Context, pgx.Tx, []preview.Moved) error) (more bool, err error)
	Expiring(ctx context.Context, kind string, within time.Duration, limit int, hand func(context.Context, pgx.Tx, []preview.Moved) error) error
}

// Observer counts deliveries: delivered, dropped, failed (to be tried again) and dead.
type Observer interface {
	Delivery(receiver, outcome string)
}

// Config is what an Outbox needs. Zero durations mean the defaults.
type Config struct {
	Feed    Feed
	Pool    *pgxpool.Pool
	Notify  *notify.Service
	Log     *slog.Logger
	Observe Observer
	// Every is how often the feed and the lanes are looked at.
	Every time.Duration
	// ScanEvery is how often what is about to expire is looked for, Within how close its deadline must be.
	ScanEvery, Within time.Duration
	// TryFor bounds one try, above what senders take; RescueAfter, which is longer, is when a try counts as lost with its process.
	TryFor, RescueAfter time.Duration
}

const (
	defaultEvery     = time.Second
	defaultScanEvery = 10 * time.Second
	defaultWithin    = time.Hour
	defaultTry       = 20 * time.Second
	defaultRescue    = 30 * time.Second
	// Tries are how often a message is tried. River waits longer each time (the fourth power of the try's number, in seconds, and a bit
	// of chance): the tenth is about four hours and a quarter after the first.
	Tries = 10
	// atOnce is how many messages go to one receiver at a time.
	atOnce = 2
	// keepDelivered is how long what was delivered is kept, keepDead what was given up.
	keepDelivered = 24 * time.Hour
	keepDead      = 30 * 24 * time.Hour
	// batch is how many events are relayed in a transaction.
	batch = 200
)

// Outbox relays and delivers. Any number of replicas may run one.
type Outbox struct {
	Config
	client *river.Client[pgx.Tx]
}

// New makes an Outbox; nothing runs yet.
func New(c Config) (*Outbox, error) {
	o := &Outbox{Config: c.withDefaults()}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{outbox: o}); err != nil {
		return nil, fmt.Errorf("preparing deliveries: %w", err)
	}
	lanes := map[string]river.QueueConfig{}
	for _, r := range c.Notify.Receivers {
		lanes[Lane(r.Name)] = river.QueueConfig{MaxWorkers: atOnce}
	}
	var err error
	o.client, err = river.NewClient(riverpgxv5.New(c.Pool), &river.Config{
		Workers: workers, Queues: lanes, MaxAttempts: Tries, JobTimeout: o.TryFor, RescueStuckJobsAfter: o.RescueAfter,
		FetchPollInterval: o.Every, FetchCooldown: min(o.Every, 100*time.Millisecond),
		// No session is held for LISTEN, so that it works behind transaction poolers.
		PollOnly: true,
		// Rebuilding indexes asks for their owner, which the service need not be.
		ReindexerSchedule:           river.NeverSchedule(),
		CompletedJobRetentionPeriod: keepDelivered, CancelledJobRetentionPeriod: keepDead, DiscardedJobRetentionPeriod: keepDead,
		// River tells of each failed try; the worker says the same in our words.
		Logger: slog.New(severe{c.Log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("preparing deliveries: %w", err)
	}
	return o, nil
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		at       *time.Duration
		fallback time.Duration
	}{
		{&c.Every, defaultEvery}, {&c.ScanEvery, defaultScanEvery}, {&c.Within, defaultWithin},
		{&c.TryFor, defaultTry}, {&c.RescueAfter, defaultRescue},
	} {
		if *d.at == 0 {
			*d.at = d.fallback
		}
	}
	return c
}

// Lane is the queue of one receiver: one that hangs holds up nobody else's messages.
func Lane(receiver string) string { return "notify_" + receiver }

// Run relays and delivers until ctx ends, then lets the tries under way end, at most for drainFor.
func (o *Outbox) Run(ctx context.Context) error {
	// River's own context is not ctx: a stop lets tries end, an end of the context would cut them off.
	working, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	started := o.start(ctx, working)
	o.loop(ctx)
	if !started {
		return nil
	}
	bound, cancel := context.WithTimeout(working, drainFor)
	defer cancel()
	if err := o.client.Stop(bound); err == nil {
		return nil
	}
	bound, cancel = context.WithTimeout(working, drainFor)
	defer cancel()
	if err := o.client.StopAndCancel(bound); err != nil {
		return fmt.Errorf("ending deliveries: %w", err)
	}
	return nil
}

// drainFor is how long a stop waits for tries under way before it cuts them off; they are tried again.
const drainFor = 3 * time.Second

// start begins the feed and River, and tries again while the database does not answer: serving changes does not wait for this.
func (o *Outbox) start(ctx, working context.Context) (started bool) {
	for {
		err := o.Feed.Begin(ctx)
		if err == nil {
			err = o.client.Start(working)
		}
		if err == nil {
			return true
		}
		o.Log.WarnContext(ctx, "notifications do not run yet; they are tried again", "error", err)
		if !sleep(ctx, o.Every) {
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// loop relays, and looks now and then for what is about to expire.
func (o *Outbox) loop(ctx context.Context) {
	scan := time.NewTicker(o.ScanEvery)
	defer scan.Stop()
	for {
		more, err := o.Feed.Relay(ctx, batch, o.insert)
		o.failed(ctx, err)
		select {
		case <-scan.C:
			o.failed(ctx, o.Feed.Expiring(ctx, string(notify.Expiring), o.Within, batch, o.insert))
			o.failed(ctx, o.dropOrphans(ctx))
		default:
		}
		if ctx.Err() != nil || !more && !sleep(ctx, o.Every) {
			return
		}
	}
}

func (o *Outbox) failed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		o.Log.WarnContext(ctx, "notifications could not be prepared; the next pass tries again", "error", err)
	}
}

const sqlNow = `select clock_timestamp()`

// insert makes the jobs of some events, in the transaction that the feed gives.
func (o *Outbox) insert(ctx context.Context, tx pgx.Tx, moved []preview.Moved) error {
	var now time.Time
	if err := tx.QueryRow(ctx, sqlNow).Scan(&now); err != nil {
		return err
	}
	var jobs []river.InsertManyParams
	for _, m := range moved {
		if notify.Stale(m.At, now) {
			continue // of a time when nobody was told
		}
		for _, item := range o.Notify.Items(m) {
			jobs = append(jobs, river.InsertManyParams{Args: delivery{item}, InsertOpts: &river.InsertOpts{Queue: Lane(item.Receiver)}})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	_, err := o.client.InsertManyTx(ctx, tx, jobs) // passes over those that exist
	return err
}

// delivery is the job: one message to one receiver. An event that is read twice, after a failover say, makes the same one.
type delivery struct{ notify.Item }

// Kind implements river.JobArgs.
func (delivery) Kind() string { return JobKind }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (delivery) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: Tries, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: rivertype.JobStates()}}
}

// sqlDropOrphans gives up what nobody tries any more: its receiver has left the file.
const sqlDropOrphans = `
update river_job set state = 'cancelled', finalized_at = clock_timestamp()
where kind = $1 and state in ('available', 'retryable', 'scheduled') and created_at < clock_timestamp() - interval '1 day'`

func (o *Outbox) dropOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.TryFor)
	defer cancel()
	tag, err := o.Pool.Exec(ctx, sqlDropOrphans, JobKind)
	if err != nil {
		return fmt.Errorf("giving up old deliveries: %w", err)
	}
	if n := tag.RowsAffected(); n > 0 {
		o.Log.WarnContext(ctx, "notifications that nobody took in a day were given up", "count", n)
	}
	return nil
}
