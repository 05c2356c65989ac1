// Package canon reads JSON strictly and writes it in one canonical form, so that the same content always has the
// same SHA-256 digest and no two readers of the same bytes can disagree about what they say.
//
// It promises: one value per key (duplicates are refused), exact numbers in one spelling (3e5, 300000.0 and 300000
// are the same; nothing passes through float64), valid Unicode, bounded depth and size, and RFC 8785's member
// ordering and string escaping. Cost is linear in the input but for sorting keys.
//
// It does not promise RFC 8785's number format (that one is defined on doubles, which cannot hold money), does not
// normalise Unicode inside strings, and does not judge unknown or differently cased keys: that is the schema's work.
//
// Start with Parse for what comes in, Marshal for what is stored or sent, Sum for its digest.
package canon

import "encoding/json"

const (
	// DefaultMaxBytes bounds an input when Limits says nothing.
	DefaultMaxBytes = 1 << 20
	// DefaultMaxDepth bounds nesting when Limits says nothing. A scalar has depth 0, [] has depth 1.
	DefaultMaxDepth = 32
	// MaxDepth is the ceiling for Marshal and for Limits. It is above the default because what we store wraps what
	// we received, and it exists so that no input and no cyclic map can exhaust the stack.
	MaxDepth = 256
)

// Limits bounds what Parse accepts. A zero field means its default; a depth above MaxDepth means MaxDepth.
type Limits struct {
	MaxBytes int
	MaxDepth int
}

func (l Limits) bytes() int {
	if l.MaxBytes <= 0 {
		return DefaultMaxBytes
	}
	return l.MaxBytes
}

func (l Limits) depth() int {
	switch {
	case l.MaxDepth <= 0:
		return DefaultMaxDepth
	case l.MaxDepth > MaxDepth:
		return MaxDepth
	}
	return l.MaxDepth
}

// Parse reads exactly one JSON value: map[string]any, []any, string, bool, nil, or a json.Number that already has
// its normal form (see Marshal). Every error is an *Error; a caller maps its Reason to a fault.
func Parse(raw []byte, lim Limits) (any, error) {
	if len(raw) > lim.bytes() {
		return nil, &Error{Reason: TooLarge}
	}
	return parse(raw, lim.depth())
}

// Canonical is Parse followed by Marshal: the canonical form of JSON that came from outside.
func Canonical(raw []byte, lim Limits) ([]byte, error) {
	v, err := Parse(raw, lim)
	if err != nil {
		return nil, err
	}
	return Marshal(v)
}

// FromStruct turns a Go value of ours into what Parse would return for its JSON, by its json tags. It refuses
// floats and invalid UTF-8 wherever they sit, because encoding/json would round the one and replace the other
// without a word. Types with their own MarshalJSON or MarshalText answer for themselves.
func FromStruct(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, &Error{Reason: Unsupported, Detail: err.Error()}
	}
	if err := checkExact(v); err != nil {
		return nil, err
	}
	return parse(raw, MaxDepth)
}
