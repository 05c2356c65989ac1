package preview

import (
	"time"

	"github.com/cutonce/cutonce/internal/fault"
)

// NoRoom is the refusal by a declared cap: its limit, what is used and held of it, and when it begins anew. Nothing was sent.
func NoRoom(e *Exceeded) *fault.Fault {
	unknown := e.Unknown
	unknown.Currency = e.Held.Currency // a record from before the two were told apart has none
	reserved, err := e.Held.Sub(unknown)
	if err != nil {
		reserved = e.Held
	}
	return fault.New(fault.ExposureExceeded, fault.Args{
		"cap": e.Cap, "window": e.Window, "limit": e.Limit, "used": e.Used, "held": e.Held, "reserved": reserved, "unknown": unknown, "asked": e.Asked,
		"resets_at": e.ResetsAt.Format(time.RFC3339),
	}).WithKey("fault.exposure_exceeded.cap").WithData(map[string]any{"cap": e})
}
