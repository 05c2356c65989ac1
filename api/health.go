package api

import (
	"context"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/internal/fault"
)

// health is what the two probes answer.
type health struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

// healthy says that the process runs. It asks nothing else, so that a broken database does not get the process restarted.
func (c *call) healthy() error {
	return c.json(http.StatusOK, health{Status: "ok", Version: c.Version})
}

// readyFor bounds how long the readiness probe waits for its answer.
const readyFor = 2 * time.Second

// ready says whether calls can be taken now.
func (c *call) ready() error {
	ctx, cancel := context.WithTimeout(c.ctx(), readyFor)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		f := fault.New(fault.Internal, nil).WithKey("http.not_ready").WithNext(fault.NextRetryLater).After(readyFor).Because(err)
		f.Retryable = true
		return f
	}
	return c.json(http.StatusOK, health{Status: "ready"})
}
