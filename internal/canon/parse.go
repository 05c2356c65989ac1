package canon

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parser is a recursive-descent reader of RFC 8259. It is our own because encoding/json lets duplicate keys pass,
// replaces broken Unicode silently, and matches keys without regard to case.
type parser struct {
	in    []byte
	pos   int
	depth int // levels left
	// keys are the keys of members so far, and members how many the last object had: the objects of a list are like each other.
	keys    map[string]string
	members int
}

func parse(raw []byte, maxDepth int) (any, error) {
	p := &parser{in: raw, depth: maxDepth}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.in) {
		return nil, p.fail(TrailingData)
	}
	return v, nil
}

func (p *parser) fail(r Reason) error { return &Error{Reason: r, Offset: p.pos} }

func (p *parser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end (a NUL is no JSON either).
func (p *parser) peek() byte {
	p.space()
	if p.pos == len(p.in) {
		return 0
	}
	return p.in[p.pos]
}

// accept steps over c if it comes next.
func (p *parser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) value() (any, error) {
	switch p.peek() {
	case '{':
		return p.nested(p.object)
	case '[':
		return p.nested(p.array)
	case '"':
		return p.string()
	}
	return p.word()
}

func (p *parser) nested(read func() (any, error)) (any, error) {
	if p.depth == 0 {
		return nil, p.fail(TooDeep)
	}
	p.depth--
	p.pos++
	v, err := read()
	p.depth++
	return v, err
}

func (p *parser) object() (any, error) {
	if p.accept('}') {
		return map[string]any{}, nil
	}
	m := make(map[string]any, p.members)
	for {
		if err := p.member(m); err != nil {
			return nil, err
		}
		if p.accept('}') {
			p.members = min(len(m), mostExpected)
			return m, nil
		}
		if !p.accept(',') {
			return nil, p.fail(Syntax)
		}
	}
}

// mostExpected bounds what is made room for before it is there.
const mostExpected = 16

func (p *parser) member(m map[string]any) error {
	if p.peek() != '"' {
		return p.fail(Syntax)
	}
	raw, err := p.text()
	if err != nil {
		return err
	}
	key, known := p.keys[string(raw)]
	if !known {
		key = string(raw)
		if p.keys == nil {
			p.keys = map[string]string{}
		}
		p.keys[key] = key
	}
	if _, dup := m[key]; dup {
		return under(key, p.fail(DuplicateKey))
	}
	if !p.accept(':') {
		return p.fail(Syntax)
	}
	v, err := p.value()
	if err != nil {
		return under(key, err)
	}
	m[key] = v
	return nil
}

func (p *parser) array() (any, error) {
	a := []any{}
	if p.accept(']') {
		return a, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, under(strconv.Itoa(len(a)), err)
		}
		a = append(a, v)
		if p.accept(']') {
			return a, nil
		}
		if !p.accept(',') {
			return nil, p.fail(Syntax)
		}
	}
}

// word reads true, false, null or a number. What was meant as a number but is none (NaN, +1, 0x10) is told apart
// from other nonsense, because its fix is different.
func (p *parser) word() (any, error) {
	start := p.pos
	for p.pos < len(p.in) && isWordByte(p.in[p.pos]) {
		p.pos++
	}
	word := string(p.in[start:p.pos])
	switch word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if !looksNumeric(word) {
		p.pos = start
		return nil, p.fail(Syntax)
	}
	n, reason := normalNumber(word)
	if reason != "" {
		p.pos = start
		return nil, p.fail(reason)
	}
	return json.Number(n), nil
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '-' || c == '.' || c == '_'
}

func looksNumeric(word string) bool {
	if word == "" {
		return false
	}
	switch c := word[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		return true
	}
	return strings.EqualFold(word, "nan") || strings.EqualFold(word, "infinity") || strings.EqualFold(word, "inf")
}

func (p *parser) string() (string, error) {
	raw, err := p.text()
	return string(raw), err
}

// text reads a string whose opening quote comes next. What it returns may be a part of the input.
func (p *parser) text() ([]byte, error) {
	p.pos++
	start := p.pos
	var buf []byte // nil until the first escape: most strings are taken as they stand
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case c == '"':
			s := p.in[start:p.pos]
			if buf != nil {
				s = append(buf, s...)
			}
			p.pos++
			return s, nil
		case c == '\\':
			r, err := p.escapeAfter(&buf, start)
			if err != nil {
				return nil, err
			}
			buf = utf8.AppendRune(buf, r)
			start = p.pos
		case c < 0x20:
			return nil, p.fail(Syntax)
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.in[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, p.fail(InvalidUTF8)
			}
			p.pos += size
		}
	}
	return nil, p.fail(Syntax)
}

func (p *parser) escapeAfter(buf *[]byte, start int) (rune, error) {
	*buf = append(*buf, p.in[start:p.pos]...)
	return p.escape()
}

// escape reads one escape whose backslash comes next: two for a surrogate pair.
func (p *parser) escape() (rune, error) {
	if p.pos+1 >= len(p.in) {
		return 0, p.fail(Syntax)
	}
	if p.in[p.pos+1] == 'u' {
		return p.unicodeEscape()
	}
	const names, values = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(names, p.in[p.pos+1])
	if i < 0 {
		return 0, p.fail(Syntax)
	}
	p.pos += 2
	return rune(values[i]), nil
}

func (p *parser) unicodeEscape() (rune, error) {
	r, ok := p.hex4()
	if !ok {
		return 0, p.fail(Syntax)
	}
	if !utf16.IsSurrogate(r) {
		p.pos += 6
		return r, nil
	}
	at := p.pos
	p.pos += 6
	low, ok := p.hex4()
	pair := utf16.DecodeRune(r, low)
	if !ok || pair == utf8.RuneError {
		p.pos = at
		return 0, p.fail(InvalidUTF8)
	}
	p.pos += 6
	return pair, nil
}

// hex4 reads \uXXXX at the current position without stepping over it.
func (p *parser) hex4() (rune, bool) {
	if p.pos+6 > len(p.in) || p.in[p.pos] != '\\' || p.in[p.pos+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range p.in[p.pos+2 : p.pos+6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
