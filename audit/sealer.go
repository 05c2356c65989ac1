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
}

// Sealer seals what has changed, every few seconds, on every replica: one of them does it.
type Sealer struct {
	Store Seals
	Key   Key
	// Witness is the file outside the database that holds the last seal of this process; empty for none.
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

// Seal makes one pass: it seals all that may be sealed now.
func (s Sealer) Seal(ctx context.Context) error {
	for {
		sealed, more, err := s.Store.SealNext(ctx, func(d Draft) Seal { return s.Key.Sign(d.Next, d.Leaves) })
		if err != nil {
			return fmt.Errorf("sealing the audit chains: %w", err)
		}
		if sealed != nil && s.Witness != "" {
			if err := WriteWitness(s.Witness, *sealed); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}
