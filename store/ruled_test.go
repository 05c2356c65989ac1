package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/preview"
)

func TestEachRuledReadsWhatWasPreparedAndWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.prepare("old", "new")
	r.forging(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update previews set created_at = created_at - interval '31 days'`)
		return err
	})
	r.rules.set(people(leads))
	asked := r.prepare("asked", "new")
	r.rules.set(automatic)
	allowed := r.prepare("allowed", "new")
	var got []preview.Preview
	if err := r.store.EachRuled(t.Context(), 30*24*time.Hour, func(p preview.Preview) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("got %d previews, want 2: not %s, which is older", len(got), old.ID)
	}
	for i, want := range []preview.Preview{asked, allowed} {
		if got[i].ID != want.ID || got[i].Plan.Target != want.Plan.Target || !got[i].CreatedAt.Equal(want.CreatedAt) ||
			got[i].Requester.ID() != want.Requester.ID() {
			t.Errorf("%d: got %+v, want %+v", i, got[i], want)
		}
		if diff := cmp.Diff(want.Ruling, got[i].Ruling); diff != "" {
			t.Errorf("%d: ruling (-want +got):\n%s", i, diff)
		}
	}
	enough := errors.New("enough")
	if err := r.store.EachRuled(t.Context(), time.Hour, func(preview.Preview) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}
