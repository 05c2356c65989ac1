package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

// TestAClaimThatWaitedWhileOneWasGivenBack: a claim waits for the row behind the record that gives an earlier claim back. It finds the
// preview approved again, and an execution that its statement still sees applying. It has lost a race: nothing is broken.
func TestAClaimThatWaitedWhileOneWasGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	first, second := r.claimOf(p), r.claimOf(p)
	if err := r.store.ClaimApproved(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	release := r.hold(p.ID)
	recorded, claimed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.store.RecordResult(context.Background(), commit.Result{
			Key: first.Key, Attempt: first.Attempt, Kind: commit.Send, Class: connector.ClassNotSent,
		})
		recorded <- err
	}()
	r.awaitBlocked(1)
	go func() { claimed <- r.store.ClaimApproved(context.Background(), second) }()
	r.awaitBlocked(2)
	release()
	if err := receive(t, recorded); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, claimed); !errors.Is(err, commit.ErrNotClaimed) {
		t.Errorf("got %v, want ErrNotClaimed", err)
	}
	if got := r.status(p.ID).Status; got != commit.StatusApproved {
		t.Errorf("got %s, want it approved again", got)
	}
	if err := r.store.ClaimApproved(t.Context(), second); err != nil {
		t.Errorf("the next claim: %v", err)
	}
}
