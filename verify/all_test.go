package verify

import (
	"testing"

	"github.com/cutonce/cutonce/internal/pgtest"
)

// The test's server is not durable, and no policy or issuer is configured here: those are shown by the command's own tests.
func TestEveryCheckOfTheCorePasses(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]bool{"durability": true, "policy": true, "tokens": true, "identity": true}
	var checks []Check
	for _, c := range Checks() {
		if !elsewhere[c.ID] {
			checks = append(checks, c)
		}
	}
	_, err := Run(t.Context(), configOn(pgtest.URL(t)), checks, func(r Result) {
		if r.Status != Pass {
			t.Errorf("%s: got %s (%s), want a pass", r.ID, r.Status, r.Reason)
		}
		t.Logf("%s took %s", r.ID, r.Took)
	})
	if err != nil {
		t.Error(err)
	}
}
