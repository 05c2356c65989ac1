package store

import (
	"encoding/json"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/preview"
)

// documents remembers what stored documents say. A change is read several times on its way and its document never changes: the
// digest, which every read checks against the bytes, names its content for ever. Nobody writes to a content that was read.
var documents memory[canon.Digest, preview.Content]

// contentOf returns what the document under the digest says. The caller has compared the two.
func contentOf(digest canon.Digest, document []byte) (preview.Content, error) {
	if content, ok := documents.find(digest); ok {
		return content, nil
	}
	content, err := preview.ReadDocument(document)
	if err == nil {
		documents.keep(digest, content)
	}
	return content, err
}

// requesters and rulings remember what their columns say, under the bytes themselves: the same few come with change after change.
var (
	requesters memory[string, actor.Actor]
	rulings    memory[string, preview.Ruling]
)

// remembered reads a JSON column. Nobody writes to a value that was read.
func remembered[V any](m *memory[string, V], raw []byte, into *V) error {
	if known, ok := m.find(string(raw)); ok {
		*into = known
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	m.keep(string(raw), *into)
	return nil
}

// listed reads a JSON column that is mostly an empty list.
func listed[V any](raw []byte, into *[]V) error {
	if string(raw) == "[]" {
		*into = nil
		return nil
	}
	return json.Unmarshal(raw, into)
}
