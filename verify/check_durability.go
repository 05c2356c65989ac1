package verify

import "context"

var durability = Check{
	ID: "durability", Promise: "What the database has acknowledged survives a power cut, so that a claim is never forgotten",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		durable, settings, err := b.store.Durability(ctx)
		switch {
		case err != nil:
			return Proof{}, err
		case !durable && b.cfg.AllowUnsafe:
			return Proof{}, notApplicable("%s, and CUTONCE_ALLOW_UNSAFE_DATABASE says that it may: nothing is promised through a power cut", settings)
		case !durable:
			return Proof{}, fail("%s: an effect could happen twice after a power cut; turn these settings on", settings)
		}
		var written bool
		err = b.sql.QueryRow(ctx, `select pg_current_wal_flush_lsn() > '0/0'`).Scan(&written)
		if err != nil || !written {
			return Proof{}, notApplicable("the position up to which the log is flushed cannot be read: %v", err)
		}
		return Proof{Control: "the server says up to where its log is flushed", Refusal: "a server that forgets is refused; this one has " + settings}, nil
	},
}
