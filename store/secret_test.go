package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/store"
)

// TestAnotherSecretIsRefused: with another secret a look-up by key finds nothing, and would call an effect absent.
func TestAnotherSecretIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	adopt := func(secret string, replace bool, want error) {
		t.Helper()
		if err := r.store.AdoptSecret(ctx, []byte(secret), replace); !errors.Is(err, want) {
			t.Errorf("%s, replace %t: got %v, want %v", secret, replace, err, want)
		}
	}
	adopt("first", false, nil)
	adopt("first", false, nil)
	adopt("second", false, store.ErrOtherSecret)
	r.target.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		return connector.Receipt{}, errors.Join(errors.New("the reply is lost"), do())
	})
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	adopt("second", true, store.ErrOtherSecret) // something waits for a look-up by its key
	r.sweepUntil(p.ID, commit.StatusApplied)
	adopt("second", true, nil)
	adopt("first", false, store.ErrOtherSecret)
}
