package store

import (
	"slices"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// recollection is what this process saw last of changes on their way. It decides nothing: whoever goes by it ends with a statement
// that compares state, digest, revision and epochs with what is stored, and on any other answer than "done" asks the database. So a
// call costs one round trip where this process made the step before, and is as right where another one did.
type recollection struct {
	previews memory[place, seen]
	// epochs are a tenant's, as they were read last.
	epochs memory[string, commit.Epochs]
}

// place names a preview as a caller does.
type place struct {
	tenant string
	id     preview.ID
}

// seen is a preview with epochs that are no younger than it: whatever has changed in them since it was read makes its claim fail.
type seen struct {
	preview preview.Preview
	epochs  *commit.Epochs
}

// before is what is to be kept with a preview that is read or written from now on.
func (r *recollection) before(tenant string) *commit.Epochs {
	if e, ok := r.epochs.find(tenant); ok {
		return &e
	}
	return nil
}

func (r *recollection) keep(p preview.Preview, epochs *commit.Epochs) {
	if !p.SeenAt.IsZero() {
		p.Votes = slices.Clip(p.Votes)
		r.previews.keep(place{p.Tenant, p.ID}, seen{p, epochs})
	}
}

func (r *recollection) loaded(c commit.Change, e commit.Epochs) {
	r.epochs.keep(c.Preview.Tenant, e)
	c.Preview.SeenAt = c.Now
	r.keep(c.Preview, &e)
}

// claimed keeps an apply that is repeated from trying again what has succeeded.
func (r *recollection) claimed(at place) {
	if found, ok := r.previews.find(at); ok {
		found.preview.State = preview.Claimed
		r.previews.keep(at, found)
	}
}

// Recall is a preview as this process saw it last. See approvals.Store.
func (s *Store) Recall(tenant string, id preview.ID) (preview.Preview, bool) {
	found, ok := s.seen.previews.find(place{tenant, id})
	return found.preview, ok
}

// RecallChange is the same, of what nobody had claimed, with epochs. See commit.Store.
func (s *Store) RecallChange(tenant string, id preview.ID) (commit.Change, commit.Epochs, bool) {
	found, ok := s.seen.previews.find(place{tenant, id})
	if !ok || found.epochs == nil {
		return commit.Change{}, commit.Epochs{}, false
	}
	c, ok := commit.Unclaimed(found.preview)
	return c, *found.epochs, ok
}
