package mcpadapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// envelope is what the door reads of a JSON-RPC message before the SDK does.
type envelope struct {
	id     json.RawMessage
	method string
	tool   string
	args   json.RawMessage
	// forward is the message as the SDK shall see it.
	forward []byte
}

var (
	errDuplicate = errors.New("the same key twice")
	errTooDeep   = errors.New("nested too deep")
)

// deepest is how deep a message may nest. It is far below what the decoders behind refuse in words of their own.
const deepest = 256

// open reads the two outer levels of a message. A key given twice there is refused: two readers might take different ones.
// What is inside the arguments is read by the tool.
func open(body []byte) (envelope, error) {
	if depth(body) > deepest {
		return envelope{}, errTooDeep
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		return envelope{forward: body}, wellFormed(body)
	}
	outer, err := members(body)
	if err != nil {
		return envelope{}, err
	}
	e := envelope{id: identity(outer["id"]), forward: body}
	if err := json.Unmarshal(or(outer["method"], `""`), &e.method); err != nil {
		return e, fmt.Errorf("reading the method: %w", err)
	}
	if e.method != methodCall {
		return e, nil
	}
	params, err := members(or(outer["params"], `{}`))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(or(params["name"], `""`), &e.tool); err != nil {
		return e, fmt.Errorf("reading the tool's name: %w", err)
	}
	return e.withhold(outer, params)
}

// withhold keeps the arguments from the SDK, which reads them through float64 to compare headers, and refuses what does not
// fit in words of its own. The tool gets them byte for byte.
func (e envelope) withhold(outer, params map[string]json.RawMessage) (envelope, error) {
	args, given := params["arguments"]
	if !given {
		return e, nil
	}
	e.args, params["arguments"] = args, json.RawMessage(`{}`)
	raw, err := json.Marshal(params)
	if err != nil {
		return e, fmt.Errorf("writing the parameters: %w", err)
	}
	outer["params"] = raw
	if e.forward, err = json.Marshal(outer); err != nil {
		return e, fmt.Errorf("writing the message: %w", err)
	}
	return e, nil
}

const methodCall = "tools/call"

func or(raw json.RawMessage, otherwise string) json.RawMessage {
	if raw == nil {
		return json.RawMessage(otherwise)
	}
	return raw
}

// identity keeps a string or number to answer with; anything else is answered with null.
func identity(raw json.RawMessage) json.RawMessage {
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && raw[0] != 't' && raw[0] != 'f' {
		return raw
	}
	return nil
}

func wellFormed(body []byte) error {
	if !json.Valid(body) {
		return errors.New("not JSON")
	}
	return nil
}

// members splits an object into its members, exact in their names.
func members(raw []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a name: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("reading a value: %w", err)
		}
		name, _ := token.(string)
		if _, twice := out[name]; twice {
			return nil, errDuplicate
		}
		out[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("reading the end: %w", err)
	}
	if d.More() || d.InputOffset() != int64(len(bytes.TrimRight(raw, " \t\r\n"))) {
		return nil, errors.New("something follows")
	}
	return out, nil
}

// depth is how deep brackets nest outside of strings. What is no JSON gets some number, and is refused later.
func depth(body []byte) int {
	most, level, quoted, escaped := 0, 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			most = max(most, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return most
}
