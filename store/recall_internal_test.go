package store

import "maps"

// Inherit has one store remember what another one does: the same process, whose pool has come back to another server.
func Inherit(heir, from *Store) {
	inherit(&heir.seen.previews, &from.seen.previews)
	inherit(&heir.seen.epochs, &from.seen.epochs)
}

func inherit[K comparable, V any](heir, from *memory[K, V]) {
	heir.young, heir.old = maps.Clone(from.young), maps.Clone(from.old)
}
