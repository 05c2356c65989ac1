package httptarget

import (
	"fmt"

	"github.com/cutonce/cutonce/internal/canon"
)

// Document is a JSON object of the target. Members are read by their exact names: encoding/json would also take other
// spellings, and the last of two duplicates. Numbers are json.Number.
type Document map[string]any

// ParseDocument reads a whole body strictly; what was cut off or doubled is an error.
func ParseDocument(body []byte) (Document, error) {
	v, err := canon.Parse(body, canon.Limits{MaxBytes: maxReply})
	if err != nil {
		return nil, fmt.Errorf("reading the platform's answer: %w", err)
	}
	d, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the platform's answer is no object")
	}
	return d, nil
}

// Texts reads members that must be non-empty strings.
func (d Document) Texts(into map[string]*string) error {
	for name, place := range into {
		if err := d.Text(name, place); err != nil {
			return err
		}
	}
	return nil
}

// Text reads one member that must be a non-empty string.
func (d Document) Text(name string, into *string) error {
	s, ok := d[name].(string)
	if !ok || s == "" {
		return fmt.Errorf("the platform's answer has no %s", name)
	}
	*into = s
	return nil
}

// Object is a member that must be an object.
func (d Document) Object(name string) (Document, error) {
	m, ok := d[name].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the platform's answer has no %s", name)
	}
	return m, nil
}

// List is a member that must be an array of objects.
func (d Document) List(name string) ([]Document, error) {
	items, ok := d[name].([]any)
	if !ok {
		return nil, fmt.Errorf("the platform's answer has no list of %s", name)
	}
	out := make([]Document, 0, len(items))
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the platform's list of %s holds something else", name)
		}
		out = append(out, m)
	}
	return out, nil
}
