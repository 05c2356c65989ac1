package adbudget

import (
	"context"
	"fmt"
	"strings"

	"github.com/cutonce/cutonce/internal/visible"
)

// similarity is what came of comparing a campaign's name with all others that are live.
type similarity struct {
	found []lookalike
	// others are all campaigns that were compared, for finding the one that was meant.
	others   []campaign
	compared int
	// whole says that there were no more to compare with.
	whole bool
}

// lookalike is another live campaign that a person could take for this one.
type lookalike struct {
	campaign
	// confusable: the two names look the same when printed; otherwise one merely comes near the other.
	confusable bool
}

// similar compares the campaign's name with those of all live campaigns that the platform shows.
func (c *Connector) similar(ctx context.Context, now campaign) (similarity, error) {
	all, whole, err := c.platform.all(ctx, c.cfg.CompareUpTo)
	if err != nil {
		return similarity{}, err
	}
	s := similarity{compared: len(all), whole: whole}
	mine := faceOf(now.Name)
	for _, other := range all {
		if other.ID == now.ID || !other.live() {
			continue
		}
		s.others = append(s.others, other)
		if near, same := mine.resembles(faceOf(other.Name)); near {
			s.found = append(s.found, lookalike{campaign: other, confusable: same})
		}
	}
	return s, nil
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

func (s similarity) campaigns() []campaign {
	out := make([]campaign, 0, len(s.found))
	for _, l := range s.found {
		out = append(out, l.campaign)
	}
	return out
}

func (s similarity) confusable() similarity {
	var only similarity
	for _, l := range s.found {
		if l.confusable {
			only.found = append(only.found, l)
		}
	}
	return only
}

// mostNamed is how many campaigns a sentence names before it says how many more there are.
const mostNamed = 5

// names lists the look-alikes for a sentence.
func (s similarity) names() string { return joinNames(s.campaigns()) }

func joinNames(all []campaign) string {
	return join(all, func(c campaign) string { return fmt.Sprintf("“%s” (%s)", c.Name, c.ID) })
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

// face is a name as people see it: what it looks like, and its letters without the marks between them.
type face struct {
	skeleton string
	letters  []rune
}

func faceOf(name string) face {
	return face{skeleton: visible.Skeleton(name), letters: []rune(visible.Fold(name))}
}

// resembles reports whether two names could be taken for each other; same means that they look alike letter for letter. Near are: one
// begins or ends with the other, or one edit separates them (two from twelve letters on). That is wide on purpose: the cost
// of a false alarm is that the caller names the campaign.
func (f face) resembles(g face) (near, same bool) {
	if f.skeleton == g.skeleton {
		return true, true
	}
	short, long := f.letters, g.letters
	if len(short) > len(long) {
		short, long = long, short
	}
	const leastStem, longName = 3, 12
	if len(short) >= leastStem {
		if s, l := string(short), string(long); strings.HasPrefix(l, s) || strings.HasSuffix(l, s) {
			return true, false
		}
	}
	allowed := 1
	if len(short) >= longName {
		allowed = 2
	}
	return len(short) > allowed && within(short, long, allowed), false
}

// within reports whether at most n edits (insert, delete, replace) turn a into b; a is not longer. Only a band of 2n+1
// cells of the usual table matters, so its cost is linear.
func within(a, b []rune, n int) bool {
	if len(b)-len(a) > n {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		if i > n {
			row[0] = n + 1
		}
		from, to := max(1, i-n), min(len(b), i+n)
		if from > 1 {
			row[from-1], diagonal = n+1, row[from-1]
		}
		for j := from; j <= to; j++ {
			above := n + 1
			if j < i+n {
				above = row[j]
			}
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, above+1, row[j-1]+1)
		}
	}
	return row[len(b)] <= n
}
