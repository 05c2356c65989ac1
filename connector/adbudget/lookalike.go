package adbudget

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/cutonce/cutonce/internal/visible"
)

// similarity is what came of comparing a campaign's name with all others that are live.
type similarity struct {
	found []campaign
	// others are all campaigns that were compared, for finding the one that was meant.
	others   []campaign
	compared int
	// whole says that there were no more to compare with.
	whole bool
}

// similar compares the campaign's name with those of all live campaigns that the platform shows.
func (c *Connector) similar(ctx context.Context, now campaign) (similarity, error) {
	all, whole, err := c.platform.all(ctx, c.cfg.CompareUpTo)
	if err != nil {
		return similarity{}, err
	}
	s := similarity{compared: len(all), whole: whole}
	for _, other := range all {
		if other.ID == now.ID || !other.live() {
			continue
		}
		s.others = append(s.others, other)
		if c.likeness.confusable(now.Name, other.Name) {
			s.found = append(s.found, other)
		}
	}
	return s, nil
}

// likeness remembers which names were found confusable. That is a fact about two texts alone, and finding it out again for
// every campaign of an account is most of what a preview would cost. It is safe for concurrent use.
type likeness struct {
	mu    sync.Mutex
	known map[[2]string]bool
}

// mostRemembered bounds the memory; a full one is emptied.
const mostRemembered = 1 << 16

func (l *likeness) confusable(a, b string) bool {
	pair := [2]string{min(a, b), max(a, b)}
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, ok := l.known[pair]
	if ok {
		return answer
	}
	if l.known == nil || len(l.known) >= mostRemembered {
		l.known = map[[2]string]bool{}
	}
	answer = visible.Confusable(a, b)
	l.known[pair] = answer
	return answer
}

// needsName says that an ID alone is not enough: there is a neighbour, or it is not known that there is none.
func (s similarity) needsName() bool { return len(s.found) > 0 || !s.whole }

// count is how many look-alikes there are, nil if not all campaigns were compared.
func (s similarity) count() *int64 {
	if !s.whole {
		return nil
	}
	n := int64(len(s.found))
	return &n
}

func (s similarity) named(name string) []campaign {
	var out []campaign
	for _, c := range s.others {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// disguised are those of this campaign and its look-alikes whose names hide characters or mix scripts within a word.
func (s similarity) disguised(now campaign) []campaign {
	var out []campaign
	for _, c := range append([]campaign{now}, s.found...) {
		if visible.HasHidden(c.Name) || len(visible.MixedScript(c.Name)) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// mostNamed is how many campaigns a sentence names before it says how many more there are.
const mostNamed = 5

func joinNames(all []campaign) string {
	return join(all, func(c campaign) string { return fmt.Sprintf("%s (%s)", c.Name, c.ID) })
}

func joinIDs(all []campaign) string {
	return join(all, func(c campaign) string { return c.ID })
}

func join(all []campaign, write func(campaign) string) string {
	parts := make([]string, 0, mostNamed)
	for _, c := range all[:min(len(all), mostNamed)] {
		parts = append(parts, write(c))
	}
	text := strings.Join(parts, ", ")
	if more := len(all) - mostNamed; more > 0 {
		text += fmt.Sprintf(" … (+%d)", more)
	}
	return text
}
