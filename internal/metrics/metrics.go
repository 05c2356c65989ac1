// Package metrics counts what the service does, for Prometheus.
//
// It promises bounded label values (configured tenants, actions, outcomes, route templates; never an ID, a name or a path that a caller
// chose),
// and that a scrape never waits for a slow database: what it knew last is served with its age. It holds no business numbers
// and no history. Start at New.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config says where the numbers that are not counted here come from.
type Config struct {
	Version string
	// Tenants are those that have a label of their own; every other one is counted as "other".
	Tenants []string
	Backlog Reader
	Pool    func() Pool
	Now     func() time.Time
}

// Metrics are the counters of one process. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	tenants  tenants
	cycles   *prometheus.CounterVec
	sends    *prometheus.HistogramVec
	requests *prometheus.HistogramVec
	limited  *prometheus.CounterVec
	// deliveries are registered where people are told (see WatchDeliveries).
	deliveries *prometheus.CounterVec
	now        func() time.Time
}

var (
	// sendBuckets reach beyond the default send deadline of 15 s.
	sendBuckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30}
	// requestBuckets reach beyond the longest wait of an apply, 50 s.
	requestBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60}
)

// New registers everything.
func New(c Config) *Metrics {
	m := &Metrics{
		deliveries: newDeliveries(), now: c.Now, tenants: c.Tenants,
		registry: prometheus.NewRegistry(),
		cycles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cutonce_changes_total",
			Help: "Changes by tenant, action and what became of them: prepared and its first status, then approved, rejected, applied, not_applied, unknown.",
		}, []string{"tenant", "action", "outcome"}),
		sends: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cutonce_target_send_seconds", Buckets: sendBuckets,
			Help: "How long the target took for a send, by action and what its answer proves: applied, refused, drifted, not_sent, unknown.",
		}, []string{"action", "class"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cutonce_http_request_seconds", Buckets: requestBuckets,
			Help: "How long requests took, by method, route template and status. Waits that a caller asked for are included.",
		}, []string{"method", "route", "status"}),
	}
	m.limited = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cutonce_limited_total",
		Help: "Calls that were refused for being one too many, by tenant and what was used up: actor, tenant, action, or open (changes that a requester keeps open).",
	}, []string{"tenant", "limit"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cutonce_build_info", Help: "Always 1; the label tells the version.", ConstLabels: prometheus.Labels{"version": c.Version},
	})
	build.Set(1)
	m.registry.MustRegister(m.cycles, m.sends, m.requests, m.limited, build, newBacklog(c.Backlog, c.Now, c.Tenants), poolCollector{c.Pool},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves them.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Count counts one change.
func (m *Metrics) Count(tenant, action, outcome string) {
	m.cycles.WithLabelValues(m.tenants.label(tenant), action, outcome).Inc()
}

// Limited counts one call that was one too many.
func (m *Metrics) Limited(tenant, limit string) {
	m.limited.WithLabelValues(m.tenants.label(tenant), limit).Inc()
}

// Sent records one send.
func (m *Metrics) Sent(action, class string, took time.Duration) {
	m.sends.WithLabelValues(action, class).Observe(took.Seconds())
}
