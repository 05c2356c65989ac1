package preview

import (
	"context"
	"time"
)

// Moved says that one change has an event more in its chain. It tells that there is news, not what the news is: readers load the change.
type Moved struct {
	Tenant string
	ID     ID
	// Seq is the event's place in the chain of its change, Kind and At are the event's.
	Seq  int64
	Kind string
	At   time.Time
	// Before is the kind of the event before it in the chain, empty for the first. Reveals, which move nothing, are passed over.
	Before string
}

// Place is a place in the feed: everything up to one event of one transaction has been read.
type Place struct {
	Transaction uint64
	ID          ID
	Seq         int64
}

// Feed is what happened to all changes of all tenants, in the order of the transactions that wrote it. It costs the writers nothing: the
// chained events, which exist anyway, are the feed. It is for workers; no caller's tenant is checked here.
type Feed interface {
	// Tail reads at most limit events after a place, and gives the place to go on from. An event that comes in late cannot be
	// overtaken: the feed ends before the oldest transaction that is under way, in any database of the server. Fewer events than the
	// limit mean that this was all for now.
	Tail(ctx context.Context, after Place, limit int) ([]Moved, Place, error)
	// TailEnd is the place from which Tail gives what happens from now on, and perhaps what has just happened.
	TailEnd(ctx context.Context) (Place, error)
}
