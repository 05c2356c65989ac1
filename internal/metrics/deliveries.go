package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Deliveries is how far notifications are behind, in the whole database: every replica reports the same.
type Deliveries struct {
	// Lag is the age of the oldest event that was not made into notifications, Oldest that of the oldest one that is still tried.
	Lag, Oldest   time.Duration
	Waiting, Dead int
}

// DeliveryReader reads them.
type DeliveryReader func(context.Context) (Deliveries, error)

var (
	notifyLag     = prometheus.NewDesc("cutonce_notify_lag_seconds", "How old the oldest event is that was not made into notifications yet.", nil, nil)
	notifyOldest  = prometheus.NewDesc("cutonce_notify_oldest_seconds", "How old the oldest notification is that was not delivered yet.", nil, nil)
	notifyWaiting = prometheus.NewDesc("cutonce_notify_waiting", "Notifications that are to be delivered, or tried again.", nil, nil)
	notifyDead    = prometheus.NewDesc("cutonce_notify_dead", "Notifications of the last month that were given up: cutonce notify list shows them.", nil, nil)
)

// deliveries are read at scrapes, as the backlog is.
type deliveries struct {
	read DeliveryReader
	now  func() time.Time

	mu   sync.Mutex
	last Deliveries
	at   time.Time
}

// WatchDeliveries registers the numbers of a process that tells people. It is called at most once.
func (m *Metrics) WatchDeliveries(read DeliveryReader) {
	m.registry.MustRegister(&deliveries{read: read, now: m.now}, m.deliveries)
}

// Delivery counts one try: delivered, dropped (no longer so), failed (to be tried again) or dead (given up). Receivers are those of a
// file, so there are only so many.
func (m *Metrics) Delivery(receiver, outcome string) {
	m.deliveries.WithLabelValues(receiver, outcome).Inc()
}

func newDeliveries() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cutonce_notifications_total",
		Help: "Tries to tell somebody, by receiver and what became of it: delivered, dropped (it was no longer so), failed (it is tried again), dead (given up).",
	}, []string{"receiver", "outcome"})
}

// Describe implements prometheus.Collector.
func (d *deliveries) Describe(out chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{notifyLag, notifyOldest, notifyWaiting, notifyDead} {
		out <- one
	}
}

// Collect implements prometheus.Collector. While the database does not answer nothing is reported: a zero would say that nobody waits.
func (d *deliveries) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() || d.now().Sub(d.at) >= freshFor {
		ctx, cancel := context.WithTimeout(context.Background(), readFor)
		defer cancel()
		read, err := d.read(ctx)
		if err != nil {
			return
		}
		d.last, d.at = read, d.now()
	}
	out <- prometheus.MustNewConstMetric(notifyLag, prometheus.GaugeValue, d.last.Lag.Seconds())
	out <- prometheus.MustNewConstMetric(notifyOldest, prometheus.GaugeValue, d.last.Oldest.Seconds())
	out <- prometheus.MustNewConstMetric(notifyWaiting, prometheus.GaugeValue, float64(d.last.Waiting))
	out <- prometheus.MustNewConstMetric(notifyDead, prometheus.GaugeValue, float64(d.last.Dead))
}
