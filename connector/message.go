package connector

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/cutonce/cutonce/internal/money"
)

// Message is a text of the catalogue with its arguments. It is stored with previews and rendered in each reader's language.
type Message struct {
	Key  string `json:"key"`
	Args Args   `json:"args,omitempty"`
}

// Say makes a Message.
func Say(key string, args Args) Message { return Message{Key: key, Args: args} }

// Args are a text's arguments: strings, integers and amounts of money. They survive storage with their types.
type Args map[string]any

// UnmarshalJSON turns stored numbers into integers and stored amounts into money, so that texts can format them.
func (a *Args) UnmarshalJSON(data []byte) error {
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("reading a message's arguments: %w", err)
	}
	*a = make(Args, len(raw))
	for name, value := range raw {
		parsed, err := parseArg(value)
		if err != nil {
			return fmt.Errorf("reading the argument %s: %w", name, err)
		}
		(*a)[name] = parsed
	}
	return nil
}

func parseArg(raw json.RawMessage) (any, error) {
	switch {
	case bytes.HasPrefix(raw, []byte(`{`)):
		var amount money.Amount
		err := json.Unmarshal(raw, &amount)
		return amount, err
	case bytes.HasPrefix(raw, []byte(`"`)):
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	}
	var number int64
	err := json.Unmarshal(raw, &number)
	return number, err
}
