package main

import (
	"errors"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/metrics"
	"github.com/cutonce/cutonce/preview"
)

// limits are the process's, and tell the metrics what they refuse.
type limits struct {
	of *auth.Limiter
	m  *metrics.Metrics
}

// Call counts a call. See auth.Limiter.
func (l limits) Call(who actor.Actor, p actor.Power) error { return l.told(who, l.of.Call(who, p)) }

// Prepare counts a change that is about to be prepared. See auth.Limiter.
func (l limits) Prepare(who actor.Actor, action string) error {
	return l.told(who, l.of.Prepare(who, action))
}

func (l limits) told(who actor.Actor, err error) error {
	var f *fault.Fault
	if errors.As(err, &f) && f.Code == fault.RateLimited {
		what, _ := f.Data["limit"].(string)
		l.m.Limited(who.Tenant, what)
	}
	return err
}

// tooManyOpen tells the metrics of a prepare for which there was no room.
func tooManyOpen(m *metrics.Metrics, tenant string, err error) {
	var crowd *preview.TooManyOpen
	if errors.As(err, &crowd) {
		m.Limited(tenant, "open")
	}
}
