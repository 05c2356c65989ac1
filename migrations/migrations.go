// Package migrations holds the schema as numbered SQL files for goose. They expand first and contract later, so that two
// versions of the service can run side by side. Every table has a comment; the state tables carry their diagram.
package migrations

import "embed"

// FS holds the SQL files.
//
//go:embed *.sql
var FS embed.FS

// VersionTable is where goose records what has been applied.
const VersionTable = "cutonce_migrations"
