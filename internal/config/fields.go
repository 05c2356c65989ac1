package config

import (
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// field is one variable and the place that it fills.
type field struct {
	name, fallback, doc, group string
	value                      reflect.Value
}

// fields lists every variable of s in the order of the source.
func fields(s *Settings) []field { return walk(reflect.ValueOf(s).Elem(), Prefix, "") }

func walk(v reflect.Value, prefix, group string) []field {
	var out []field
	for n := range v.NumField() {
		tag := v.Type().Field(n).Tag
		if inner := tag.Get("prefix"); inner != "" {
			out = append(out, walk(v.Field(n), prefix+inner, tag.Get("doc"))...)
			continue
		}
		out = append(out, field{
			name: prefix + tag.Get("env"), fallback: tag.Get("default"), doc: tag.Get("doc"), group: group, value: v.Field(n),
		})
	}
	return out
}

var durationType, levelType = reflect.TypeFor[time.Duration](), reflect.TypeFor[slog.Level]()

// set reads text into the field. Its error never repeats the text, which may be a secret in the wrong place.
func (f field) set(text string) error {
	switch f.value.Type() {
	case durationType:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("%s: not a duration such as 30s, 10m or 24h", f.name)
		}
		f.value.SetInt(int64(d))
		return nil
	case levelType:
		var level slog.Level
		if level.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("%s: DEBUG, INFO, WARN or ERROR", f.name)
		}
		f.value.SetInt(int64(level))
		return nil
	}
	return f.setPlain(text)
}

func (f field) setPlain(text string) error {
	switch f.value.Kind() {
	case reflect.String:
		f.value.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s: true or false", f.name)
		}
		f.value.SetBool(b)
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%s: a whole number", f.name)
		}
		f.value.SetInt(n)
	case reflect.Slice:
		f.value.Set(reflect.ValueOf(list(text)))
	default:
		panic("config: a field of a kind that no variable can fill: " + f.name)
	}
	return nil
}

func list(text string) []string {
	var out []string
	for _, one := range strings.Split(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}
