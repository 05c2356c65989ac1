package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

// A message leaves the service for good: it holds no value of a sensitive field, for people or for machines.
func TestMessagesHoldNoHiddenValue(t *testing.T) {
	t.Parallel()
	c := with(pending(), func(c *commit.Change) {
		c.Preview.Plan.Changes[0] = connector.Change{Field: "contact", Before: connector.Text("old-secret-4711"), After: connector.Text("new-secret-4712"), Sensitive: true}
		c.Preview.Input = connector.Input{"contact": "new-secret-4712"}
	})
	for _, receiver := range []string{"leads", "finance", "siem"} {
		s, out := service(t, c, all...)
		if _, err := s.Tell(t.Context(), item("approval_requested", receiver)); err != nil || len(out.notes) != 1 {
			t.Fatalf("%s: got %d messages, %v, want one", receiver, len(out.notes), err)
		}
		n := out.notes[0]
		if said := fmt.Sprint(n, string(n.Payload)); strings.Contains(said, "-secret-") || !strings.Contains(said, connector.Mask) {
			t.Errorf("%s: got %s, want the value masked", receiver, said)
		}
	}
}
