package store

import (
	"bytes"
	"crypto/sha256"
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
	raw, err := canon.Marshal(fields)
	if err == nil {
		return raw
	}
	// A target's evidence may hold values of other types, which speak for themselves.
	value, err := canon.FromStruct(fields)
	if err == nil {
		if raw, err = canon.Marshal(value); err == nil {
			return raw
		}
	}
	raw, _ = canon.Marshal(map[string]any{"unwritable": err.Error()})
	return raw
}

func jsonb(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a JSON column: %w", err)
	}
	return withoutNUL(raw), nil
}

// withoutNUL replaces escaped NULs, the one character of JSON that a jsonb column refuses, by U+FFFD. A target's words may
// hold it.
func withoutNUL(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\':
			out = append(out, raw[i])
		case bytes.HasPrefix(raw[i:], []byte(`\u0000`)):
			out = append(out, `\ufffd`...)
			i += len(`\u0000`) - 1
		default:
			out = append(out, raw[i], raw[i+1])
			i++
		}
	}
	return out
}

// evidenceOf writes what a connector gave as proof. Evidence that cannot be written is replaced by the reason: no outcome is
// lost to its evidence.
func evidenceOf(value map[string]any) map[string]any {
	if value == nil {
		return map[string]any{}
	}
	if _, err := json.Marshal(value); err != nil {
		return map[string]any{"unwritable": err.Error()}
	}
	return value
}

// cursor is opaque to callers: the last row's place in the order, in base64, with the tenant in whose list it is.
type cursor struct {
	Of    string          `json:"t"`
	Place json.RawMessage `json:"p"`
}

// listOf tells a tenant's lists from another's, without its name.
func listOf(tenant string) string {
	sum := sha256.Sum256([]byte("cutonce.cursor\x00" + tenant))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

func writeCursor(tenant string, place any) string {
	raw, err := json.Marshal(place)
	if err == nil {
		raw, err = json.Marshal(cursor{Of: listOf(tenant), Place: raw})
	}
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// readCursor refuses a cursor of another tenant's list, whoever it was shown to.
func readCursor(text, tenant string, place any) error {
	var c cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err == nil {
		err = json.Unmarshal(c.Place, place)
	}
	if err != nil || c.Of != listOf(tenant) {
		return fault.New(fault.InvalidInput, nil).WithField("/cursor", "field.cursor", nil)
	}
	return nil
}

// newest is the place in a list that runs from the newest change back.
type newest struct {
	ID uuid.UUID `json:"i"`
}
