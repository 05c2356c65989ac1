package rollback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/connector/httptarget"
)

// span is what lies between the build that runs and the one to go to, in the order of the platform's history. It is only
// known if both were found there.
type span struct {
	known bool
	read  int
	// forward says that the build to go to is the later one.
	forward bool
	// deployments succeeded in between: undone on the way back, with the one that runs; restored on the way forward, with the
	// one to go to. The newest comes first.
	deployments []deployment
	// migrations are the deployments in between that contain one. A failed deployment counts: it may have migrated before it
	// failed.
	migrations []deployment
}

// between reads the history until both builds are found, and no further than Config.HistoryUpTo.
func (c *Connector) between(ctx context.Context, now state, to deployment) (span, error) {
	history, err := c.platform.history(ctx, now.place, c.cfg.HistoryUpTo, now.current.build(), to.ID)
	if err != nil {
		return span{}, err
	}
	at := func(id string) int { return slices.IndexFunc(history, func(d deployment) bool { return d.ID == id }) }
	from, until := at(now.current.build()), at(to.ID)
	s := span{read: len(history), known: from >= 0 && until >= 0, forward: until < from}
	if !s.known {
		return span{read: s.read}, nil
	}
	for _, d := range history[min(from, until):max(from, until)] {
		if d.isRollback() {
			continue // it brought no build of its own
		}
		if d.Status != statusFailed {
			s.deployments = append(s.deployments, d)
		}
		if d.Migration {
			s.migrations = append(s.migrations, d)
		}
	}
	return s, nil
}

// history reads an environment's deployments, the newest first, until all those named were seen.
func (p *platform) history(ctx context.Context, at place, upTo int, until ...string) ([]deployment, error) {
	s := search{place: at, limit: min(100, upTo)}
	var all []deployment
	for {
		page, err := p.list(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, d := range page.deployments {
			if d.place != at {
				return nil, httptarget.Unavailable(fmt.Errorf("the platform's history holds another environment's"), 0)
			}
			until = slices.DeleteFunc(until, func(id string) bool { return id == d.ID })
		}
		all = append(all, page.deployments...)
		switch {
		case len(until) == 0, page.next == "", len(all) >= upTo:
			return all, nil
		case page.next == s.cursor || len(page.deployments) == 0:
			return nil, httptarget.Unavailable(fmt.Errorf("the platform's history does not advance"), 0)
		}
		s.cursor = page.next
	}
}

// mostNamed is how many deployments a sentence names before it says how many more there are.
const mostNamed = 10

// named writes deployments with their authors: "v2026.11.3 (dep-000106, choi@platform.example)".
func named(all []deployment) string {
	return join(all, func(d deployment) string { return fmt.Sprintf("%s (%s, %s)", d.Version, d.ID, d.Author) })
}

func join[T any](all []T, write func(T) string) string {
	parts := make([]string, 0, mostNamed)
	for _, one := range all[:min(len(all), mostNamed)] {
		parts = append(parts, write(one))
	}
	text := strings.Join(parts, ", ")
	if more := len(all) - mostNamed; more > 0 {
		text += fmt.Sprintf(" … (+%d)", more)
	}
	return text
}
