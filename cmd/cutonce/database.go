package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/store"
)

// reached is how changes are reached.
func reached(s config.Settings) store.Config {
	return store.Config{URL: string(s.DatabaseURL), Pooler: store.Pooler(s.DatabasePooler), MaxConns: int32(s.DatabasePool)}
}

// reachedDirectly is how the server itself is reached, for what outlasts a transaction.
func reachedDirectly(s config.Settings) store.Config {
	if s.DirectURL == "" {
		return reached(s)
	}
	return store.Config{URL: string(s.DirectURL), Pooler: store.PoolerNone}
}

// bringUp brings the schema up to date. Behind a transaction pooler the lock that keeps replicas apart would not hold, so that only a
// schema that is up to date already is accepted there.
func bringUp(ctx context.Context, s config.Settings) error {
	url := cmp.Or(string(s.DirectURL), string(s.DatabaseURL))
	if s.DirectURL == "" && store.Pooler(s.DatabasePooler) != store.PoolerNone {
		pooled := s.DatabasePooler == string(store.PoolerTransaction)
		if !pooled {
			var err error
			if pooled, err = store.Pooled(ctx, url); err != nil {
				return err
			}
		}
		if pooled {
			pending, err := store.Pending(ctx, url)
			if err != nil || !pending {
				return err
			}
			return errors.New("the database's schema is behind this version, and a pooler stands between, through which it cannot be brought up: " +
				"name the server itself in CUTONCE_DATABASE_DIRECT_URL, or run cutonce migrate there; a session pooler is said with CUTONCE_DATABASE_POOLER=none")
		}
	}
	return migrateOurs(ctx, url)
}
