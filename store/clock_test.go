package store_test

import (
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
)

// TestTimeZonesOfTheServerChangeNothing: a session far from UTC, with half an hour in its offset.
func TestTimeZonesOfTheServerChangeNothing(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Asia/Kolkata", "America/St_Johns", "Pacific/Kiritimati"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) { r.zone = zone })
			var got string
			r.scalar(&got, `show timezone`)
			if got != zone {
				t.Fatalf("got time zone %s, want %s", got, zone)
			}
			p := r.pending("a")
			if left := time.Until(p.Deadline); left < 30*time.Second || left > time.Minute+time.Second {
				t.Errorf("got %s left to decide, want about a minute", left)
			}
			if _, err := r.approve(p, "kim"); err != nil {
				t.Fatal(err)
			}
			c, err := r.apply(p)
			if err != nil || c.Status != commit.StatusApplied {
				t.Fatalf("got %s, %v, want applied", c.Status, err)
			}
			c = r.status(p.ID)
			e := c.Executions[0]
			if d := e.LeaseUntil.Sub(e.StartedAt); d != r.clocks.LeaseFor || c.Now.Sub(e.StartedAt) > time.Minute {
				t.Errorf("got a lease of %s from %s, want %s from about %s", d, e.StartedAt, r.clocks.LeaseFor, c.Now)
			}
			q := r.pending("b")
			r.shortly(q.ID, 0)
			if got := r.status(q.ID).Status; got != commit.StatusExpired {
				t.Errorf("got %s, want expired", got)
			}
		})
	}
}
