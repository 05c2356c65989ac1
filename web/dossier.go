package web

import (
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/preview"
)

// dossier is a change as the review page and its own page show it.
type dossier struct {
	Change answer.Change
	// Asks is who asks, for whom, in words.
	Asks string
	// Said is why the change stands where it stands.
	Said string
	// WaitsFor is the change that holds the same target, empty if none.
	WaitsFor string
	// Left is how long is left when the page is made, empty where no clock runs.
	Left string
	// ReadAgo is how long before this page the target was read, in words. What it showed is what was prepared.
	ReadAgo string
	// MadeAt is the database's time of all that is shown.
	MadeAt time.Time
	// Reason and Justification are the requester's own words: unverified, plain text.
	Reason, Justification string
	Quorum                *quorum
	Reversible            bool
	// Document is the canonical JSON under the digest, byte for byte; empty where it holds what the page hides.
	Document string
	Reveal   revealForm
	// Apply is the button of whoever may apply.
	Apply applyForm
}

// quorum is how far the approval is.
type quorum struct {
	// Confirm says that the requester's own person confirms, and nobody votes.
	Confirm    bool
	Have, Need int
	// Missing says who may still act, one text for each kind of seat.
	Missing []string
	Votes   []answer.Vote
	// Voted is this person's own decision in words, empty if there is none.
	Voted string
	// WhyNot says in words why this person cannot decide, empty if they can.
	WhyNot string
}

// dossierOf writes a change for the person who reads it.
func (c *console) dossierOf(v *visit, y commit.Why) dossier {
	p := y.Change.Preview
	d := dossier{
		Change: v.writer().Change(y.Change), Asks: v.asks(p.Requester), Said: v.explained(y), WaitsFor: y.WaitsFor,
		MadeAt: y.Change.Now.UTC(), Reason: p.Input.Text("reason"), Justification: p.Justification, Document: v.shownDocument(y), Reveal: v.revealFormOf(p),
		Reversible: p.Impact.Reversible, ReadAgo: v.readAgo(y.Change.Now.Sub(p.CreatedAt)),
	}
	if !y.Until.IsZero() {
		d.Left = v.left(y.Until.Sub(y.Change.Now))
	}
	d.Apply = c.applyFormOf(v, y)
	if why := d.Apply.hindrance(); why != "" && y.Text.Key == whyApproved {
		d.Said = why
	}
	if len(p.Ruling.Needs) > 0 || p.Ruling.Confirm {
		d.Quorum = v.quorumOf(c.Approvals.Item(v.who, p))
	}
	return d
}

// whyApproved is the explanation of a change in whose way nothing was seen to stand. What the policy says by now is asked by whoever may
// apply it.
const whyApproved = "why.approved"

func (v *visit) explained(y commit.Why) string {
	said := v.writer().Text(y)
	if text := v.forPeople(said.Key, said.Args); text != "" {
		return text
	}
	return v.writer().Explain(y).Message
}

// asks names the requester: "ads-bot asks for sato@agency.example".
func (v *visit) asks(a actor.Actor) string {
	name, behind := visible.Text(a.Subject), visible.Text(a.For)
	if behind == "" {
		behind = visible.Text(a.Owner)
	}
	if a.Kind == actor.Human || behind == "" {
		return v.t("web.asks."+string(a.Kind), "name", name)
	}
	return v.t("web.asks."+string(a.Kind)+".for", "name", name, "for", behind)
}

func (v *visit) quorumOf(item approvals.Item) *quorum {
	q := &quorum{Have: item.Quorum.Approved}
	for _, seats := range item.Preview.Ruling.Needs {
		q.Need += seats.Count
	}
	for _, seats := range item.Quorum.Missing {
		q.Missing = append(q.Missing, v.t("web.quorum.missing", "n", seats.Count, "groups", v.writer().AnyOf(seats.AnyOf)))
	}
	if p := item.Preview; p.Ruling.Confirm {
		q.Confirm, q.Need = true, 1
		if p.Confirmed != nil {
			q.Have = 1
			q.Voted = v.t("web.confirmed", "by", p.Confirmed.Name, "at", v.stamp(p.Confirmed.At))
		} else {
			q.Missing = []string{v.t("web.quorum.confirm", "by", p.Requester.HumanName())}
		}
	}
	for _, vote := range item.Preview.Votes {
		if vote.Round != item.Preview.Round {
			continue
		}
		q.Votes = append(q.Votes, answer.Vote{
			Name: visible.Text(vote.Name), Approve: vote.Approve, Reason: vote.Reason, At: vote.At.UTC(), Digest: vote.Digest.String(),
		})
	}
	if own := v.votedIn(item); own != nil {
		q.Voted = v.t("web.voted."+yesNo(own.Approve), "at", v.stamp(own.At))
	}
	if item.WhyNot != nil {
		q.WhyNot = v.problemOf(item.WhyNot).Message
	}
	return q
}

// votedIn is this person's own decision in the present round, nil if there is none.
func (v *visit) votedIn(item approvals.Item) *preview.Vote {
	for i, vote := range item.Preview.Votes {
		if vote.Round == item.Preview.Round && actor.SamePerson(vote.Person, v.who.Person()) {
			return &item.Preview.Votes[i]
		}
	}
	return nil
}

func yesNo(approve bool) string {
	if approve {
		return "approve"
	}
	return "reject"
}

// left, since and readAgo are rough times for people; the exact ones stand beside them.
func (v *visit) left(d time.Duration) string    { return v.rough("web.left.", d) }
func (v *visit) since(d time.Duration) string   { return v.rough("web.since.", d) }
func (v *visit) readAgo(d time.Duration) string { return v.rough("web.read.", d) }

func (v *visit) rough(family string, d time.Duration) string {
	switch {
	case d <= 0:
		return v.t(family + "none")
	case d < time.Minute:
		return v.t(family + "moment")
	case d < 2*time.Hour:
		return v.t(family+"minutes", "n", int(d.Minutes()))
	case d < 48*time.Hour:
		return v.t(family+"hours", "n", int(d.Hours()))
	}
	return v.t(family+"days", "n", int(d.Hours()/24))
}

// nameOf is what a page's title calls a target.
func nameOf(t answer.Target) string {
	if t.Name == "" {
		return t.ID
	}
	return t.Name
}

// reviewable reports whether anybody may still approve, or reject, in this status: a rejection is heard until the claim.
func reviewable(s commit.Status) (approve, reject bool) {
	return s == commit.StatusPending, s == commit.StatusPending || s == commit.StatusApproved
}

// readable loads a change for this person; unknown and foreign IDs get the same answer.
func (c *console) readable(v *visit) (preview.ID, commit.Why, error) {
	id, err := v.changeID()
	if err != nil {
		return id, commit.Why{}, err
	}
	y, err := c.Commits.Why(v.r.Context(), v.who, id)
	return id, y, err
}

// refused reports whether an error is an answer about a change that the person may see, to be shown beside it; anything else
// is a page of its own.
func refused(err error) bool {
	if fault.From(err).Key == keyFresh {
		return true
	}
	switch fault.CodeOf(err) {
	case fault.Internal, fault.NotFound, fault.Unauthenticated, fault.TooLarge:
		return false
	}
	return true
}
