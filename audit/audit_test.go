package audit_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
)

func chain(n int) []audit.Event {
	head := audit.Genesis[:]
	var events []audit.Event
	for i := range n {
		e := audit.Event{
			Preview: [16]byte{1}, Seq: int64(i) + 1, Tenant: "acme", Kind: "kind", Actor: "human:i#kim",
			At: time.UnixMicro(1_700_000_000_000_001 + int64(i)), Body: []byte(`{"n":1}`),
		}
		sum := e.Sum(head)
		e.Hash = sum[:]
		head = e.Hash
		events = append(events, e)
	}
	return events
}

func TestAWholeChainHolds(t *testing.T) {
	t.Parallel()
	for n := range 5 {
		if err := audit.Verify(chain(n)); err != nil {
			t.Errorf("%d events: %v", n, err)
		}
	}
}

func TestEveryTamperingNamesItsPlace(t *testing.T) {
	t.Parallel()
	edit := func(f func(*audit.Event)) func([]audit.Event) []audit.Event {
		return func(es []audit.Event) []audit.Event { f(&es[2]); return es }
	}
	for _, tc := range []struct {
		name   string
		tamper func([]audit.Event) []audit.Event
		want   int64
	}{
		{"another kind", edit(func(e *audit.Event) { e.Kind = "approved" }), 3},
		{"another actor", edit(func(e *audit.Event) { e.Actor = "human:i#lee" }), 3},
		{"another time", edit(func(e *audit.Event) { e.At = e.At.Add(time.Microsecond) }), 3},
		{"another body", edit(func(e *audit.Event) { e.Body = []byte(`{"n":2}`) }), 3},
		{"text moved between fields", edit(func(e *audit.Event) { e.Kind, e.Actor = e.Kind+"h", e.Actor[1:] }), 3},
		{"another tenant", edit(func(e *audit.Event) { e.Tenant = "other" }), 3},
		{"another preview", edit(func(e *audit.Event) { e.Preview[0] = 2 }), 3},
		{"altered and hashed again", func(es []audit.Event) []audit.Event {
			es[2].Kind = "approved"
			sum := es[2].Sum(es[1].Hash)
			es[2].Hash = sum[:]
			return es
		}, 4},
		{"removed", func(es []audit.Event) []audit.Event { return slices.Delete(es, 2, 3) }, 3},
		{"the first removed", func(es []audit.Event) []audit.Event { return es[1:] }, 1},
		{"twice", func(es []audit.Event) []audit.Event { return slices.Insert(es, 2, es[1]) }, 3},
		{"reordered", func(es []audit.Event) []audit.Event { es[1], es[2] = es[2], es[1]; return es }, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := audit.Verify(tc.tamper(chain(5)))
			var broken *audit.BrokenError
			if !errors.As(err, &broken) || broken.Seq != tc.want {
				t.Errorf("got %v, want a break at %d", err, tc.want)
			}
		})
	}
}

func TestTimeZonesDoNotMatter(t *testing.T) {
	t.Parallel()
	events := chain(3)
	for i := range events {
		events[i].At = events[i].At.In(time.FixedZone("there", 9*3600))
	}
	if err := audit.Verify(events); err != nil {
		t.Error(err)
	}
}
