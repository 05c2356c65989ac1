package canon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal writes v in canonical form: object members in UTF-16 code unit order, RFC 8785 strings, exact numbers in
// their normal form, no white space. It takes what Parse returns, and int, int64, uint64, []string and
// json.RawMessage (read strictly and rewritten). Floats are refused: they are not what somebody wrote.
func Marshal(v any) ([]byte, error) {
	return appendValue(nil, v, MaxDepth)
}

func appendValue(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v)
	case json.Number:
		return appendNumber(b, string(v))
	case int:
		return appendNumber(b, strconv.Itoa(v))
	case int64:
		return appendNumber(b, strconv.FormatInt(v, 10))
	case uint64:
		return appendNumber(b, strconv.FormatUint(v, 10))
	case json.RawMessage:
		return appendRaw(b, v, depth)
	case map[string]any:
		return appendObject(b, v, depth)
	case []any:
		return appendArray(b, v, depth)
	case []string:
		return appendArray(b, v, depth)
	}
	return nil, &Error{Reason: Unsupported, Detail: fmt.Sprintf("no exact form for %T", v)}
}

func appendRaw(b []byte, raw json.RawMessage, depth int) ([]byte, error) {
	v, err := parse(raw, depth)
	if err != nil {
		return nil, err
	}
	return appendValue(b, v, depth)
}

func appendNumber(b []byte, lit string) ([]byte, error) {
	n, reason := normalNumber(lit)
	if reason != "" {
		return nil, &Error{Reason: reason}
	}
	return append(b, n...), nil
}

func appendObject(b []byte, m map[string]any, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, &Error{Reason: TooDeep}
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareUTF16)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendString(b, k); err != nil {
			return nil, under(strings.ToValidUTF8(k, "\ufffd"), err)
		}
		if b, err = appendValue(append(b, ':'), m[k], depth-1); err != nil {
			return nil, under(k, err)
		}
	}
	return append(b, '}'), nil
}

func appendArray[T any](b []byte, a []T, depth int) ([]byte, error) {
	if depth == 0 {
		return nil, &Error{Reason: TooDeep}
	}
	b = append(b, '[')
	for i, v := range a {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, v, depth-1); err != nil {
			return nil, under(strconv.Itoa(i), err)
		}
	}
	return append(b, ']'), nil
}

// appendString escapes only what RFC 8785 §3.2.2.2 says: the quote, the backslash and the C0 controls.
func appendString(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, &Error{Reason: InvalidUTF8}
	}
	const short = "\b\t\n\f\r\"\\"
	const names = `btnfr"\`
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		if j := strings.IndexByte(short, c); j >= 0 {
			b = append(b, '\\', names[j])
		} else if c < 0x20 {
			b = fmt.Appendf(b, `\u%04x`, c)
		} else {
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}

// compareUTF16 orders as the UTF-16 forms would, without making them: only a character outside the BMP against one
// above the surrogates differs from the order of bytes.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	for i > 0 && !utf8.RuneStart(a[i]) {
		i--
	}
	ra, _ := utf8.DecodeRuneInString(a[i:])
	rb, _ := utf8.DecodeRuneInString(b[i:])
	if (ra > 0xFFFF) != (rb > 0xFFFF) {
		return int(lead(ra)) - int(lead(rb))
	}
	return int(ra) - int(rb)
}

func lead(r rune) rune {
	if r > 0xFFFF {
		return 0xD800 + (r-0x10000)>>10
	}
	return r
}
