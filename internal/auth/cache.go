package auth

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
)

const maxCached = 4096

// entry is the verdict on one token: valid until then, as long as the issuer's keys are of that generation.
type entry struct {
	actor      actor.Actor
	issuer     *issuer
	generation uint64
	until      time.Time
}

// cache remembers verified tokens by the hash of their text. Only tokens that were found good enter, so nobody without
// one can fill it.
type cache struct {
	mu      sync.RWMutex
	entries map[[32]byte]entry // nil: remember nothing
}

func newCache(keep time.Duration) *cache {
	if keep < 0 {
		return &cache{}
	}
	return &cache{entries: map[[32]byte]entry{}}
}

func sum(raw string) [32]byte { return sha256.Sum256([]byte(raw)) }

func (c *cache) get(digest [32]byte) (entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[digest]
	return e, ok
}

func (c *cache) drop(digest [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, digest)
}

func (c *cache) put(digest [32]byte, e entry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		return
	}
	if len(c.entries) >= maxCached {
		c.evict(now)
	}
	c.entries[digest] = e
}

// evict drops what has ended; if nothing has, it starts afresh, which only costs a few verifications.
func (c *cache) evict(now time.Time) {
	for digest, e := range c.entries {
		if !now.Before(e.until) {
			delete(c.entries, digest)
		}
	}
	if len(c.entries) >= maxCached {
		clear(c.entries)
	}
}
