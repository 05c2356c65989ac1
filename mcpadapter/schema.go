package mcpadapter

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
)

// The fields of the tools' inputs that are ours.
const (
	fieldPreview       = "preview_id"
	fieldKey           = "idempotency_key"
	fieldFormat        = "response_format"
	fieldJustification = "justification"
	fieldReason        = "reason"
	fieldWait          = "wait_s"
	fieldTarget        = "target_id"
	fieldStatus        = "status"
	fieldCursor        = "cursor"

	formatConcise  = "concise"
	formatDetailed = "detailed"

	// maxText bounds what people read; maxID and maxCursor what only we do.
	maxText   = 2000
	maxID     = 200
	maxCursor = 1000
	maxKey    = 128
)

// object is a closed input schema.
func (b *builder) object(properties map[string]any, required ...string) json.RawMessage {
	return b.write(map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties, "required": append([]string{}, required...),
	})
}

func (b *builder) write(schema any) json.RawMessage {
	raw, err := json.Marshal(schema)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("writing a schema: %w", err)
	}
	return raw
}

func (b *builder) previewID() map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "maxLength": maxID, "description": b.texts.T("tool.field.preview_id", nil)}
}

func (b *builder) format() map[string]any {
	return map[string]any{
		"type": "string", "enum": []string{formatConcise, formatDetailed}, "description": b.texts.T("tool.field.response_format", nil),
	}
}

// inOfPreview is the action's own schema with the fields that every preview tool has.
func (b *builder) inOfPreview(a connector.Registered) json.RawMessage {
	schema, err := object(a.Input)
	if err != nil {
		b.err = fmt.Errorf("the input schema of %s: %w", a.Name, err)
		return nil
	}
	properties, _ := schema["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	for name, field := range map[string]any{
		fieldKey:    map[string]any{"type": "string", "minLength": 1, "maxLength": maxKey, "description": b.texts.T("tool.field.idempotency_key", nil)},
		fieldFormat: b.format(),
	} {
		if _, taken := properties[name]; taken {
			b.err = fmt.Errorf("the input schema of %s has a field %s, which every preview tool has of its own", a.Name, name)
		}
		properties[name] = field
	}
	schema["properties"] = properties
	return b.write(schema)
}

func object(raw json.RawMessage) (map[string]any, error) {
	value, err := canon.Parse(raw, canon.Limits{})
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	schema, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no object")
	}
	return schema, nil
}

// outOfChange is the schema of answer.Body: one object, whose message and next are always there. Telling success and refusal
// apart by a oneOf would be truer and of less use: clients generate types from it.
//
// Only a tool that takes response_format can answer in detail, so only its schema has the fields for it.
func (b *builder) outOfChange(detailed bool) json.RawMessage {
	schema := schemaOf(reflect.TypeFor[answer.Body]())
	if !detailed {
		leaveOutDetail(schema["properties"].(map[string]any)["change"])
	}
	b.explain(schema)
	return b.write(schema)
}

// leaveOutDetail takes away what the concise format never shows: in answer.Change, the fields from Digest on.
func leaveOutDetail(change any) {
	properties := change.(map[string]any)["properties"].(map[string]any)
	detail := false
	for field := range reflect.TypeFor[answer.Change]().Fields() {
		if detail = detail || field.Name == "Digest"; detail {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			delete(properties, name)
		}
	}
	outcome := properties["outcome"].(map[string]any)["properties"].(map[string]any)
	delete(outcome, "details")
}

// outOfChanges is the schema of answer.Changes, or of a refusal.
func (b *builder) outOfChanges() json.RawMessage {
	schema := schemaOf(reflect.TypeFor[answer.Changes]())
	leaveOutDetail(schema["properties"].(map[string]any)["items"].(map[string]any)["items"])
	return b.write(b.orRefusal(schema))
}

// outOfFind is the schema of answer.Found with the connector's items, or of a refusal.
func (b *builder) outOfFind(f connector.Finder) json.RawMessage {
	schema := schemaOf(reflect.TypeFor[answer.Found]())
	if len(f.Item) > 0 {
		item, err := object(f.Item)
		if err != nil && b.err == nil {
			b.err = fmt.Errorf("the item schema of %s: %w", f.Name, err)
		}
		delete(item, "$schema")
		schema["properties"].(map[string]any)["items"] = map[string]any{"type": "array", "items": item}
	}
	return b.write(b.orRefusal(schema))
}

// orRefusal adds the fields of a refusal. Then only what both have is always there.
func (b *builder) orRefusal(schema map[string]any) map[string]any {
	properties := schema["properties"].(map[string]any)
	for name, field := range schemaOf(reflect.TypeFor[answer.Body]())["properties"].(map[string]any) {
		if _, has := properties[name]; !has && name != "change" {
			properties[name] = field
		}
	}
	schema["required"] = []string{"message", "next"}
	b.explain(schema)
	return schema
}

// explain adds words and closed sets of values to the fields that a client acts on.
func (b *builder) explain(schema map[string]any) {
	values := map[string][]string{
		"status": texts(commit.Statuses()), "code": sorted(fault.Codes()), "next": nexts(),
		"kind": {string(fault.Validation), string(fault.Business), string(fault.System)},
	}
	properties := schema["properties"].(map[string]any)
	for _, name := range []string{
		"status", "code", "kind", "message", "next", "next_tool", "next_arguments", "retry_after_s", "retryable", "fields", "replayed", "change",
	} {
		field, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		field["description"] = b.texts.T("tool.out."+name, nil)
		if list, closed := values[name]; closed {
			field["enum"] = list
		}
	}
}

func nexts() []string {
	return texts([]fault.Next{
		fault.NextApply, fault.NextRequestApproval, fault.NextAwaitApproval, fault.NextCheckStatus, fault.NextPrepareAgain, fault.NextFixInput,
		fault.NextRetryLater, fault.NextGetPermission, fault.NextContactOperator, fault.NextNone,
	})
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func sorted[K ~string, V any](set map[K]V) []string {
	return slices.Sorted(slices.Values(texts(slices.Collect(maps.Keys(set)))))
}

var timeType = reflect.TypeFor[time.Time]()

// schemaOf writes the schema of a type of package answer, by the rules of encoding/json. What may be absent is not required;
// what is always there may be null only if it is a pointer.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case t.Kind() == reflect.Struct:
		return schemaOfStruct(t)
	case t == reflect.TypeFor[map[string]string]():
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	}
	simple := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Map: "object",
	}
	if name, ok := simple[t.Kind()]; ok {
		return map[string]any{"type": name}
	}
	return map[string]any{} // any value
}

func schemaOfStruct(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		s := schemaOf(field.Type)
		if options != "omitempty" {
			required = append(required, name)
			if kind, typed := s["type"].(string); typed && field.Type.Kind() == reflect.Pointer {
				s["type"] = []string{kind, "null"}
			}
		}
		properties[name] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}
