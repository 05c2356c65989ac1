package httptarget_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
	"github.com/cutonce/cutonce/internal/fault"
)

// The answers of a target to "does anything carry our mark?" and "where do you stand?".
const (
	found, empty, closed      = "found", "empty", "closed"        // closed: no history to ask
	before, ours, other, lost = "before", "ours", "other", "lost" // lost: not readable
	gone                      = "gone"
)

var (
	errClosed = errors.New("there is no history")
	receipt   = connector.Receipt{Evidence: map[string]any{"change_id": "chg-1"}, Version: "v2"}
	tables    = httptarget.Documented{
		Refused: httptarget.Refusals{400: {"invalid_body", "invalid_key"}, 404: {"thing_not_found"}},
		Moved:   httptarget.Refusals{412: {"etag_mismatch"}},
		Already: httptarget.Refusals{422: {"already_there"}},
	}
)

// sentTo is the case of a send to a target that is at "before" with version v1 when the plan is made.
func sentTo(mark, standing string) httptarget.Case {
	return httptarget.Case{
		Version: "v1", Noun: "thing", Value: "state",
		Mark: func(context.Context) (*connector.Receipt, error) {
			switch mark {
			case found:
				mine := receipt
				return &mine, nil
			case empty:
				return nil, nil
			}
			return nil, errClosed
		},
		Now: func(context.Context) (httptarget.Standing, error) {
			switch standing {
			case gone:
				return httptarget.Standing{}, fault.New(fault.NotFound, nil)
			case lost:
				return httptarget.Standing{}, httptarget.Unavailable(errors.New("cut"), 0)
			}
			return httptarget.Standing{Reading: reading(standing), Ours: standing == ours}, nil
		},
	}
}

func reading(standing string) connector.Reading {
	r := connector.Reading{Version: "v2", Values: map[string]connector.Value{"state": connector.Text(standing)}}
	if standing == before {
		r.Version = "v1"
	}
	return r
}

// TestJudge: the whole table of what a refusal proves, by what the target's history and its state say.
func TestJudge(t *testing.T) {
	t.Parallel()
	applied, refused, drifted, unknown := connector.ClassApplied, connector.ClassRefused, connector.ClassDrifted, connector.ClassUnknown
	documented, moved, already := httptarget.Refusal{Status: 400, Code: "invalid_body"}, httptarget.Refusal{Status: 412, Code: "etag_mismatch"},
		httptarget.Refusal{Status: 422, Code: "already_there"}
	for name, tt := range map[string]struct {
		refusal        httptarget.Refusal
		mark, standing string
		want           connector.Class
	}{
		"refused, and nothing is there":    {documented, empty, before, refused},
		"refused, and our mark is there":   {documented, found, ours, applied},
		"refused, and no history":          {documented, closed, before, refused},
		"moved, to another":                {moved, empty, other, drifted},
		"moved, to ours by somebody else":  {moved, empty, ours, unknown},
		"moved, by ourselves":              {moved, found, ours, applied},
		"moved, by ourselves and since":    {moved, found, other, applied},
		"moved, not readable":              {moved, empty, lost, unknown},
		"moved, and no history":            {moved, closed, other, drifted},
		"moved to ours, and no history":    {moved, closed, ours, unknown},
		"moved, and nothing can be read":   {moved, closed, lost, unknown},
		"already there, by somebody else":  {already, empty, ours, unknown},
		"already there, by ourselves":      {already, found, ours, applied},
		"already there, and no history":    {already, closed, ours, unknown},
		"a status alone":                   {httptarget.Refusal{Status: 400}, empty, before, unknown},
		"a code under another status":      {httptarget.Refusal{Status: 404, Code: "invalid_body"}, empty, before, unknown},
		"a code that is not documented":    {httptarget.Refusal{Status: 400, Code: "unheard_of"}, empty, before, unknown},
		"a status that is not documented":  {httptarget.Refusal{Status: 500, Code: "invalid_body"}, empty, before, unknown},
		"a gateway's 412":                  {httptarget.Refusal{Status: 412}, empty, other, unknown},
		"not documented, our mark or none": {httptarget.Refusal{Status: 503}, found, ours, unknown},
	} {
		got, err := sentTo(tt.mark, tt.standing).Judge(t.Context(), tt.refusal, tables)
		if class := connector.Classify(err); class != tt.want {
			t.Errorf("%s: got %s (%v), want %s", name, class, err, tt.want)
		}
		want := connector.Receipt{}
		if tt.want == applied {
			want = receipt
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the receipt (-want +got):\n%s", name, diff)
		}
	}
}

// TestJudgeTellsWhatIsThere: the target's words for a refusal, its state for a drift.
func TestJudgeTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	_, err := sentTo(empty, before).Judge(t.Context(), httptarget.Refusal{Status: 404, Code: "thing_not_found", Message: "no\u202esuch"}, tables)
	var rejected *connector.RejectedError
	if !errors.As(err, &rejected) || rejected.Status != 404 || rejected.Reason != "thing_not_found: no⟨U+202E⟩such" {
		t.Errorf("got %v, want the target's words", err)
	}
	moved := httptarget.Refusal{Status: 412, Code: "etag_mismatch"}
	_, err = sentTo(empty, other).Judge(t.Context(), moved, tables)
	var drifted *connector.DriftedError
	if !errors.As(err, &drifted) || drifted.Now == nil || !drifted.Now.Values["state"].Equal(connector.Text(other)) {
		t.Errorf("got %v, want drifted with what is there now", err)
	}
}

// TestLookup: found and absent rest on the mark; where the target stands can only cast doubt.
func TestLookup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mark, standing string
		want           connector.Found
		evidence       map[string]any
	}{
		"our mark":                     {found, ours, connector.EffectFound, receipt.Evidence},
		"our mark, and moved since":    {found, other, connector.EffectFound, receipt.Evidence},
		"our mark, not readable":       {found, lost, connector.EffectFound, receipt.Evidence},
		"no mark, as it was":           {empty, before, connector.EffectAbsent, map[string]any{"history": "empty"}},
		"no mark, moved to another":    {empty, other, connector.EffectAbsent, map[string]any{"history": "empty"}},
		"no mark, and the target gone": {empty, gone, connector.EffectAbsent, map[string]any{"history": "empty"}},
		"no mark, but moved to ours":   {empty, ours, connector.EffectUnsure, map[string]any{"history": "empty", "thing": "at_our_state"}},
		"no mark, not readable":        {empty, lost, connector.EffectUnsure, map[string]any{"history": "empty", "thing": "not_readable"}},
		"no history, at ours":          {closed, ours, connector.EffectUnsure, map[string]any{"history": "not_available"}},
		"no history, as it was":        {closed, before, connector.EffectUnsure, map[string]any{"history": "not_available"}},
	} {
		got, err := sentTo(tt.mark, tt.standing).Lookup(t.Context())
		if err != nil || got.Found != tt.want {
			t.Errorf("%s: got %s, %v, want %s", name, got.Found, err, tt.want)
		}
		if diff := cmp.Diff(tt.evidence, got.Evidence); diff != "" {
			t.Errorf("%s: evidence (-want +got):\n%s", name, diff)
		}
		if readable := tt.standing != lost && tt.standing != gone; readable != (got.Now != nil) {
			t.Errorf("%s: got %v now, want it shown %t", name, got.Now, readable)
		}
	}
	if got, err := sentTo(closed, lost).Lookup(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("nothing to be read: got %v, %v, want the history's error", got, err)
	}
}

// TestOursBeforeTheSendIsNoDoubt: a target that is at the plan's version has not moved, whatever value it is at.
func TestOursBeforeTheSendIsNoDoubt(t *testing.T) {
	t.Parallel()
	c := sentTo(empty, ours)
	c.Version = "v2"
	if got, err := c.Lookup(t.Context()); err != nil || got.Found != connector.EffectAbsent {
		t.Errorf("got %s, %v, want absent", got.Found, err)
	}
}
