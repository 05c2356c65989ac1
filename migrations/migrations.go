// Package migrations holds the schema as numbered SQL files for goose. They expand first and contract later, so that two
// versions of the service can run side by side. Every table has a comment; the state tables carry their diagram. From 00014 on every
// new table is walled in where it is created (select wall(…)); its owner then sees no rows, so that a migration which reads or changes
// some lifts "force row level security" of that table for its transaction.
package migrations

import "embed"

// FS holds the SQL files.
//
//go:embed *.sql
var FS embed.FS

// VersionTable is where goose records what has been applied.
const VersionTable = "cutonce_migrations"
