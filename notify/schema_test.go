package notify_test

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/preview"
)

// TestPayloadsAreAsOpenAPISays holds messages of each kind up to the schema that openapi.yaml gives to those who receive them.
func TestPayloadsAreAsOpenAPISays(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema := doc.Components.Schemas["Notification"].Value
	changes := map[string]commit.Change{
		"approval_requested": pending(), "expiring": pending(),
		"rejected": with(pending(), ended(preview.Rejected, commit.StatusRejected)),
		"unknown":  with(pending(), claimed(commit.StatusUnknown, commit.Execution{State: commit.Unknown, NeedsOperator: true})),
		"applied":  with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied, Evidence: commit.ByReceipt})),
	}
	check := func(name string, n notify.Note) {
		t.Helper()
		var value any
		if err := json.Unmarshal(n.Payload, &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.VisitJSON(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for event, c := range changes {
		s, out := service(t, c, siem)
		if _, err := s.Tell(t.Context(), item(event, "siem")); err != nil || len(out.notes) != 1 {
			t.Fatalf("%s: got %d notes, %v", event, len(out.notes), err)
		}
		check(event, out.notes[0])
	}
	s, out := service(t, pending(), siem)
	if err := s.Sample(t.Context(), "siem", noon); err != nil {
		t.Fatal(err)
	}
	check("a test", out.notes[0])
	var wrong any = map[string]any{"type": "change.deciding"}
	if schema.VisitJSON(wrong) == nil {
		t.Error("the schema takes anything")
	}
}
