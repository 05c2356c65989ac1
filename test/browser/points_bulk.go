package main

// Point 14: many at once.

// manyAtOnce approves several changes of one kind together.
func manyAtOnce(w *scene) {
	w.fail("there is no page for it")
}
