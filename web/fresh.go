package web

import (
	"context"
	"sync"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// freshness is what the target shows when the page is made, beside what the change was prepared on.
type freshness struct {
	// Unread says that the target could not be read just now; Moved, that it is no longer as it was prepared on.
	Unread, Moved bool
	Columns       []answer.Column
	// At is the database's time of the look, Ago how long before the page that was.
	At  time.Time
	Ago string
}

// glanceFor is how long a page waits for a target, glanceAge how old a look may be that it shows: it is read once for all who look at
// a page at the same time.
const (
	glanceFor = 800 * time.Millisecond
	glanceAge = 2 * time.Second
	// mostGlances bounds what is remembered; beyond it everything is forgotten.
	mostGlances = 1000
)

// glances remembers the latest looks by change. Its ages are by the database's clock.
type glances struct {
	mu   sync.Mutex
	seen map[preview.ID]seen
}

type seen struct {
	glance commit.Glance
	at     time.Time
}

func (g *glances) latest(id preview.ID, now time.Time) (seen, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.seen[id]
	return s, ok && now.Sub(s.at) < glanceAge
}

func (g *glances) keep(id preview.ID, s seen) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil || len(g.seen) >= mostGlances {
		g.seen = map[preview.ID]seen{}
	}
	g.seen[id] = s
}

// freshnessOf looks at the target of a change that may still be decided or applied; nil for any other.
func (c *console) freshnessOf(v *visit, y commit.Why) *freshness {
	p, now := y.Change.Preview, y.Change.Now
	if s := y.Change.Status; s != commit.StatusPending && s != commit.StatusApproved {
		return nil
	}
	s, known := c.glances.latest(p.ID, now)
	if !known {
		glance, err := c.Commits.Glance(v.r.Context(), v.who, p, glanceFor)
		if err != nil {
			c.Log.WarnContext(v.r.Context(), "looking at a target for a page", "request_id", v.requestID, "change", p.ID.String(), "code", string(fault.CodeOf(err)))
			return &freshness{Unread: true, At: p.CreatedAt.UTC(), Ago: v.since(now.Sub(p.CreatedAt))}
		}
		s = seen{glance, now}
		c.glances.keep(p.ID, s)
	}
	f := &freshness{Moved: s.glance.Moved, At: s.at.UTC(), Ago: v.since(now.Sub(s.at))}
	if f.Moved {
		f.Columns = v.columns(s.glance.Columns)
	}
	return f
}

func (v *visit) columns(columns []commit.Column) []answer.Column {
	w := v.writer()
	var out []answer.Column
	for _, c := range columns {
		out = append(out, w.Column(c))
	}
	return out
}

// neighbour is another change of the same target that is not over.
type neighbour struct {
	ID, Status string
	// Short is what its first field is to become, or its summary where it names none.
	Short string
}

// mostNeighbours is how many are named.
const mostNeighbours = 5

// neighboursOf are the other changes of a target that wait or are under way, as far as this person may see them. A list that cannot be
// had leaves the page without them, and says so to the log.
func (c *console) neighboursOf(v *visit, y commit.Why) []neighbour {
	p := y.Change.Preview
	changes, _, err := c.Commits.List(v.r.Context(), v.who, commit.Filter{
		TargetID: p.Plan.Target.ID, Limit: mostNeighbours + 1,
		Statuses: []commit.Status{commit.StatusPending, commit.StatusApproved, commit.StatusApplying, commit.StatusUnknown},
	})
	if err != nil {
		c.Log.WarnContext(context.WithoutCancel(v.r.Context()), "looking for other changes of a target", "request_id", v.requestID, "error", err)
		return nil
	}
	var out []neighbour
	for _, change := range changes {
		other := change.Preview
		if other.ID == p.ID || other.Plan.Target.Key() != p.Plan.Target.Key() || len(out) == mostNeighbours {
			continue
		}
		shown := v.writer().Change(change)
		n := neighbour{ID: shown.PreviewID, Status: shown.Status, Short: shown.Summary}
		if len(shown.Changes) > 0 && shown.Changes[0].After != nil && !shown.Changes[0].After.Masked {
			n.Short = "→ " + shown.Changes[0].After.Shown
		}
		out = append(out, n)
	}
	return out
}
