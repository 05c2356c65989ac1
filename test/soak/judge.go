package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/cutonce/cutonce/internal/target"
)

// verdict is what a run comes to.
type verdict struct {
	changes, violations int
	// events are those of all chains, breaks the chains that do not verify.
	events, breaks int
}

// gather puts the three sides together, one Evidence for each change, and one without a record for each acknowledged ID that the
// tables do not know. strays are effects that belong to no change.
func (w *world) gather(ctx context.Context) (all []Evidence, strays []string, err error) {
	records, err1 := readRecords(ctx, w.database)
	counted, err2 := w.fleet.Ads.Counters(ctx)
	log, err3 := w.fleet.Ads.Changes(ctx, "")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	byID, byKey := map[string][]Call{}, map[string][]Call{}
	for _, c := range w.journal.all() {
		if c.Op == Prepare {
			byKey[c.Key] = append(byKey[c.Key], c)
		} else {
			byID[c.Preview] = append(byID[c.Preview], c)
		}
	}
	changes := map[string][]target.Change{}
	for _, c := range log {
		if c.Source == target.SourceAPI {
			changes[c.Key] = append(changes[c.Key], c)
		}
	}
	for _, r := range records {
		key, err := w.fleet.Key(r.Name)
		if err != nil {
			return nil, nil, err
		}
		e := Evidence{Record: r, Tally: counted.ByKey[key], Changes: changes[key], Calls: append(byKey[r.Key], byID[r.Name]...)}
		e.Doubled = w.wasDoubled(e.Changes)
		all = append(all, e)
		delete(counted.ByKey, key)
		delete(changes, key)
		delete(byKey, r.Key)
		delete(byID, r.Name)
	}
	for key, tally := range counted.ByKey {
		strays = append(strays, fmt.Sprintf("the target was asked %d times, with %d effects, under the key %s of no change", tally.Received, tally.Effects, key))
	}
	if counted.Unkeyed.Received > 0 {
		strays = append(strays, fmt.Sprintf("the target was asked %d times without a key", counted.Unkeyed.Received))
	}
	for _, unknown := range []map[string][]Call{byKey, byID} {
		for _, calls := range unknown {
			all = append(all, Evidence{Calls: calls})
		}
	}
	return all, strays, nil
}

func (w *world) wasDoubled(changes []target.Change) bool {
	for _, c := range changes {
		if _, doubled := w.doubled.Load(c.CampaignID); doubled {
			return true
		}
	}
	return len(changes) == 0 // which campaign it was is not in the target's books
}

// judge checks everything and tells every violation with the whole history of its change.
func judge(all []Evidence, strays []string, out io.Writer) verdict {
	v := verdict{violations: len(strays)}
	for _, s := range strays {
		fmt.Fprintln(out, "VIOLATION:", s)
	}
	found := make([][]string, len(all))
	places := make(chan struct{}, runtime.NumCPU())
	var checks sync.WaitGroup
	for i, e := range all {
		places <- struct{}{}
		checks.Go(func() {
			defer func() { <-places }()
			found[i] = e.violations()
		})
	}
	checks.Wait()
	for i, e := range all {
		if e.Record != nil {
			v.changes++
			v.events += len(e.Record.Events)
			v.breaks += len(e.chain())
		}
		v.violations += len(found[i])
		if len(found[i]) > 0 {
			e.tell(out, found[i])
		}
	}
	return v
}

// tell is the history of one change from its three sides.
func (e Evidence) tell(out io.Writer, found []string) {
	name := "a change that the tables do not know"
	if e.Record != nil {
		name = e.Record.Name
	}
	fmt.Fprintf(out, "VIOLATION: %s: %s\n", name, strings.Join(found, "; "))
	if r := e.Record; r != nil {
		fmt.Fprintf(out, "  our tables: %s, %s, deadline %s, execution %+v, attempts %v\n", r.State, r.Status(), r.Deadline, r.Execution, r.Attempts)
		for _, event := range r.Events {
			fmt.Fprintf(out, "    %d %s %s by %s: %s\n", event.Seq, event.At.Format("15:04:05.000000"), event.Kind, event.Actor, event.Body)
		}
	}
	fmt.Fprintf(out, "  the target: received %d, effects %d, %+v\n  the clients:\n", e.Tally.Received, e.Tally.Effects, e.Changes)
	for _, c := range e.Calls {
		fmt.Fprintln(out, "   ", c)
	}
}
