package store_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// financeAndLegal is the scenario's policy as an operator writes it.
func financeAndLegal(t *testing.T) policy.Ruling {
	t.Helper()
	rules, err := policy.Load(fstest.MapFS{"rules.yaml": {Data: []byte(`version: 1
default:
  require:
    - {any_of: [finance], count: 1}
    - {any_of: [legal], count: 1}
  message: {en: Finance and legal must agree., ja: 経理と法務の承認が必要です。}
rules: []
`)}})
	if err != nil {
		t.Fatal(err)
	}
	ruling := rules.Evaluate(policy.Facts{Action: "text_change", Requester: agent("bot")})
	ruling.Version = policyVersion
	return ruling
}

// TestHeadToHead06_OneOfFinanceAndOneOfLegal: the requester is of finance.
func TestHeadToHead06_OneOfFinanceAndOneOfLegal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ruling := financeAndLegal(t)
	say := func(p preview.Preview, who string, groups ...string) (preview.Preview, error) {
		return r.approvals.Decide(t.Context(), person(who, groups...), p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
	}
	want := func(name string, p preview.Preview, err error, state preview.State, missing string) {
		t.Helper()
		if err != nil || p.State != state || r.approvals.Missing(p).String() != missing {
			t.Errorf("%s: got %s with %q missing, %v, want %s with %q", name, p.State, r.approvals.Missing(p), err, state, missing)
		}
	}
	p := r.asked("a", ruling)
	for _, spelling := range []string{"sato", "SATO"} {
		requester := person(spelling, "finance", "legal")
		_, err := r.approvals.Decide(t.Context(), requester, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
		if fault.From(err).Key != "fault.forbidden.own_change" {
			t.Errorf("the requester as %s: got %v, want own_change", spelling, err)
		}
	}
	got, err := say(p, "kim", "finance")
	want("one of finance", got, err, preview.Pending, "1 × legal")
	got, err = say(p, "lee", "finance")
	want("two of finance", got, err, preview.Pending, "1 × legal")
	why, err := r.commits.Why(t.Context(), person("kim", "finance"), p.ID)
	if diff := cmp.Diff(preview.Requirement{{AnyOf: []string{"legal"}, Count: 1}}, why.Missing); err != nil || diff != "" || !why.Until.Equal(got.Deadline) {
		t.Errorf("why: until %s, %v (-want +got):\n%s", why.Until, err, diff)
	}
	all, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	if said := (answer.Writer{Texts: all.In("en")}).Explain(why).Message; said != "The change waits for one member of legal (rule default)." {
		t.Errorf("got %q", said)
	}
	got, err = say(p, "park", "legal")
	want("finance and legal", got, err, preview.Approved, "")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}

	p = r.asked("b", ruling)
	got, err = say(p, "choi", "finance", "legal")
	if err != nil || got.State != preview.Pending {
		t.Errorf("one person in both: got %s, %v, want one seat filled", got.State, err)
	}
	if got, err = say(p, "CHOI", "legal"); err != nil || got.State != preview.Pending || len(got.Votes) != 1 {
		t.Errorf("the same again: got %s with %d votes, %v", got.State, len(got.Votes), err)
	}
	got, err = say(p, "kim", "finance")
	want("and one of finance", got, err, preview.Approved, "")
}

// What has been withdrawn or has lapsed waits for nobody, anywhere, whether or not a sweep has passed; only its requester withdraws it.
func TestWhatIsOverIsPendingNowhere(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, p preview.Preview){
		"withdrawn": func(r *rig, p preview.Preview) {
			for _, who := range []actor.Actor{person("kim", "leads"), admin("lee"), agent("bot2")} {
				if _, err := r.previews.Cancel(r.t.Context(), who, p.ID, "not mine"); err == nil {
					r.t.Errorf("%s withdrew it", who.Subject)
				}
			}
			if _, err := r.previews.Cancel(r.t.Context(), agent("bot"), p.ID, "no longer wanted"); err != nil {
				r.t.Error(err)
			}
		},
		"lapsed": func(r *rig, p preview.Preview) { r.shortly(p.ID, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.pending("a")
			end(r, p)
			items, _, _, err := r.approvals.Queue(t.Context(), person("kim", "leads"), approvals.Page{})
			if err != nil || len(items) != 0 {
				t.Errorf("the queue holds %d, %v, want none", len(items), err)
			}
			if b, err := r.store.Backlog(t.Context()); err != nil || b.Pending != 0 || b.PendingAge != 0 {
				t.Errorf("the metrics count %d of %.0f s, %v, want none", b.Pending, b.PendingAge, err)
			}
			changes, _, err := r.commits.List(t.Context(), person("kim", "leads"), commit.Filter{Status: commit.StatusPending})
			if err != nil || len(changes) != 0 {
				t.Errorf("the list by status holds %d, %v, want none", len(changes), err)
			}
			why, err := r.commits.Why(t.Context(), person("kim", "leads"), p.ID)
			if err != nil || why.Mover != "nobody" || len(why.Missing) != 0 || !why.Until.IsZero() {
				t.Errorf("why: got %s, %v until %s, %v, want nobody to move", why.Mover, why.Missing, why.Until, err)
			}
			if _, err := r.approve(p, "kim"); err == nil {
				t.Error("it was approved after its end")
			}
		})
	}
}
