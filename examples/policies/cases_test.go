package policies_test

import (
	"testing"

	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/policy"
)

func TestTheShippedCasesAreKept(t *testing.T) {
	t.Parallel()
	p := load(t)
	cases, err := policy.Cases(policies.FS)
	if err != nil {
		t.Fatalf("Cases: %v", err)
	}
	if got, want := len(cases), 12; got != want {
		t.Errorf("got %d cases, want %d", got, want)
	}
	for _, c := range cases {
		if _, differences := p.Try(c); len(differences) > 0 {
			t.Errorf("%s: %s: got %v, want no differences", c.File, c.Name, differences)
		}
	}
}
