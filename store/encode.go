package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
)

// body writes an audit event's body as canonical JSON: the stored bytes are what the chain hashes. Bodies are our own maps of
// strings and integers; one that cannot be written is a defect, and says so in the chain rather than losing the change.
func body(fields map[string]any) []byte {
	value, err := canon.FromStruct(fields)
	if err == nil {
		var raw []byte
		if raw, err = canon.Marshal(value); err == nil {
			return raw
		}
	}
	raw, _ := canon.Marshal(map[string]any{"unwritable": err.Error()})
	return raw
}

func jsonb(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a JSON column: %w", err)
	}
	return raw, nil
}

// Cursors are opaque to callers: the last row's place in the order, in base64.
func writeCursor(place any) string {
	raw, err := json.Marshal(place)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func readCursor(cursor string, place any) error {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, place)
	}
	if err != nil {
		return fault.New(fault.InvalidInput, nil).WithField("/cursor", "field.cursor", nil)
	}
	return nil
}

// newest is the place in a list that runs from the newest change back.
type newest struct {
	ID uuid.UUID `json:"i"`
}
