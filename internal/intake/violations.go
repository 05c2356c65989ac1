package intake

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// numeric are the complaints that make the code invalid_number when there are no others.
var numeric = map[string]bool{
	"field.not_a_number": true, "field.not_whole": true, "field.minimum": true, "field.maximum": true, "field.multiple": true,
	"field.relative_number": true, "field.number_unusable": true,
}

func collect(e *jsonschema.ValidationError, root any, fields []fault.Field) []fault.Field {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			fields = collect(cause, root, fields)
		}
		return fields
	}
	path := pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			fields = append(fields, fault.Field{Path: path + "/" + escape(name), Key: "field.required"})
		}
		return fields
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			fields = append(fields, fault.Field{Path: path + "/" + escape(clip(visible.Text(name))), Key: "field.unknown"})
		}
		return fields
	case *kind.Type:
		return append(fields, wrongType(path, k, at(root, e.InstanceLocation)))
	}
	return append(fields, plain(path, e.ErrorKind))
}

// digestPattern is that of every digest in our schemas.
const digestPattern = "^[0-9a-f]{64}$"

func plain(path string, k jsonschema.ErrorKind) fault.Field {
	f := fault.Field{Path: path, Key: "field.not_allowed"}
	switch k := k.(type) {
	case *kind.Minimum:
		f.Key, f.Args = "field.minimum", fault.Args{"least": number(k.Want)}
	case *kind.Maximum:
		f.Key, f.Args = "field.maximum", fault.Args{"most": number(k.Want)}
	case *kind.MultipleOf:
		f.Key, f.Args = "field.multiple", fault.Args{"of": number(k.Want)}
	case *kind.Pattern:
		f.Key, f.Args = "field.pattern", fault.Args{"pattern": k.Want}
		if k.Want == digestPattern {
			f.Key, f.Args = "field.digest", nil
		}
	case *kind.MinLength:
		f.Key, f.Args = "field.too_short", fault.Args{"least": k.Want}
	case *kind.MaxLength:
		f.Key, f.Args = "field.too_long", fault.Args{"most": k.Want}
	case *kind.Enum:
		f.Key, f.Args = "field.one_of", fault.Args{"values": list(k.Want)}
	}
	return f
}

// wrongType tells a number in quotes and a relative word ("+20%") apart from other confusions: agents write both.
func wrongType(path string, k *kind.Type, got any) fault.Field {
	want := strings.Join(k.Want, " / ")
	f := fault.Field{Path: path, Key: "field.type", Args: fault.Args{"want": want, "got": k.Got}}
	if want != "integer" && want != "number" {
		return f
	}
	f.Key, f.Args = "field.not_a_number", nil
	switch v := got.(type) {
	case string:
		if relative(v) {
			f.Key = "field.relative_number"
		}
	case json.Number:
		f.Key = "field.not_whole"
	}
	return f
}

func relative(text string) bool {
	text = strings.TrimSpace(text)
	return strings.ContainsAny(text, "%％") || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "*") ||
		strings.HasPrefix(text, "x") || strings.Contains(text, "倍")
}

func at(value any, location []string) any {
	for _, name := range location {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[name]
	}
	return value
}

func pointer(location []string) string {
	var b strings.Builder
	for _, name := range location {
		b.WriteString("/" + escape(name))
	}
	return b.String()
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return r.FloatString(2)
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ", ")
}
