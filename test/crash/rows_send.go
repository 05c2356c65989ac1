package main

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

func x1(w *world) {
	w.start(fleet.Replica{})
	lost, late := w.prepared(small), w.prepared(small)
	w.fault(target.OpChange, lost, target.Step{Action: target.DropAfter})
	w.fault(target.OpChange, late, target.Step{Action: target.HoldAfter, Gate: late.id})
	see := []func(){w.blind(lost), w.blind(late)}
	for _, c := range []*change{lost, late} {
		r := w.apply(c)
		want(w, "an apply without a reply", r.HTTP, http.StatusGatewayTimeout)
		want(w, "an apply without a reply", r.Code, "outcome_unknown")
		w.arrived(target.StageEffect, c)
		busy, err := w.agent().Apply(w.ctx, w.preparedBehind(c))
		w.must(err)
		want(w, "another change of the same target", busy.Code, "target_busy")
	}
	w.recover()
	for _, c := range []*change{lost, late} {
		want(w, "the status after the crash", w.status(c).Status, "unknown")
	}
	w.free()
	for _, s := range see {
		s()
	}
	w.ends(lost, applied(commit.ByLookup))
	w.ends(late, applied(commit.ByLookup))
	w.must(w.f.Ads.Release(w.ctx, late.id))
}

// preparedBehind is another change of the same target, which rests approved.
func (w *world) preparedBehind(c *change) string {
	behind := w.preparedAt(c.campaign, small+1)
	w.ends(behind, rests(commit.StatusApproved))
	return behind.id
}

func x2(w *world) {
	gateway := w.plainFront()
	gateway.at("control", onlyCut)
	want(w, "requests of Go's own client, which sends again", w.sendsAgain(gateway), 2)

	w.start(fleet.Replica{Target: gateway.url})
	c := w.prepared(small) // leaves a connection behind, if any are kept
	want(w, "an apply that is left alone", w.apply(c).Status, "applied", "unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))

	c = w.prepared(small)
	gateway.at(c.campaign, gateway.doneThenCut)
	want(w, "an apply whose connection was closed", w.apply(c).Code, "outcome_unknown", "")
	w.ends(c, applied(commit.ByLookup))
	want(w, "requests at the gateway", gateway.count(c.campaign), 1)
	want(w, "requests at the platform", w.tally(c.id).Received, 1)

	c = w.prepared(small)
	gateway.at(c.campaign, onlyCut)
	want(w, "an apply whose connection was closed", w.apply(c).Code, "outcome_unknown", "target_refused")
	w.ends(c, absent)
	want(w, "requests at the gateway", gateway.count(c.campaign), 1)
}

// sendsAgain shows that the trap is there: a client as anybody would write it repeats a change by itself.
func (w *world) sendsAgain(gateway *front) int {
	client := &http.Client{Transport: &http.Transport{}, Timeout: shortly}
	warm, err := client.Get(gateway.url + "/healthz")
	w.must(err)
	_, err = io.Copy(io.Discard, warm.Body) // or the connection is not used again
	w.must(errors.Join(err, warm.Body.Close()))
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPatch, gateway.url+"/v1/campaigns/control", strings.NewReader("{}"))
	w.must(err)
	request.Header.Set("Idempotency-Key", "control")
	if answer, err := client.Do(request); err == nil {
		w.must(answer.Body.Close())
	}
	return gateway.count("control")
}

func x3(w *world) {
	gateway := w.plainFront()
	// A busy machine must have the time to hear a refusal, which nothing else could prove.
	w.start(fleet.Replica{Target: gateway.url, Env: []string{"CUTONCE_CLOCK_SEND=2s", "CUTONCE_CLOCK_LEASE=3s"}})
	type sent struct {
		what string
		c    *change
		call *call
		end  ending
	}
	var all []sent
	send := func(what string, end ending, steps ...target.Step) {
		c := w.prepared(small)
		if len(steps) > 0 {
			w.fault(target.OpChange, c, steps...)
		} else {
			gateway.at(c.campaign, answering(http.StatusUnprocessableEntity, `{"error":{"code":"amount_out_of_range","message":"no"}}`))
		}
		all = append(all, sent{what, c, nil, end})
	}
	for _, status := range []int{409, 500, 503, 429, 202} {
		send(http.StatusText(status)+", nothing done", absent, target.Step{Action: target.StatusBefore, Status: status})
		send(http.StatusText(status)+", done", applied(commit.ByLookup), target.Step{Action: target.StatusAfter, Status: status})
	}
	send("a torn 200", applied(commit.ByLookup), target.Step{Action: target.TruncateBody})
	send("a documented refusal", notApplied(commit.ByReceipt, commit.Refused))
	for i := range all {
		all[i].call = w.applying(all[i].c)
	}
	for _, s := range all {
		r := w.answered(s.call)
		switch {
		case s.end.status == commit.StatusApplied: // it may have been found by now
			want(w, s.what, r.Code, "outcome_unknown", "")
		case s.end.evidence[0] == commit.ByReceipt:
			want(w, s.what, r.Code, "target_refused")
		default:
			want(w, s.what, r.Code, "outcome_unknown")
		}
		w.ends(s.c, s.end)
		if s.end.status == commit.StatusApplied || s.end.evidence[0] == commit.ByLookup {
			want(w, s.what+": requests at the platform", w.tally(s.c.id).Received, 1)
		}
	}
}

func x4(w *world) {
	w.start(fleet.Replica{Stops: []string{"before-send"}})
	// Before the write: it has seen its lease, and sleeps through it.
	c := w.prepared(small)
	slept := w.applying(c)
	w.reached("before-send")
	w.must(w.first.Freeze())
	w.pass("before-send")
	w.lapses(c)
	if w.way == byAnother {
		w.here = w.other
		want(w, "the status after the lease", w.status(c).Status, "unknown", "not_applied")
	}
	w.must(w.first.Thaw())
	w.answered(slept)
	w.ends(c, notApplied(commit.NoneNeeded, commit.NeverLeft).or(absent))
	want(w, "requests at the platform", w.tally(c.id).Received, 0)
	w.recover()
	w.x4After(w.x4Nobody)
	w.x4After(w.x4Operator)
}

// x4After: after the write, of which no look-up can tell, a replica sleeps past its lease with the receipt in its hand.
func (w *world) x4After(meanwhile func(c *change) ending) {
	sleeper := w.launch(fleet.Replica{Database: w.database, Stops: []string{"before-record"}})
	w.must(sleeper.Ready(w.ctx))
	c := w.prepared(small)
	w.hidden(c)
	agent := w.agent().At(sleeper)
	slept := async(func() (fleet.Reply, error) { return agent.Apply(w.ctx, c.id) })
	w.must(sleeper.Reached(w.soon(), "before-record"))
	want(w, "effects before the pause", w.tally(c.id).Effects, 1)
	w.must(sleeper.Freeze())
	w.lapses(c)
	want(w, "the status after the lease", w.status(c).Status, "unknown")
	end := meanwhile(c)
	w.must(sleeper.Pass("before-record"))
	w.must(sleeper.Thaw())
	w.answered(slept)
	w.ends(c, end)
	sleeper.Kill()
}

// x4Nobody speaks meanwhile: the receipt settles what is unknown.
func (w *world) x4Nobody(c *change) ending {
	w.until("the lapse to be listed", func() bool { return w.events(c, "lease_lapsed") == 1 })
	return applied(commit.ByReceipt)
}

// x4Operator says that it did not happen: the receipt contradicts, openly.
func (w *world) x4Operator(c *change) ending {
	w.becomes("an operator's word to count", `select settle_at <= clock_timestamp() from executions where preview_id = $1`, uuidOf(w, c.id))
	w.saysNotApplied(c)
	end := applied(commit.ByReceipt)
	end.contradicted = true
	return end
}

// or allows another ending that is as right.
func (e ending) or(other ending) ending {
	e.reasons = append(e.reasons, other.reasons...)
	e.evidence = append(e.evidence, other.evidence...)
	return e
}

// hidden makes the platform one that cannot look up this change.
func (w *world) hidden(c *change) {
	w.must(w.f.Ads.AddFault(w.ctx, target.Fault{
		Match: target.Match{Op: target.OpLookup, Resource: c.campaign}, Times: target.Forever,
		Do: []target.Step{{Action: target.HideLookup}},
	}))
}

func (w *world) saysNotApplied(c *change) {
	var r fleet.Reply
	w.until("an operator's word to count", func() bool {
		var err error
		r, err = w.as("oper").Resolve(w.ctx, c.id, "not_applied")
		w.must(err)
		return r.Code == "" || r.Next != "retry_later"
	})
	want(w, "an operator's word ("+r.Message+")", r.Status, "not_applied")
}
