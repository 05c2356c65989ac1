package approvals_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func yes(person string, groups ...string) preview.Vote {
	return preview.Vote{Person: person, Groups: groups, Approve: true}
}

func no(person string, groups ...string) preview.Vote {
	return preview.Vote{Person: person, Groups: groups}
}

func seats(count int, anyOf ...string) policy.Seats { return policy.Seats{AnyOf: anyOf, Count: count} }

func TestQuorum(t *testing.T) {
	t.Parallel()
	type needs = policy.Requirement
	type votes = []preview.Vote
	one := needs{seats(1, "leads")}
	both := needs{seats(1, "leads"), seats(1, "finance")}
	for _, tc := range []struct {
		name    string
		needs   needs
		votes   votes
		met     bool
		vetoed  bool
		missing needs
	}{
		{"nobody yet", one, nil, false, false, one},
		{"one of one", one, votes{yes("kim", "leads")}, true, false, nil},
		{"of another group", one, votes{yes("kim", "sales")}, false, false, one},
		{"of no group", one, votes{yes("kim")}, false, false, one},
		{"two needed, one came", needs{seats(2, "leads")}, votes{yes("kim", "leads")}, false, false, one},
		{"two needed, the same person twice", needs{seats(2, "leads")}, votes{yes("kim", "leads"), yes("KIM", "leads")}, false, false, one},
		{"two needed, two came", needs{seats(2, "leads")}, votes{yes("kim", "leads"), yes("lee", "leads")}, true, false, nil},
		{"peer AND manager: the peer alone", both, votes{yes("kim", "leads")}, false, false, needs{seats(1, "finance")}},
		{"a person in both groups fills one seat", both, votes{yes("kim", "leads", "finance")}, false, false, needs{seats(1, "finance")}},
		{"AND is met by both", both, votes{yes("kim", "leads"), yes("lee", "finance")}, true, false, nil},
		{"OR inside one seat", needs{seats(1, "finance", "legal")}, votes{yes("kim", "legal")}, true, false, nil},
		// Greedy seating would give kim the first seat and leave lee without one.
		{"seats are given so that all fit", both, votes{yes("kim", "leads", "finance"), yes("lee", "leads")}, true, false, nil},
		{"so in the other order", both, votes{yes("lee", "leads"), yes("kim", "leads", "finance")}, true, false, nil},
		{"a chain of three", needs{seats(1, "a"), seats(1, "b"), seats(1, "c")},
			votes{yes("x", "a", "b"), yes("y", "b", "c"), yes("z", "a")}, true, false, nil},
		{"a veto beats a met quorum", one, votes{yes("kim", "leads"), no("lee", "leads")}, false, true, one},
		{"a veto before", one, votes{no("lee", "leads"), yes("kim", "leads")}, false, true, one},
		{"one's own veto after one's approval", one, votes{yes("kim", "leads"), no("kim", "leads")}, false, true, one},
		{"more than asked for", one, votes{yes("kim", "leads"), yes("lee", "leads")}, true, false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := approvals.Quorum(tc.needs, tc.votes)
			if got.Met != tc.met || got.Vetoed != tc.vetoed {
				t.Errorf("got met %v, vetoed %v, want %v, %v", got.Met, got.Vetoed, tc.met, tc.vetoed)
			}
			if diff := cmp.Diff(tc.missing, got.Missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

var groups = []string{"a", "b", "c", "d"}

func drawNeeds(t *rapid.T) policy.Requirement {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.Seats {
		return policy.Seats{
			AnyOf: rapid.SliceOfNDistinct(rapid.SampledFrom(groups), 1, 3, rapid.ID).Draw(t, "any of"),
			Count: rapid.IntRange(1, 2).Draw(t, "count"),
		}
	}), 1, 3).Draw(t, "needs")
}

func drawApprovals(t *rapid.T) []preview.Vote {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) preview.Vote {
		return yes(rapid.SampledFrom([]string{"p", "P", "q", "r", "s", "S", "u"}).Draw(t, "person"),
			rapid.SliceOfNDistinct(rapid.SampledFrom(groups), 0, 4, rapid.ID).Draw(t, "groups")...)
	}), 0, 6).Draw(t, "votes")
}

// fillable tries every seating: the slow truth.
func fillable(needs policy.Requirement, people []preview.Vote) int {
	var open [][]string
	for _, s := range needs {
		for range s.Count {
			open = append(open, s.AnyOf)
		}
	}
	return most(open, people)
}

func most(open [][]string, people []preview.Vote) int {
	if len(open) == 0 {
		return 0
	}
	best := most(open[1:], people) // the seat stays empty
	for i, p := range people {
		if !shares(open[0], p.Groups) {
			continue
		}
		others := append(append([]preview.Vote{}, people[:i]...), people[i+1:]...)
		best = max(best, 1+most(open[1:], others))
	}
	return best
}

func shares(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

// firstVotes keeps each person's first approval, as one vote each.
func firstVotes(votes []preview.Vote) []preview.Vote {
	var out []preview.Vote
	seen := map[string]bool{}
	for _, v := range votes {
		if name := strings.ToLower(v.Person); !seen[name] {
			seen[name] = true
			out = append(out, v)
		}
	}
	return out
}

func count(r policy.Requirement) int {
	n := 0
	for _, s := range r {
		n += s.Count
	}
	return n
}

func TestQuorumSeatsAsManyAsAnySeatingCould(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), drawApprovals(t)
		got := approvals.Quorum(needs, votes)
		want := fillable(needs, firstVotes(votes))
		if missing := count(got.Missing); missing != count(needs)-want || got.Met != (missing == 0) {
			t.Fatalf("got met %v, %d missing, want %d of %d seated", got.Met, missing, want, count(needs))
		}
	})
}

func TestQuorumDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), firstVotes(drawApprovals(t))
		want := approvals.Quorum(needs, votes)
		got := approvals.Quorum(rapid.Permutation(needs).Draw(t, "needs again"), rapid.Permutation(votes).Draw(t, "votes again"))
		if got.Met != want.Met || count(got.Missing) != count(want.Missing) || got.Approved != want.Approved {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestAnyRejectionIsAVeto(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), drawApprovals(t)
		at := rapid.IntRange(0, len(votes)).Draw(t, "at")
		votes = append(votes[:at:at], append([]preview.Vote{no("veto")}, votes[at:]...)...)
		if got := approvals.Quorum(needs, votes); got.Met || !got.Vetoed {
			t.Fatalf("got met %v, vetoed %v, want a veto", got.Met, got.Vetoed)
		}
	})
}

func TestAnotherApprovalNeverUndoesAQuorum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), drawApprovals(t)
		fewer := approvals.Quorum(needs, votes)
		more := approvals.Quorum(needs, append(votes, yes("new", rapid.SampledFrom(groups).Draw(t, "group"))))
		if fewer.Met && !more.Met || count(more.Missing) > count(fewer.Missing) {
			t.Fatalf("got %+v with one more approval, want no less than %+v", more, fewer)
		}
	})
}

func abstained(needs policy.Requirement) policy.Ruling {
	return policy.Ruling{Needs: needs, Abstain: true}
}

// drawVotes are approvals with some rejections among them.
func drawVotes(t *rapid.T) []preview.Vote {
	votes := drawApprovals(t)
	for i := range votes {
		if rapid.IntRange(0, 3).Draw(t, "rejects") == 0 {
			votes[i].Approve = false
		}
	}
	return votes
}

func TestARejectionThatIsNoVetoCountsAsIfItsAuthorHadNotCome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), drawVotes(t)
		gone := map[string]bool{}
		for _, v := range votes {
			if !v.Approve {
				gone[strings.ToLower(v.Person)] = true
			}
		}
		var others []preview.Vote
		for _, v := range votes {
			if !gone[strings.ToLower(v.Person)] {
				others = append(others, v)
			}
		}
		got, want := approvals.Tally(abstained(needs), votes), approvals.Quorum(needs, others)
		if diff := cmp.Diff(want, got); diff != "" || got.Vetoed {
			t.Fatalf("vetoed %v (-without them +got):\n%s", got.Vetoed, diff)
		}
	})
}

func TestARejectionNeverHelps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), drawVotes(t)
		before := approvals.Tally(abstained(needs), votes)
		by := rapid.SampledFrom([]string{"p", "Q", "r", "nobody"}).Draw(t, "by")
		after := approvals.Tally(abstained(needs), append(votes, no(by, groups...)))
		if after.Met && !before.Met || count(after.Missing) < count(before.Missing) || after.Approved > before.Approved {
			t.Fatalf("got %+v after a rejection, had %+v", after, before)
		}
		// And nothing that its author says later brings them back.
		if diff := cmp.Diff(after, approvals.Tally(abstained(needs), append(votes, no(by, groups...), yes(by, groups...)))); diff != "" {
			t.Fatalf("an approval after it (-before +after):\n%s", diff)
		}
	})
}

func TestWithoutSayingSoARejectionIsAVeto(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		needs, votes := drawNeeds(t), drawVotes(t)
		if diff := cmp.Diff(approvals.Quorum(needs, votes), approvals.Tally(policy.Ruling{Needs: needs}, votes)); diff != "" {
			t.Fatalf("(-quorum +tally):\n%s", diff)
		}
	})
}
