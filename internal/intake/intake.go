// Package intake reads what comes in from outside: strict JSON, then a closed JSON Schema, then no hidden characters.
//
// Every refusal is a fault whose fields say which place is wrong and what would be right. Start at Read and Schema.Check.
package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// Read parses strict JSON of at most maxBytes. Numbers stay json.Number.
func Read(raw []byte, maxBytes int) (any, error) {
	value, err := canon.Parse(raw, canon.Limits{MaxBytes: maxBytes})
	if err != nil {
		return nil, faultOf(err, maxBytes)
	}
	return value, nil
}

func faultOf(err error, maxBytes int) error {
	var bad *canon.Error
	if !errors.As(err, &bad) {
		return fault.New(fault.Internal, nil).Because(err)
	}
	path := bad.Path
	switch bad.Reason {
	case canon.TooLarge:
		return fault.New(fault.TooLarge, fault.Args{"limit": maxBytes})
	case canon.InvalidNumber, canon.NumberTooLarge:
		return fault.New(fault.InvalidNumber, nil).WithField(path, "field.number_unusable", nil).Because(err)
	}
	return fault.New(fault.InvalidInput, nil).WithField(path, "field.json."+string(bad.Reason), nil).Because(err)
}

// Schema is a compiled JSON Schema (draft 2020-12) that cannot reach outside itself.
type Schema struct{ compiled *jsonschema.Schema }

// Compile reads a schema. Remote references are refused.
func Compile(name string, raw json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("reading the schema %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	url := "mem:///" + name
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("adding the schema %s: %w", name, err)
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema %s: %w", name, err)
	}
	return &Schema{compiled: compiled}, nil
}

// Validate reports the raw validation error, for checks of our own output.
func (s *Schema) Validate(value any) error { return s.compiled.Validate(value) }

// Check validates an input and refuses hidden characters in its strings. The fault lists every wrong place.
func (s *Schema) Check(value any) error {
	var fields []fault.Field
	var invalid *jsonschema.ValidationError
	if err := s.compiled.Validate(value); errors.As(err, &invalid) {
		fields = collect(invalid, value, fields)
	} else if err != nil {
		return fault.New(fault.InvalidInput, nil).Because(err)
	}
	fields = hidden("", value, fields)
	if len(fields) == 0 {
		return nil
	}
	return refuse(fields)
}

func refuse(fields []fault.Field) error {
	sort.SliceStable(fields, func(i, j int) bool { return fields[i].Path < fields[j].Path })
	code := fault.InvalidNumber
	for _, f := range fields {
		if !numeric[f.Key] {
			code = fault.InvalidInput
		}
	}
	f := fault.New(code, nil)
	f.Fields = fields
	return f
}

// hidden finds strings with characters that a reader would not see. Line breaks and tabs are allowed: reasons have them.
func hidden(path string, value any, fields []fault.Field) []fault.Field {
	switch v := value.(type) {
	case string:
		if visible.HasHidden(withoutBreaks.Replace(v)) {
			fields = append(fields, fault.Field{Path: path, Key: "field.hidden_characters", Args: fault.Args{"text": clip(visible.Text(v))}})
		}
	case []any:
		for i, item := range v {
			fields = hidden(path+"/"+strconv.Itoa(i), item, fields)
		}
	case map[string]any:
		for name, item := range v {
			fields = hidden(path+"/"+escape(name), item, fields)
		}
	}
	return fields
}

func clip(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func escape(name string) string { return pointerEscaper.Replace(name) }

var (
	withoutBreaks  = strings.NewReplacer("\n", "", "\r", "", "\t", "")
	pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
)
