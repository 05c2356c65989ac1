package store

import (
	"sync"

	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/preview"
)

// documents remembers what stored documents say. A change is read several times on its way and its document never changes: the
// digest, which every read checks against the bytes, names its content for ever. Nobody writes to a content that was read.
var documents = contents{}

// mostContents bounds either half of the memory.
const mostContents = 512

// contents forgets by halves: when the young half is full it becomes the old one, and the old one is dropped.
type contents struct {
	mu         sync.Mutex
	young, old map[canon.Digest]preview.Content
}

// read returns what the document under the digest says. The caller has compared the two.
func (c *contents) read(digest canon.Digest, document []byte) (preview.Content, error) {
	if content, ok := c.find(digest); ok {
		return content, nil
	}
	content, err := preview.ReadDocument(document)
	if err == nil {
		c.keep(digest, content)
	}
	return content, err
}

func (c *contents) find(digest canon.Digest) (preview.Content, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if content, ok := c.young[digest]; ok {
		return content, true
	}
	content, ok := c.old[digest]
	return content, ok
}

func (c *contents) keep(digest canon.Digest, content preview.Content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= mostContents {
		c.young, c.old = make(map[canon.Digest]preview.Content, mostContents), c.young
	}
	c.young[digest] = content
}
