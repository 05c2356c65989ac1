package canon

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reason says why a value was refused. The strings are stable and may be logged.
type Reason string

// The reasons of Parse and Marshal.
const (
	Syntax         Reason = "syntax"           // not JSON
	TrailingData   Reason = "trailing_data"    // something follows the one value
	DuplicateKey   Reason = "duplicate_key"    // an object names one key twice
	InvalidUTF8    Reason = "invalid_utf8"     // broken UTF-8, or half of a surrogate pair
	InvalidNumber  Reason = "invalid_number"   // written as no JSON number is: NaN, Infinity, +1, 01, .5, 1.
	NumberTooLarge Reason = "number_too_large" // too large, too small or too long to be carried exactly by every reader
	TooDeep        Reason = "too_deep"         // nested deeper than the limit
	TooLarge       Reason = "too_large"        // more bytes than the limit
	Unsupported    Reason = "unsupported"      // a Go value that has no exact JSON form (our own mistake, never the caller's)
)

// ErrTooLarge matches, with errors.Is, every refusal for size alone.
var ErrTooLarge error = &Error{Reason: TooLarge}

// Error is the only error type of this package.
type Error struct {
	// Path is the JSON pointer (RFC 6901) of the value, "" for the whole document. Its segments come from the input:
	// long ones are cut, and whoever shows it makes hidden characters visible.
	Path   string
	Reason Reason
	// Offset is the byte at which reading stopped; 0 where there is no input text.
	Offset int
	// Detail is for our own logs.
	Detail string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("canon: %s at %q (byte %d)", e.Reason, e.Path, e.Offset)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is reports whether target is an *Error that names nothing but the same reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && *t == Error{Reason: e.Reason}
}

// maxSegment keeps a hostile key from being echoed at full length.
const maxSegment = 64

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// under prefixes an error's path with one more segment while the call stack unwinds, so that no path is built for
// input that is good.
func under(segment string, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	if utf8.RuneCountInString(segment) > maxSegment {
		segment = string([]rune(segment)[:maxSegment]) + "…"
	}
	e.Path = "/" + pointerEscaper.Replace(segment) + e.Path
	return e
}
