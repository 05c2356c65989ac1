package store

import "sync"

// mostRemembered bounds either half of a memory.
const mostRemembered = 512

// memory remembers the last things that were kept, and forgets by halves: when the young half is full it becomes the old one, and the
// old one is dropped. It is safe for concurrent use.
type memory[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]V
}

func (m *memory[K, V]) find(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.young[key]; ok {
		return value, true
	}
	value, ok := m.old[key]
	return value, ok
}

func (m *memory[K, V]) keep(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil || len(m.young) >= mostRemembered {
		m.young, m.old = make(map[K]V, mostRemembered), m.young
	}
	m.young[key] = value
}
