package main

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/target"
)

// Evidence is one change from the three sides, once everything is quiet.
type Evidence struct {
	// Record is nil where our tables have nothing of it.
	Record *Record
	// Tally and Changes are the target's, by the change's key there.
	Tally   target.Tally
	Changes []target.Change
	// Calls are the clients'.
	Calls []Call
	// Doubled: the target was told to deliver some request to this campaign twice.
	Doubled bool
}

// patience is how long the search for an explanation of one history may take.
const patience = 20 * time.Second

// violations names every promise that the evidence breaks.
func (e Evidence) violations() []string {
	if e.Record == nil {
		return e.lost()
	}
	var all []string
	for _, check := range []func(Evidence) []string{
		Evidence.chain, Evidence.replayed, Evidence.effects, Evidence.received, Evidence.claims, Evidence.shown, Evidence.clocks,
		Evidence.history,
	} {
		all = append(all, check(e)...)
	}
	return all
}

func broken(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// lost: what was acknowledged exists.
func (e Evidence) lost() []string {
	for _, c := range e.Calls {
		if c.Answered() && c.Preview != "" {
			return broken("acknowledged, and lost: the tables know nothing of it")
		}
	}
	return nil
}

// chain: the audit trail is whole, and ends where its change says.
func (e Evidence) chain() []string {
	r := e.Record
	if err := audit.Verify(r.Events); err != nil {
		return broken("%v", err)
	}
	if n := len(r.Events); n == 0 || int64(n) != r.Seq || !bytes.Equal(r.Events[n-1].Hash, r.Head) {
		return broken("the chain has %d events and does not end where the change says (%d)", n, r.Seq)
	}
	return nil
}

// replayed: the events alone lead to the state that the tables have.
func (e Evidence) replayed() []string {
	got, err := replay(e.Record.Events)
	switch {
	case err != nil:
		return broken("the events do not follow from each other: %v", err)
	case got != e.Record.Status():
		return broken("the events lead to %s, the tables say %s", got, e.Record.Status())
	}
	return nil
}

// effects: at most one; one exactly where it is called applied; none where nothing may have happened.
func (e Evidence) effects() []string {
	status, n := e.Record.Status(), e.Tally.Effects
	switch {
	case n > 1:
		return broken("%d effects", n)
	case status == applying:
		return broken("still applying, lease until %s", e.Record.Execution.LeaseUntil)
	case status == unknown:
		return broken("unknown, and nobody settled it (handed over: %v)", e.Record.Execution.NeedsOperator)
	case status == applied && n != 1:
		return broken("applied by %s, without an effect", e.Record.Execution.Evidence)
	case status != applied && n != 0:
		return broken("%s, with an effect", status)
	}
	return nil
}

// received: the target heard of it as often as attempts say, and not at all of what never left.
func (e Evidence) received() []string {
	sends, replays := e.Record.Sends()
	may := sends + replays
	if e.Doubled {
		may *= 2
	}
	switch {
	case sends > 1:
		return broken("%d sends", sends)
	case e.Tally.Received > may:
		return broken("the target received it %d times, after %d sends and %d replays", e.Tally.Received, sends, replays)
	}
	return nil
}

// claims: only what was approved, in time, is claimed.
func (e Evidence) claims() []string {
	r := e.Record
	for _, event := range r.Events {
		if event.Kind == "claimed" && !event.At.Before(r.Deadline) {
			return broken("claimed at %s, after its deadline %s", event.At, r.Deadline)
		}
	}
	asked := false
	for _, event := range r.Events {
		asked = asked || event.Kind == "approval_requested"
	}
	if asked && r.Execution != nil && r.Votes == 0 {
		return broken("executed without the approval that it needs")
	}
	return nil
}

// shown: what happened at the target is what was asked for.
func (e Evidence) shown() []string {
	for _, c := range e.Calls {
		for _, change := range e.Changes {
			if c.Op == Prepare && c.Yen > 0 && change.After != fmt.Sprint(c.Yen) {
				return broken("prepared %d, applied %s", c.Yen, change.After)
			}
		}
	}
	return nil
}

// clocks: a lapsed deadline reads as expired and a lapsed lease as unknown at once, sweep or no sweep; no restart counts as
// going back in time; and what passes is not answered as a defect.
func (e Evidence) clocks() []string {
	for _, c := range e.Calls {
		switch {
		case c.Code == "frozen":
			return broken("refused as frozen: a restart was taken for a restore from a backup")
		case c.HTTP == http.StatusInternalServerError:
			return broken("%s met an internal error: a database that is away for the moment is a 503", c.Op)
		}
		if !c.Until.IsZero() && c.Until.Before(c.At) {
			return broken("called %s at %s, which had ended at %s", c.Status, c.At.UTC(), c.Until)
		}
	}
	return nil
}

// history: what the clients saw has an explanation.
func (e Evidence) history() []string {
	switch porcupine.CheckOperationsTimeout(model, operations(e.Calls), patience) {
	case porcupine.Illegal:
		return broken("no order of the calls explains what they were told")
	case porcupine.Unknown:
		return broken("the history could not be checked within %s", patience)
	}
	return nil
}
