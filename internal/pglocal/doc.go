// Package pglocal finds a Postgres for a process that was told of none, or starts one of its own.
//
// Promise: [Open] answers with a server that takes connections, or with one error that says what to do. A private
// cluster is durable (fsync on, data checksums), listens on loopback only with a scram password, never runs as root,
// ends with the process that opened it, and keeps its data: neither a SIGKILL of that process nor an orphaned server
// blocks the next Open. Two processes never share one data directory; the second is told the first one's pid.
//
// It does not promise backups, upgrades between major versions, or anything about a server that a URL names: such a
// server is only reached and described, and [RefuseForeign] tells whether its database is safe to migrate.
//
// Start at [Open]; private.go holds the life of a private cluster, orphan.go what a crash may have left behind.
package pglocal
