package main

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// gcPercent: a call of a tool allocates a lot and keeps little, so collecting less often halves its cost.
	gcPercent = 400
	// memoryLimit is where collecting becomes eager again, if nothing says how much memory there is.
	memoryLimit = 1 << 30
)

// tune sets what GOGC and GOMEMLIMIT would, unless the environment does.
func tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limitFor(containerMemory()))
	}
}

// limitFor leaves a fifth of a container's memory for what Go does not count.
func limitFor(container int64) int64 {
	if container <= 0 {
		return memoryLimit
	}
	return min(memoryLimit, container/5*4)
}

// containerMemory is the limit of this process's control group, 0 if there is none.
func containerMemory() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit == math.MaxInt64 {
		return 0 // "max"
	}
	return limit
}
