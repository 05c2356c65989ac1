package mcpadapter_test

import (
	"testing"

	"github.com/cutonce/cutonce/commit"
)

// One call of a tool through the whole door, without the core behind it: tokens, strict reading, the SDK, both schemas.
// Run it with GOGC=400 as well; see the package comment.
func BenchmarkCall(b *testing.B) {
	s := &scripted{change: changeIn(commit.StatusApplied, "")}
	r := newRig(b, behind(s))
	token, args := r.issuer.token(), id(s.change.Preview.ID.String())
	b.ReportAllocs()
	for b.Loop() {
		if got := r.call(token, "change_status", args); got.IsError {
			b.Fatal(string(got.Raw))
		}
	}
}
