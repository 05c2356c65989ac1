package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cutonce/cutonce/internal/canon"
)

// longestLine bounds a line: far above any event, and below what would hurt the reader.
const longestLine = 64 << 20

// members are the names that a line of each record may use. What a line says beyond them nobody has hashed, and a reader that folds
// case or takes the first of two would show it all the same.
var members = map[string][]string{
	recordHeader:      {"format", "exported_at_us", "since_us", "tenant"},
	recordSeal:        {"number", "window", "system", "from_xid", "to_xid", "caught_up", "at_us", "leaves", "prev", "root", "hash", "key_id", "signature"},
	recordLeaf:        {"seal", "place", "kind", "chain", "preview", "tenant", "seq", "hash", "root"},
	recordControl:     {"tenant", "seq", "kind", "actor", "at_us", "body", "body_hex", "hash", "xid"},
	recordControlHead: {"tenant", "seq", "hash"},
	recordEvent:       {"chain", "preview", "tenant", "seq", "kind", "actor", "at_us", "body", "body_hex", "hash", "xid"},
	recordHead:        {"chain", "preview", "tenant", "seq", "hash"},
	recordTombstone:   {"chain", "preview", "tenant", "seq", "hash", "at_us"},
	recordEnd:         {"lines"},
}

// readLines hands over an export record by record. Any line that is not one strict JSON object with the names of its record ends it.
func readLines(r io.Reader, take func(Record) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), longestLine)
	number := 0
	for lines.Scan() {
		number++
		record, err := parseRecord(lines.Bytes())
		switch {
		case err != nil && number == 1:
			return fmt.Errorf("this is no export in the form %q: %w", Format, err)
		case err != nil:
			return fmt.Errorf("line %d is not readable: %w", number, err)
		}
		if err := take(record); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d is not readable: %w", number+1, err)
	}
	return nil
}

func parseRecord(line []byte) (r Record, err error) {
	value, err := canon.Parse(line, canon.Limits{MaxBytes: longestLine, MaxDepth: 1})
	if err != nil {
		return r, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return r, errors.New("it is no JSON object")
	}
	kind, _ := object["record"].(string)
	allowed, known := members[kind]
	if !known {
		return r, fmt.Errorf("it is a %q, which this version does not know", kind)
	}
	for name, v := range object {
		if name != "record" && !slices.Contains(allowed, name) {
			return r, fmt.Errorf("a %s has no %q", kind, name)
		}
		if v == nil {
			return r, fmt.Errorf("its %q is null", name)
		}
	}
	_, text := object["body"]
	if _, hex := object["body_hex"]; text && hex {
		return r, errors.New("it has two bodies: body and body_hex")
	}
	// The names are exact and each is there once, so that encoding/json has nothing to choose.
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	return r, nil
}
