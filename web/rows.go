package web

import (
	"slices"
	"strings"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/visible"
)

// row is one field of a change as the page of a decision shows it.
type row struct {
	answer.Row
	// Name is the field's, with hidden characters made visible.
	Name string
	// Risky rows are to be seen before the change is approved.
	Risky bool
}

// oneScreen is how many rows are seen at once. In a longer list each amount is risky.
const oneScreen = 6

// rowsOf orders the fields of a change, the riskiest first: what hides something, what was not known before, amounts, the rest. Fields
// that stay as they are come apart. Nothing is left out.
func rowsOf(changes []answer.Row) (rows []row, same []answer.Row) {
	var moving []answer.Row
	for _, c := range changes {
		if stays(c) {
			same = append(same, c)
			continue
		}
		moving = append(moving, c)
	}
	slices.SortStableFunc(moving, func(a, b answer.Row) int { return danger(a) - danger(b) })
	for _, c := range moving {
		at := danger(c)
		rows = append(rows, row{Row: c, Name: visible.Text(c.Field), Risky: at <= unknownBefore || at == amounts && len(moving) > oneScreen})
	}
	return rows, same
}

func stays(r answer.Row) bool {
	if r.Changed != nil {
		return !*r.Changed // the values may be masked
	}
	return r.Before != nil && r.After != nil && *r.Before == *r.After
}

// The kinds of row, the riskiest first.
const (
	hides = iota
	unknownBefore
	amounts
	others
)

func danger(r answer.Row) int {
	switch {
	case r.Sensitive, odd(r.Label) || odd(shown(r.Before)) || odd(shown(r.After)):
		return hides
	case r.Before == nil:
		return unknownBefore
	case r.After != nil && r.After.Amount != "":
		return amounts
	}
	return others
}

func odd(text string) bool { return visible.Odd(text) }

func shown(v *answer.Value) string {
	if v == nil {
		return ""
	}
	return v.Shown
}

// unseen are the risky fields of a change that a form does not say were seen.
func unseen(changes []answer.Row, ticked []string) []string {
	var missing []string
	rows, _ := rowsOf(changes)
	for _, r := range rows {
		if r.Risky && !slices.Contains(ticked, r.Name) {
			missing = append(missing, r.Name)
		}
	}
	return missing
}

// headline parts the numbers of an impact: the differences, and what is not known, come first. Where there are no differences, all do.
func headline(figures []answer.Figure) (first, rest []answer.Figure) {
	for _, f := range figures {
		if strings.Contains(f.Name, "delta") || f.Value == nil {
			first = append(first, f)
			continue
		}
		rest = append(rest, f)
	}
	if len(first) == 0 {
		return figures, nil
	}
	return first, rest
}
