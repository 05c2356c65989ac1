package approvals

import (
	"slices"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// Verdict is what the votes so far amount to.
type Verdict struct {
	Met      bool
	Vetoed   bool
	Missing  policy.Requirement
	Approved int
}

// Quorum counts votes against a requirement: an AND of seats, each filled by distinct people of its groups. A person fills
// one seat, whatever groups they are in. A rejection is a veto. It is a pure function of its arguments: the votes must be
// those of the current round.
func Quorum(needs policy.Requirement, votes []preview.Vote) Verdict {
	var yes []preview.Vote
	for _, v := range votes {
		if !v.Approve {
			return Verdict{Vetoed: true, Missing: needs}
		}
		if !slices.ContainsFunc(yes, func(o preview.Vote) bool { return actor.SamePerson(o.Person, v.Person) }) {
			yes = append(yes, v)
		}
	}
	seats := expand(needs)
	holder := seat(seats, yes)
	missing := missingSeats(needs, holder)
	return Verdict{Met: len(missing) == 0, Missing: missing, Approved: len(yes)}
}

// Tally is Quorum by what a ruling says of rejections: a veto, unless it lets them take away one person, whose approval then counts
// no more. Whether anybody else is left to fill the seats is not known here: groups are known of those who come.
func Tally(r policy.Ruling, votes []preview.Vote) Verdict {
	if !r.Abstain {
		return Quorum(r.Needs, votes)
	}
	return Quorum(r.Needs, remaining(votes))
}

// remaining are the approvals of those who have not rejected.
func remaining(votes []preview.Vote) []preview.Vote {
	var left []preview.Vote
	for _, v := range votes {
		away := slices.ContainsFunc(votes, func(o preview.Vote) bool { return !o.Approve && actor.SamePerson(o.Person, v.Person) })
		if !away {
			left = append(left, v)
		}
	}
	return left
}

// expand turns "two of ads-leads" into two single seats.
func expand(needs policy.Requirement) [][]string {
	var seats [][]string
	for _, s := range needs {
		for range s.Count {
			seats = append(seats, s.AnyOf)
		}
	}
	return seats
}

// seat finds the largest matching of people to seats by augmenting paths, so that a person in two groups never blocks a
// quorum that another seating would meet. It returns, for each seat, the index of its holder or -1.
func seat(seats [][]string, people []preview.Vote) []int {
	holder := make([]int, len(seats))
	for i := range holder {
		holder[i] = -1
	}
	for person := range people {
		place(person, seats, people, holder, make([]bool, len(seats)))
	}
	return holder
}

func place(person int, seats [][]string, people []preview.Vote, holder []int, tried []bool) bool {
	for i, groups := range seats {
		if tried[i] || !intersects(groups, people[person].Groups) {
			continue
		}
		tried[i] = true
		if holder[i] < 0 || place(holder[i], seats, people, holder, tried) {
			holder[i] = person
			return true
		}
	}
	return false
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(g string) bool { return slices.Contains(b, g) })
}

func missingSeats(needs policy.Requirement, holder []int) policy.Requirement {
	var missing policy.Requirement
	i := 0
	for _, s := range needs {
		empty := 0
		for range s.Count {
			if holder[i] < 0 {
				empty++
			}
			i++
		}
		if empty > 0 {
			missing = append(missing, policy.Seats{AnyOf: s.AnyOf, Count: empty})
		}
	}
	return missing
}
