package store

import (
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
