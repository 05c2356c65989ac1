package policy

import "slices"

// people is how many distinct people it takes.
func (r Requirement) people() int {
	total := 0
	for _, s := range r {
		total += s.Count
	}
	return total
}

// and joins two rules' requirements: whoever satisfies the result satisfies both. Each seat of one is paired with at most
// one seat of the other, and the stricter of the pair stays; what has no pair is added. So two rules that ask for one of the
// same group ask for one person, while one rule that names two seats keeps asking for two.
func (r Requirement) and(other Requirement) Requirement {
	out := slices.Clone(r)
	paired := make([]bool, len(r))
	for _, seat := range other {
		i := r.pair(seat, paired)
		if i < 0 {
			out = append(out, seat)
			continue
		}
		paired[i] = true
		if seat.implies(r[i]) {
			out[i] = seat
		}
	}
	return out
}

// pair finds a seat, not paired yet, that is stricter or milder than this one; -1 if there is none.
func (r Requirement) pair(seat Seats, paired []bool) int {
	for i, have := range r {
		if !paired[i] && (have.implies(seat) || seat.implies(have)) {
			return i
		}
	}
	return -1
}

// implies reports whether people who fill s also fill t.
func (s Seats) implies(t Seats) bool {
	return s.Count >= t.Count && !slices.ContainsFunc(s.AnyOf, func(group string) bool { return !slices.Contains(t.AnyOf, group) })
}
