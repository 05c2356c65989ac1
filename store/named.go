package store

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// placed is a statement whose arguments stand at their places instead of under their names.
type placed struct {
	sql   string
	names []string
}

// statements are the texts that were read once. pgx would find the names by reading the whole text at every call. Only texts that
// are constants of this package come here, so there are only so many.
var statements sync.Map // of string to placed

// positional writes a statement and its named arguments as pgx would; anything else goes through as it is.
func positional(ctx context.Context, sql string, args []any) (string, []any) {
	if len(args) != 1 {
		return sql, args
	}
	named, ok := args[0].(pgx.NamedArgs)
	if !ok {
		return sql, args
	}
	known, ok := statements.Load(sql)
	if !ok {
		read, whole := read(ctx, sql, named)
		if !whole {
			return sql, args
		}
		known, _ = statements.LoadOrStore(sql, read)
	}
	p := known.(placed)
	values := make([]any, len(p.names))
	for n, name := range p.names {
		values[n] = named[name]
		if id, ok := values[n].(uuid.UUID); ok {
			values[n] = [16]byte(id) // as itself, and not by way of its text
		}
	}
	return p.sql, values
}

// read lets pgx find the names: each is given as its own value and comes back at its place. whole is false where the text wants an
// argument that is not there, which is pgx's to judge.
func read(ctx context.Context, sql string, args pgx.NamedArgs) (p placed, whole bool) {
	itself := make(pgx.NamedArgs, len(args))
	for name := range args {
		itself[name] = name
	}
	text, values, err := itself.RewriteQuery(ctx, nil, sql, nil)
	if err != nil {
		return placed{}, false
	}
	p.sql = text
	for _, value := range values {
		name, ok := value.(string)
		if !ok {
			return placed{}, false
		}
		p.names = append(p.names, name)
	}
	return p, true
}
