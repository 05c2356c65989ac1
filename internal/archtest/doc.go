// Package archtest holds the tests that keep the house in order: who may import whom, how long things may be, where time and
// chance may come from, that the two languages have the same texts, and that the pages' diagrams, links and named tests are
// true. It has no code of its own.
package archtest
