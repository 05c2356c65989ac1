package store

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/canon"
)

type causeKey struct{}

// InRequest makes whatever is recorded under a context say which request caused it, so that an event leads to the lines of the log. What
// no request caused, such as a sweep, says nothing of one.
func InRequest(ctx context.Context, requestID string) context.Context {
	return context.WithValue(ctx, causeKey{}, requestID)
}

// caused puts the request into the body of an event that is about to be recorded. The body stays canonical; one that cannot be read or
// written is left as it is.
func caused(ctx context.Context, args []any) {
	requestID, _ := ctx.Value(causeKey{}).(string)
	if requestID == "" || len(args) != 1 {
		return
	}
	named, _ := args[0].(pgx.NamedArgs)
	said, _ := named["body"].([]byte)
	if said == nil {
		return
	}
	members := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(said))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return
	}
	members["request_id"] = requestID
	if raw, err := canon.Marshal(members); err == nil {
		named["body"] = raw
	}
}
