package main

import (
	"runtime/debug"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for container, want := range map[int64]int64{0: 1 << 30, 500 << 20: 400 << 20, 8 << 30: 1 << 30} {
		if got := limitFor(container); got != want {
			t.Errorf("%d bytes: got %d, want %d", container, got, want)
		}
	}
}

func TestTheEnvironmentsOwnLimitsStand(t *testing.T) {
	t.Setenv("GOGC", "50")
	t.Setenv("GOMEMLIMIT", "2GiB")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	tune()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("got %d, want what GOGC had set left alone", got)
	}
	t.Setenv("GOGC", "")
	tune()
	if got := debug.SetGCPercent(77); got != gcPercent {
		t.Errorf("got %d, want %d", got, gcPercent)
	}
}
