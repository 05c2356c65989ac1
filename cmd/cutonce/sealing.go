package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/config"
)

// sealKey is the key that seals are signed with: the file's, or one made from the deployment's secret.
func sealKey(s config.Settings) (key audit.Key, source string, err error) {
	if s.SealKeyFile == "" {
		key, err = audit.DeriveKey([]byte(s.Secret))
		return key, "made from the deployment's secret", err
	}
	text, err := os.ReadFile(s.SealKeyFile)
	if err != nil {
		return audit.Key{}, "", config.Problems{"CUTONCE_SEAL_KEY_FILE: " + err.Error()}
	}
	if key, err = audit.ReadKey(text); err != nil {
		return audit.Key{}, "", config.Problems{"CUTONCE_SEAL_KEY_FILE: " + err.Error()}
	}
	return key, "read from CUTONCE_SEAL_KEY_FILE", nil
}

// prepareSealing makes the sealer, and compares the database with what was witnessed outside it: one that has forgotten something
// was restored from a backup, and is frozen before anything is applied on it.
func (s *service) prepareSealing(ctx context.Context) error {
	key, _, err := sealKey(s.settings)
	if err != nil {
		return err
	}
	s.sealer = audit.Sealer{Store: s.store, Key: key, Witness: s.settings.SealWitness, Every: s.settings.Clock.Seal, Log: s.log}
	s.log.Info("audit seals", "key_id", key.ID(), "witness", s.settings.SealWitness)
	if s.settings.SealWitness == "" {
		return nil
	}
	if err := audit.CheckWritable(s.settings.SealWitness); err != nil {
		return fmt.Errorf("CUTONCE_SEAL_WITNESS: %w", err)
	}
	witness, err := s.sealer.Compare(ctx)
	switch {
	case errors.Is(err, audit.ErrNoWitness):
		return fmt.Errorf("CUTONCE_SEAL_WITNESS: %w. If the database was not restored, move the file away and start again; if it may have been, "+
			"move it away, say cutonce restore declare, and then start", err)
	case err != nil:
		return err
	case witness == nil:
		s.log.Warn("no seal has been witnessed here yet: a restore before the first one goes unnoticed", "witness", s.settings.SealWitness)
	}
	return nil
}

// sealLast seals what the drain has recorded. What it cannot seal in time the next replica seals.
func (s *service) sealLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	if err := s.sealer.Seal(ctx); err != nil {
		s.log.Warn("the last events are not sealed yet; the next replica does it", "error", err)
	}
}
