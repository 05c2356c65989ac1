package trial

import (
	"fmt"
	"strings"

	"github.com/cutonce/cutonce/connector"
)

// earned says in the words of docs/guarantees.md what the connector may be trusted with: what it declares, as far as a
// check has shown it.
func earned(a connector.Capabilities, results []Result) []Earned {
	v := verdicts{}
	failed := []string{}
	for _, r := range results {
		v[r.ID] = r.Status
		if r.Status == Fail {
			failed = append(failed, r.ID)
		}
	}
	if len(failed) > 0 {
		return []Earned{{"earned", "nothing: " + strings.Join(failed, ", ") + " failed, and a wrong word there breaks the promise; do not serve this connector"}}
	}
	if v["delivered"] != Pass {
		return []Earned{{"earned", "nothing yet: no check that sends could be made"}}
	}
	return []Earned{
		{"at most one effect per change", "yes: the service sends once, and this connector never sends again by itself"},
		{"calls an unknown outcome unknown", v.shown("yes", "lost-reply", "lost-request", "slow-write", "truncated-body", "in-progress")},
		{"settles by itself", v.settles(a)},
		{"not_applied guaranteed", v.notApplied(a)},
		{"a request delivered twice", v.twice(a)},
		{"a change by somebody else in between", between(a)},
	}
}

type verdicts map[string]Status

// shown is the text if all the named checks have passed.
func (v verdicts) shown(text string, ids ...string) string {
	for _, id := range ids {
		if v[id] != Pass {
			return fmt.Sprintf("not shown: %s is %s", id, v[id])
		}
	}
	return text
}

func (v verdicts) settles(a connector.Capabilities) string {
	switch {
	case a.Lookup:
		return v.shown(fmt.Sprintf("yes (look-up by key, consistent after %s)", a.SettleFor), "lost-reply", "lost-request", "stale-read", "late-write")
	case a.Replay:
		return v.shown(fmt.Sprintf("an effect, yes (replay of the same key, within %s); that nothing happened, no: an operator says so", a.ReplayFor), "key-replay")
	}
	return "no: operators settle every unknown outcome with reason and evidence"
}

func (v verdicts) notApplied(a connector.Capabilities) string {
	const always = "where nothing left and where the target refused"
	if a.Precondition {
		return always + "; " + v.shown("a late request is refused once the target has moved on (precondition); until then one can still take effect, "+
			"and would be recorded as applied, contradicted", "late-refused")
	}
	return always + "; elsewhere it rests on lease, send deadline and settle time, and a later effect is recorded as applied, contradicted"
}

func (v verdicts) twice(a connector.Capabilities) string {
	switch {
	case a.Precondition && a.Replay:
		return v.shown("one effect (precondition and remembered key)", "duplicate")
	case a.Precondition:
		return v.shown("one effect (precondition)", "duplicate")
	case a.Replay:
		return v.shown("one effect (remembered key)", "duplicate")
	}
	return "two effects are possible: the target has neither precondition nor remembered keys"
}

func between(a connector.Capabilities) string {
	if a.Precondition {
		return "refused by the target itself (precondition)"
	}
	return "noticed by the read before the send; a window of milliseconds remains"
}
