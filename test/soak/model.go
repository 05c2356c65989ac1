package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// The public status machine as a caller may rely on it. It is nondeterministic: clocks, senders and the reconciler move a change
// between any two calls. What no order of the calls, with any such moves between them, explains is a violation.

// standing is what the model knows of one change.
type standing struct {
	Status string
	// Yes and No are the approvers who said so, as bits.
	Yes, No uint8
}

// The statuses, and the two beginnings.
const (
	absent        = "absent"
	needsApproval = "needs_approval"
	pending       = "pending"
	approved      = "approved"
	denied        = "denied"
	rejected      = "rejected"
	canceled      = "canceled"
	expired       = "expired"
	applying      = "applying"
	unknown       = "unknown"
	applied       = "applied"
	notApplied    = "not_applied"
)

// byItself are the moves that no call makes.
var byItself = map[string][]string{
	needsApproval: {expired},
	pending:       {expired},
	approved:      {expired},
	applying:      {applied, notApplied, unknown, approved},
	unknown:       {applied, notApplied},
	notApplied:    {applied},
}

// byCalls are the moves that calls make.
var byCalls = map[string][]string{
	absent:        {needsApproval, approved, denied},
	needsApproval: {pending, canceled},
	pending:       {approved, rejected, canceled},
	approved:      {applying, rejected, canceled},
}

// reach is every status that a change may come to from here, with calls or without.
func reach(from string, tables ...map[string][]string) map[string]bool {
	seen := map[string]bool{from: true}
	for open := []string{from}; len(open) > 0; open = open[1:] {
		for _, table := range tables {
			for _, next := range table[open[0]] {
				if !seen[next] {
					seen[next] = true
					open = append(open, next)
				}
			}
		}
	}
	return seen
}

var futures, rests = func() (all, alone map[string]map[string]bool) {
	all, alone = map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, s := range []string{
		absent, needsApproval, pending, approved, denied, rejected, canceled, expired, applying, unknown, applied, notApplied,
	} {
		all[s], alone[s] = reach(s, byItself, byCalls), reach(s, byItself)
	}
	return all, alone
}()

func claimed(s string) bool {
	return s == applying || s == unknown || s == applied || s == notApplied
}

// step is what one part of a call does to a change: its effect, or what it saw.
type step struct {
	Call
	sees bool
}

// next are the standings that explain the step from s, after anything that moves by itself.
func next(s standing, x step) []standing {
	var out []standing
	for status := range rests[s.Status] {
		now := standing{status, s.Yes, s.No}
		if x.sees {
			if now.Status == x.Status {
				out = append(out, now)
			}
			continue
		}
		for _, then := range effect(now, x.Call) {
			if x.Status == "" || !x.Final() || synthetic(x.Call) || futures[then.Status][x.Status] {
				out = append(out, then)
			}
		}
	}
	return out
}

// synthetic is the one status that is no reading: an apply whose service lost its database after the claim.
func synthetic(c Call) bool {
	return c.Op == Apply && c.Code == "outcome_unknown" && c.Status == applying
}

// effect is what the call does to a change that stands so; nothing where its answer contradicts that.
func effect(s standing, c Call) []standing {
	if !c.Final() {
		return append(does(s, c), s) // it may have been heard or not, now or later
	}
	switch c.Op {
	case Prepare:
		if s.Status == absent {
			return does(s, c)
		}
		return []standing{s}
	case Apply:
		return appliesTo(s, c)
	case Request:
		if s.Status == needsApproval && c.Code == "" {
			return does(s, c)
		}
		return []standing{s}
	case Approve, Reject, Cancel, Resolve:
		return answered(s, c)
	}
	return []standing{s}
}

// does is what the call does if it is heard; nothing where it would be refused.
func does(s standing, c Call) []standing {
	to := func(status string) []standing { return []standing{{status, s.Yes, s.No}} }
	bit := voter(c.Who)
	switch {
	case c.Op == Prepare && s.Status == absent:
		return append(append(to(needsApproval), to(approved)...), to(denied)...)
	case c.Op == Request && s.Status == needsApproval:
		return to(pending)
	case c.Op == Cancel && open(s.Status):
		return to(canceled)
	case c.Op == Apply && s.Status == approved:
		return to(applying)
	case c.Op == Approve && s.Status == pending && s.No&bit == 0:
		return []standing{{approved, s.Yes | bit, s.No}}
	case c.Op == Reject && (s.Status == pending || s.Status == approved):
		return []standing{{rejected, s.Yes, s.No | bit}}
	case c.Op == Resolve && s.Status == unknown:
		return to(c.Said)
	}
	return nil
}

func open(s string) bool { return s == needsApproval || s == pending || s == approved }

// appliesTo is a claim, or none. An apply that says why it did not claim, did not.
func appliesTo(s standing, c Call) []standing {
	switch c.Code {
	case "target_busy", "approval_required", "forbidden", "not_found", "policy_denied":
		return []standing{s}
	case "outcome_unknown":
		if !claimed(s.Status) && s.Status != approved {
			return nil
		}
	}
	return append(does(s, c), s)
}

// answered is a decision, a cancel or a statement whose answer says what became of it.
func answered(s standing, c Call) []standing {
	stays := func(explained bool) []standing {
		if explained {
			return []standing{s}
		}
		return nil
	}
	switch c.Code {
	case "":
		if repeats(s, c) {
			return []standing{s}
		}
		return does(s, c)
	case "in_progress":
		return stays(claimed(s.Status))
	case "expired":
		return stays(s.Status == expired)
	case "conflict":
		return stays(c.Next == "retry_later" || c.Op == Resolve || conflicts(s, c))
	}
	return []standing{s}
}

// repeats: the same was said before.
func repeats(s standing, c Call) bool {
	switch c.Op {
	case Approve:
		return s.Yes&voter(c.Who) != 0 && s.No&voter(c.Who) == 0
	case Reject:
		return s.No&voter(c.Who) != 0
	case Cancel:
		return s.Status == canceled
	}
	return s.Status == c.Said
}

func conflicts(s standing, c Call) bool {
	switch c.Op {
	case Approve:
		return !claimed(s.Status) && s.Status != pending || s.No&voter(c.Who) != 0
	case Reject:
		return slices.Contains([]string{needsApproval, rejected, canceled, denied}, s.Status)
	}
	return s.Status == rejected || s.Status == denied
}

func voter(who string) uint8 { return 1 << (slices.Index(approvers, who) + 1) }

// operations are the parts of one change's calls, in porcupine's terms. A call that was not answered, or only with an internal
// error, may take effect at any time after its begin: it returns at infinity.
func operations(calls []Call) []porcupine.Operation {
	var all []porcupine.Operation
	add := func(c Call, sees bool, until int64) {
		all = append(all, porcupine.Operation{ClientId: c.Client, Input: step{c, sees}, Call: int64(c.Began), Return: until})
	}
	for _, c := range calls {
		if c.Op != Read && c.Op != Probe {
			until := int64(math.MaxInt64)
			if c.Final() && c.Code != "target_unavailable" {
				until = int64(c.Ended)
			}
			add(c, false, until)
		}
		if c.Answered() && c.Status != "" && !synthetic(c) {
			add(c, true, int64(c.Ended))
		}
	}
	return all
}

// model checks the history of one change: the partition is by preview.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{standing{Status: absent}} },
	Step: func(state, input, _ any) []any {
		var out []any
		for _, s := range next(state.(standing), input.(step)) {
			out = append(out, s)
		}
		return out
	},
	Equal: func(a, b any) bool { return a.(standing) == b.(standing) },
	DescribeOperation: func(input, _ any) string {
		x := input.(step)
		if x.sees {
			return fmt.Sprintf("%s saw %s", x.Op, x.Status)
		}
		return fmt.Sprintf("%s by %s: %s", x.Op, x.Who, x.Code)
	},
}).ToModel()
