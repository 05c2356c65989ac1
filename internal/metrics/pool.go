package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Pool is the state of the database's connection pool.
type Pool struct {
	Max, Total, Idle, Acquired int32
	// Waited is how many acquires found no idle connection, and WaitedFor how long all acquires took together.
	Waited    int64
	WaitedFor time.Duration
}

var (
	poolConnections = prometheus.NewDesc("cutonce_pool_connections", "Connections of the main pool by state: max, total, idle, acquired.", []string{"state"}, nil)
	poolWaits       = prometheus.NewDesc("cutonce_pool_waits_total", "How often a caller found no idle connection.", nil, nil)
	poolWaited      = prometheus.NewDesc("cutonce_pool_acquire_seconds_total", "How long callers took to get a connection, all together.", nil, nil)
)

type poolCollector struct{ read func() Pool }

// Describe implements prometheus.Collector.
func (poolCollector) Describe(out chan<- *prometheus.Desc) {
	out <- poolConnections
	out <- poolWaits
	out <- poolWaited
}

// Collect implements prometheus.Collector.
func (c poolCollector) Collect(out chan<- prometheus.Metric) {
	p := c.read()
	for state, n := range map[string]int32{"max": p.Max, "total": p.Total, "idle": p.Idle, "acquired": p.Acquired} {
		out <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(n), state)
	}
	out <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(p.Waited))
	out <- prometheus.MustNewConstMetric(poolWaited, prometheus.CounterValue, p.WaitedFor.Seconds())
}
