package config

import (
	"maps"
	"slices"
)

// Given lists the product's variables that an environment sets, by name and in order. Empty ones are not set, and those of
// what surrounds the product are not the product's.
func Given(environ []string) []string {
	set := ours(environ)
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	return slices.Sorted(maps.Keys(set))
}
