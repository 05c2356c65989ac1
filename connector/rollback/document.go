package rollback

import (
	"fmt"

	"github.com/cutonce/cutonce/internal/canon"
)

// document is a JSON object of the platform. Members are read by their exact names: encoding/json would also take other
// spellings, and the last of two duplicates.
type document map[string]any

// parseDocument reads a whole body strictly; what was cut off or doubled is an error.
func parseDocument(body []byte) (document, error) {
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

// texts reads members that must be non-empty strings.
func (d document) texts(into map[string]*string) error {
	for name, place := range into {
		s, ok := d[name].(string)
		if !ok || s == "" {
			return fmt.Errorf("the platform's answer has no %s", name)
		}
		*place = s
	}
	return nil
}

// object is a member that must be an object.
func (d document) object(name string) (document, error) {
	m, ok := d[name].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the platform's answer has no %s", name)
	}
	return m, nil
}

// list is a member that must be an array of objects.
func (d document) list(name string) ([]document, error) {
	items, ok := d[name].([]any)
	if !ok {
		return nil, fmt.Errorf("the platform's answer has no list of %s", name)
	}
	out := make([]document, 0, len(items))
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the platform's list of %s holds something else", name)
		}
		out = append(out, m)
	}
	return out, nil
}
