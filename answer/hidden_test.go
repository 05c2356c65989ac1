package answer_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

const (
	oldContact = "old-contact@agency.example"
	newContact = "new@agency.example"
)

// discreet is a change of two sensitive fields, one of which stays, and one that is not.
func discreet() commit.Change {
	c := commit.Change{Status: commit.StatusNotApplied, Now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Preview: preview.Preview{
		ID: preview.ID{7}, Action: "budget_change", State: preview.Claimed,
		Content: preview.Content{
			Input: connector.Input{"contact": newContact, "reason": "they moved"},
			Plan: connector.Plan{
				Request: connector.Request{Method: "PATCH", Path: "/c/1", Body: []byte(`{"contact":"` + newContact + `"}`)},
				Changes: []connector.Change{
					{Field: "state", Before: connector.Text("off"), After: connector.Text("on")},
					{Field: "contact", Before: connector.Text(oldContact), After: connector.Text(newContact), Sensitive: true},
					{Field: "owner", Before: connector.Text(oldContact), After: connector.Text(oldContact), Sensitive: true},
					{Field: "tax_id", After: connector.Text(newContact), Sensitive: true},
				},
			},
		},
	}}
	now := map[string]connector.Value{"state": connector.Text("on"), "contact": connector.Text("third@agency.example"), "owner": connector.Text(oldContact)}
	c.Executions = []commit.Execution{{
		State: commit.NotApplied, Reason: commit.Drifted, Detail: map[string]any{"evidence": map[string]any{"columns": commit.Columns(c.Preview.Plan, now)}},
	}}
	return c
}

func wantNoContact(t *testing.T, what string, value any) {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "@agency.example") {
		t.Errorf("%s: got %s, want no value of a sensitive field", what, raw)
	}
}

func TestSensitiveValuesAreMaskedInEveryAnswer(t *testing.T) {
	t.Parallel()
	for lang, w := range writers(t) {
		w.Detailed = true
		c := discreet()
		for _, op := range []answer.Op{answer.OpPrepare, answer.OpApply, answer.OpStatus} {
			wantNoContact(t, lang+" "+string(op), w.Of(op, c, false, nil))
		}
		wantNoContact(t, "asked", w.Asked(c))
		wantNoContact(t, "why", w.Explain(commit.Why{Change: c}))
		for _, format := range []answer.Format{answer.CSV, answer.NDJSON} {
			var b bytes.Buffer
			table := answer.NewTable(&b, format, w, time.UTC, func(id string) string { return id })
			if err := table.Write(c); err != nil {
				t.Fatal(err)
			}
			if err := table.End(false); err != nil {
				t.Fatal(err)
			}
			wantNoContact(t, string(format), b.String())
		}
		// The change that is revealed is another one.
		w.Revealed = preview.ID{8}
		wantNoContact(t, "another one's", w.Change(c))
	}
}

// TestAMaskSaysWhetherItChangesAndNothingElse: all masks of one kind are the same, whatever stands behind them.
func TestAMaskSaysWhetherItChangesAndNothingElse(t *testing.T) {
	t.Parallel()
	for lang, want := range map[string][3]string{
		"en": {"•••••• (hidden)", "•••••• (hidden, changes)", "•••••• (hidden, stays the same)"},
		"ja": {"••••••（非表示）", "••••••（非表示・変更あり）", "••••••（非表示・変更なし）"},
	} {
		w := writers(t)[lang]
		w.Detailed = true
		got := w.Change(discreet())
		contact, owner, tax := got.Changes[1], got.Changes[2], got.Changes[3]
		if !contact.Sensitive || !*contact.Changed || *contact.Before != (answer.Value{Shown: want[0], Masked: true}) || *contact.After != (answer.Value{Shown: want[1], Masked: true}) {
			t.Errorf("%s: got %+v → %+v", lang, contact.Before, contact.After)
		}
		if *owner.Changed || owner.After.Shown != want[2] {
			t.Errorf("%s: got %+v, want %q", lang, owner.After, want[2])
		}
		if tax.Before != nil || tax.After.Shown != want[1] {
			t.Errorf("%s: got %+v → %+v, want what is not known to be unknown", lang, tax.Before, tax.After)
		}
		if plain := got.Changes[0]; plain.Sensitive || plain.Changed != nil || plain.After.Text != "on" {
			t.Errorf("%s: got %+v, want a plain row as ever", lang, plain)
		}
		if got.Input["reason"] != "they moved" || got.Input["contact"] != connector.Mask || got.Request.Body != connector.Mask {
			t.Errorf("%s: got input %v and body %s", lang, got.Input, got.Request.Body)
		}
		shows := []string{}
		for _, c := range got.Outcome.Columns {
			shows = append(shows, c.Shows)
		}
		if got, want := strings.Join(shows, " "), " other at_preview unknown"; got != want {
			t.Errorf("%s: the columns show %q, want %q", lang, got, want)
		}
	}
}

// A mask that went out as a new value would be written into the target.
func TestAMaskIsNeverOfferedAsInput(t *testing.T) {
	t.Parallel()
	body := writers(t)["en"].Of(answer.OpApply, discreet(), false, nil)
	if body.Next != "prepare_again" || body.NextTool != "budget_change_preview" || body.NextArguments != nil {
		t.Errorf("got %s with %s(%v), want the tool without arguments", body.Next, body.NextTool, body.NextArguments)
	}
}

func TestARevealedChangeIsWrittenWhole(t *testing.T) {
	t.Parallel()
	w := writers(t)["en"]
	w.Detailed, w.Revealed = true, preview.ID{7}
	got := w.Change(discreet())
	if row := got.Changes[1]; row.Before.Text != oldContact || row.After.Text != newContact || row.After.Masked || !row.Sensitive || !*row.Changed {
		t.Errorf("got %+v → %+v", row.Before, row.After)
	}
	if got.Input["contact"] != newContact || !strings.Contains(got.Request.Body, newContact) {
		t.Errorf("got input %v and body %s", got.Input, got.Request.Body)
	}
	// A writer that was not told a change reveals none, not even one without an ID.
	c := discreet()
	c.Preview.ID = preview.ID{}
	wantNoContact(t, "no ID", writers(t)["en"].Change(c))
}
