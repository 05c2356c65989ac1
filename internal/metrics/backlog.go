package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Backlog is what waits for people or for proof, in the whole database: every replica reports the same.
type Backlog struct {
	Pending, Unknown, NeedsOperator, Contradictions int
	PendingAge, UnknownAge                          time.Duration
	// SealLag is the age of the oldest audit event that no seal covers.
	SealLag time.Duration
	// Restoring is set from the declaration of a restore until it is finished. Held changes wait for a look at their target, and
	// FoundEnded ones were applied in the lost time though they have ended otherwise.
	Restoring        bool
	Held, FoundEnded int
	// Waiting is what waits by tenant; those in which nothing does may be missing.
	Waiting map[string]Waiting
}

// Waiting is what waits in one tenant.
type Waiting struct{ Pending, Unknown, NeedsOperator int }

// Reader reads the backlog.
type Reader func(context.Context) (Backlog, error)

const (
	// readFor bounds one reading, so that a scrape is never lost to a slow database.
	readFor = 2 * time.Second
	// freshFor spares the database where several scrapers come at once.
	freshFor = 5 * time.Second
)

// backlog is read at scrapes. While the database does not answer, the last reading stands and its age tells.
type backlog struct {
	read    Reader
	now     func() time.Time
	tenants tenants
	descs   map[string]*prometheus.Desc
	waiting *prometheus.Desc

	mu   sync.Mutex
	last Backlog
	at   time.Time
}

func newBacklog(read Reader, now func() time.Time, configured []string) *backlog {
	b := &backlog{read: read, now: now, tenants: configured, descs: map[string]*prometheus.Desc{}}
	b.waiting = prometheus.NewDesc("cutonce_waiting", "Changes by tenant that wait: pending, unknown, and of those needs_operator.", []string{"tenant", "for"}, nil)
	for name, help := range map[string]string{
		"cutonce_pending":                "Changes that wait for a decision.",
		"cutonce_pending_oldest_seconds": "How long the oldest of them has waited.",
		"cutonce_unknown":                "Changes whose effect is not known.",
		"cutonce_unknown_oldest_seconds": "How long ago the oldest of them was claimed.",
		"cutonce_needs_operator":         "Unknown changes that were handed to operators.",
		"cutonce_contradicted":           "Changes whose recorded outcome was contradicted by later proof. Each is an incident.",
		"cutonce_seal_lag_seconds":       "How old the oldest audit event is that no seal covers.",
		"cutonce_restoring":              "1 while every apply is frozen because the database was restored from a backup.",
		"cutonce_restore_held":           "Changes from before a restore whose target has not been asked yet.",
		"cutonce_restore_found_ended":    "Changes that were applied before a restore and have ended otherwise after it. Each is an incident.",
		"cutonce_backlog_age_seconds":    "How old the numbers above are; it grows while the database does not answer.",
	} {
		b.descs[name] = prometheus.NewDesc(name, help, nil, nil)
	}
	return b
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range b.descs {
		out <- d
	}
	out <- b.waiting
}

// Collect implements prometheus.Collector. Nothing is reported before the first reading has succeeded: a zero would say that
// nothing is unknown.
func (b *backlog) Collect(out chan<- prometheus.Metric) {
	last, age, ok := b.current()
	if !ok {
		return
	}
	for name, value := range map[string]float64{
		"cutonce_pending":                float64(last.Pending),
		"cutonce_pending_oldest_seconds": last.PendingAge.Seconds(),
		"cutonce_unknown":                float64(last.Unknown),
		"cutonce_unknown_oldest_seconds": last.UnknownAge.Seconds(),
		"cutonce_needs_operator":         float64(last.NeedsOperator),
		"cutonce_contradicted":           float64(last.Contradictions),
		"cutonce_seal_lag_seconds":       last.SealLag.Seconds(),
		"cutonce_restoring":              flag(last.Restoring),
		"cutonce_restore_held":           float64(last.Held),
		"cutonce_restore_found_ended":    float64(last.FoundEnded),
		"cutonce_backlog_age_seconds":    age.Seconds(),
	} {
		out <- prometheus.MustNewConstMetric(b.descs[name], prometheus.GaugeValue, value)
	}
	b.collectWaiting(last, out)
}

func (b *backlog) collectWaiting(last Backlog, out chan<- prometheus.Metric) {
	sums := map[string]Waiting{}
	for tenant, w := range last.Waiting {
		sum := sums[b.tenants.label(tenant)]
		sums[b.tenants.label(tenant)] = Waiting{sum.Pending + w.Pending, sum.Unknown + w.Unknown, sum.NeedsOperator + w.NeedsOperator}
	}
	for _, tenant := range b.tenants.labels() {
		for what, n := range map[string]int{"pending": sums[tenant].Pending, "unknown": sums[tenant].Unknown, "needs_operator": sums[tenant].NeedsOperator} {
			out <- prometheus.MustNewConstMetric(b.waiting, prometheus.GaugeValue, float64(n), tenant, what)
		}
	}
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func (b *backlog) current() (last Backlog, age time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() || b.now().Sub(b.at) >= freshFor {
		ctx, cancel := context.WithTimeout(context.Background(), readFor)
		defer cancel()
		if read, err := b.read(ctx); err == nil {
			b.last, b.at = read, b.now()
		}
	}
	return b.last, b.now().Sub(b.at), !b.at.IsZero()
}
