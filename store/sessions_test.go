package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/session"
	"github.com/cutonce/cutonce/store"
)

func TestSessionsEndByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	s := store.Sessions{Store: newRig(t).store}
	ctx := t.Context()
	live := session.Record{Hash: [32]byte{1}, Tenant: "acme", Person: "kim", Actor: []byte(`{"subject":"kim"}`), AbsoluteFor: time.Hour}
	over := session.Record{Hash: [32]byte{2}, Tenant: "acme", Person: "kim", Actor: []byte(`{}`), AbsoluteFor: 0}
	for _, r := range []session.Record{live, over} {
		if err := s.Put(ctx, r); err != nil {
			t.Fatalf("put: %v", err)
		}
	}
	if _, _, err := s.Get(ctx, live.Hash, time.Hour); err != nil {
		t.Errorf("a live session: %v", err)
	}
	if err := s.Touch(ctx, live.Hash); err != nil {
		t.Errorf("touch: %v", err)
	}
	for name, get := range map[string]func() error{
		"past its absolute end": func() error { _, _, err := s.Get(ctx, over.Hash, time.Hour); return err },
		"idle":                  func() error { _, _, err := s.Get(ctx, live.Hash, 0); return err },
		"never there":           func() error { _, _, err := s.Get(ctx, [32]byte{9}, time.Hour); return err },
	} {
		if got := get(); !errors.Is(got, session.ErrNone) {
			t.Errorf("%s: got %v, want no session", name, got)
		}
	}
	if err := s.DeleteAll(ctx, "acme", "kim"); err != nil {
		t.Fatalf("delete all: %v", err)
	}
	if _, _, err := s.Get(ctx, live.Hash, time.Hour); !errors.Is(err, session.ErrNone) {
		t.Errorf("after signing out everywhere: got %v, want no session", err)
	}
}
