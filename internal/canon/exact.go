package canon

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// checkExact walks a Go value that encoding/json has already accepted (so it has no cycle) and refuses what it
// would have changed silently.
func checkExact(v any) error { return walk(reflect.ValueOf(v)) }

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func walk(v reflect.Value) error {
	if !v.IsValid() || v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler) {
		return nil
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		return &Error{Reason: Unsupported, Detail: "no exact form for a float"}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &Error{Reason: InvalidUTF8}
		}
	case reflect.Pointer, reflect.Interface:
		return walk(v.Elem())
	case reflect.Struct:
		return walkStruct(v)
	case reflect.Map:
		return walkMap(v)
	case reflect.Slice, reflect.Array:
		return walkSlice(v)
	}
	return nil
}

func walkStruct(v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if err := walk(v.Field(i)); err != nil {
			return under(f.Name, err)
		}
	}
	return nil
}

func walkMap(v reflect.Value) error {
	for it := v.MapRange(); it.Next(); {
		if err := walk(it.Key()); err != nil {
			return err
		}
		if err := walk(it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func walkSlice(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return nil
	}
	for i := range v.Len() {
		if err := walk(v.Index(i)); err != nil {
			return under(strconv.Itoa(i), err)
		}
	}
	return nil
}
