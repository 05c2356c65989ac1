package preview_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// givenBack is a change that was claimed when a cancel came, misses times, and each time open again when it was read.
type givenBack struct {
	preview.Store
	p      preview.Preview
	now    time.Time
	misses int
}

func (s *givenBack) Preview(context.Context, string, preview.ID) (preview.Preview, time.Time, error) {
	return s.p, s.now, nil
}

func (s *givenBack) Cancel(context.Context, preview.Move) (preview.Preview, bool, error) {
	if s.misses > 0 {
		s.misses--
		return s.p, false, nil
	}
	s.p.State = preview.Canceled
	return s.p, true, nil
}

// TestACancelThatMeetsAClaimGivenBackIsHeard: "expired" is said of what has expired, and of nothing else.
func TestACancelThatMeetsAClaimGivenBackIsHeard(t *testing.T) {
	t.Parallel()
	bot := actor.Actor{Tenant: "acme", Kind: actor.Agent, Issuer: "i", Subject: "bot"}
	none, err := connector.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		misses int
		now    time.Time
		want   error
		state  preview.State
	}{
		{"given back once", 1, deadline.Add(-time.Second), nil, preview.Canceled},
		{"given back again and again", 1000, deadline.Add(-time.Second), fault.Conflict, preview.Approved},
		{"expired and not swept", 1000, deadline, fault.Expired, preview.Approved},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			store := &givenBack{
				p:   preview.Preview{Tenant: "acme", Requester: bot, State: preview.Approved, Deadline: deadline},
				now: tc.now, misses: tc.misses,
			}
			s, err := preview.NewService(preview.Deps{Store: store, Actions: none})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Cancel(t.Context(), bot, preview.NewID(), "")
			if !errors.Is(err, tc.want) || got.State != tc.state {
				t.Errorf("got %s and %v, want %s and %v", got.State, err, tc.state, tc.want)
			}
		})
	}
}
