package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// Row documents one variable.
type Row struct{ Name, Default, Doc, Group string }

// Table documents every variable, in the order of Settings.
func Table() []Row {
	var rows []Row
	for _, f := range fields(&Settings{}) {
		rows = append(rows, Row{Name: f.name, Default: f.fallback, Doc: f.doc, Group: f.group})
	}
	return rows
}

// Get renders the setting of a variable as it may be printed: secrets only say whether they are set, and addresses lose
// their password.
func (s Settings) Get(name string) string {
	for _, f := range fields(&s) {
		if f.name == name {
			return f.shown()
		}
	}
	return ""
}

// LogValue is every effective setting, redacted.
func (s Settings) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, f := range fields(&s) {
		if strings.HasPrefix(f.group, "a second") && s.Issuer2.URL == "" || strings.HasPrefix(f.group, "a third") && s.Issuer3.URL == "" {
			continue
		}
		attrs = append(attrs, slog.String(strings.TrimPrefix(f.name, Prefix), f.shown()))
	}
	return slog.GroupValue(attrs...)
}

func (f field) shown() string {
	switch v := f.value.Interface().(type) {
	case Secret:
		return v.String()
	case []string:
		return strings.Join(v, ",")
	case string:
		return withoutPassword(v)
	default:
		return fmt.Sprint(v)
	}
}

func withoutPassword(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}
