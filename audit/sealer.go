package audit

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Draft is what one seal shall cover: what a database's last seal does not.
type Draft struct {
	// Next is the seal to be signed, without root, hash and signature.
	Next   Seal
	Leaves []Leaf
}

// Seals keeps seals. SealNext is one transaction: it reads what has changed, has it signed, and stores the seal. Of several
// callers at once one works and the others return nil. A nil error means that the seal, if there is one, is durable. more says
// that there is more to seal than fits into one.
type Seals interface {
	SealNext(ctx context.Context, sign func(Draft) Seal) (sealed *Seal, more bool, err error)
	// Witnessed is what the database says of a witness, nil if there is none yet. Its last seal is durable.
	Witnessed(ctx context.Context, witness *Seal) (Standing, error)
	// CheckWitness declares a restore, which freezes every apply, if the database has forgotten the witness; unless that very
	// witness is covered by a declaration.
	CheckWitness(ctx context.Context, witness Seal) (declared bool, held int, err error)
}

// Standing is what a database says of a witness, all of it of one moment.
type Standing struct {
	// Known: the database has this seal. Covered: it has not, and a restore was declared for that. Restoring: a restore is not
	// finished, so that nothing is applied.
	Known, Covered, Restoring bool
	// Last is its last seal, nil if there is none.
	Last *Seal
}

// Sealer seals what has changed, every few seconds, on every replica: one of them does it.
type Sealer struct {
	Store Seals
	Key   Key
	// Witness is the file outside the database that holds the last durable seal; empty for none. Replicas may share it.
	Witness string
	// Every is the pause; zero means 5 seconds.
	Every time.Duration
	Log   *slog.Logger
}

// Run seals until ctx ends.
func (s Sealer) Run(ctx context.Context) error {
	every := s.Every
	if every == 0 {
		every = 5 * time.Second
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := s.Seal(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "sealing failed; the next pass tries again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Seal makes one pass: it seals all that may be sealed now, and witnesses the last durable seal, whoever made it. Where the database
// has forgotten what was witnessed, it declares that and does neither.
func (s Sealer) Seal(ctx context.Context) error {
	for {
		if _, _, ok, err := s.compare(ctx); err != nil || !ok {
			return err
		}
		_, more, err := s.Store.SealNext(ctx, func(d Draft) Seal { return s.Key.Sign(d.Next, d.Leaves) })
		if err != nil {
			return fmt.Errorf("sealing the audit chains: %w", err)
		}
		if err := s.witness(ctx); err != nil || !more {
			return err
		}
	}
}

// Compare declares a restore if the database has forgotten what was witnessed, before anything is applied on it. It gives the
// witness, nil if there is none yet.
func (s Sealer) Compare(ctx context.Context) (*Seal, error) {
	witness, _, _, err := s.compare(ctx)
	return witness, err
}

// compare reads the witness and what the database says of it. ok is false where the database has forgotten it and nobody had
// noticed: that is a restore, or a failover with loss, under a running process.
func (s Sealer) compare(ctx context.Context) (old *Seal, st Standing, ok bool, err error) {
	if s.Witness == "" {
		return nil, Standing{}, true, nil
	}
	if old, err = ReadWitness(s.Witness); err != nil {
		return nil, Standing{}, false, err
	}
	if old != nil {
		if err := s.Key.Vouch(*old); err != nil {
			return nil, Standing{}, false, fmt.Errorf("%w: %s is forged: %w", ErrNoWitness, s.Witness, err)
		}
	}
	if st, err = s.Store.Witnessed(ctx, old); err != nil {
		return nil, Standing{}, false, fmt.Errorf("comparing the database with the witness: %w", err)
	}
	if old == nil || st.Known || st.Covered {
		return old, st, true, nil
	}
	declared, held, err := s.Store.CheckWitness(ctx, *old)
	if declared {
		s.Log.ErrorContext(ctx, "the database does not know the last seal that was witnessed: it was restored from a backup, or it is another one. "+
			"Nothing is applied until an operator has looked: cutonce restore status", "seal", old.Number, "sealed_at", old.At, "held", held)
	}
	return old, st, false, err
}

// witness replaces the witness by the last durable seal. One that the database has forgotten stays until the restore is finished:
// should this be the wrong database, then the right one still knows it.
func (s Sealer) witness(ctx context.Context) error {
	old, st, ok, err := s.compare(ctx)
	switch {
	case err != nil || !ok || s.Witness == "" || st.Last == nil:
		return err
	case old != nil && !st.Known && st.Restoring:
		return nil
	}
	return WriteWitness(s.Witness, old, *st.Last)
}
