package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequirementsAreJoinedByAnd(t *testing.T) {
	t.Parallel()
	seat := func(count int, groups ...string) Seats { return Seats{AnyOf: groups, Count: count} }
	for name, tc := range map[string]struct{ a, b, want Requirement }{
		"the same group twice is one person": {
			Requirement{seat(1, "ads")}, Requirement{seat(1, "ads")}, Requirement{seat(1, "ads")},
		},
		"the larger count stays": {
			Requirement{seat(1, "ads")}, Requirement{seat(3, "ads")}, Requirement{seat(3, "ads")},
		},
		"the narrower groups stay": {
			Requirement{seat(1, "ads", "finance")}, Requirement{seat(1, "finance")}, Requirement{seat(1, "finance")},
		},
		"different groups are both asked": {
			Requirement{seat(1, "ads")}, Requirement{seat(1, "finance")}, Requirement{seat(1, "ads"), seat(1, "finance")},
		},
		"two seats of one rule stay two people": {
			Requirement{seat(1, "ads")}, Requirement{seat(1, "ads"), seat(1, "ads", "finance")},
			Requirement{seat(1, "ads"), seat(1, "ads", "finance")},
		},
		"more of fewer groups replaces less of more": {
			Requirement{seat(1, "ads", "finance"), seat(1, "legal")}, Requirement{seat(2, "ads")},
			Requirement{seat(2, "ads"), seat(1, "legal")},
		},
		"neither contains the other": {
			Requirement{seat(2, "ads", "finance")}, Requirement{seat(1, "ads")},
			Requirement{seat(2, "ads", "finance"), seat(1, "ads")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := append(Requirement(nil), tc.a...)
			if diff := cmp.Diff(tc.want, tc.a.and(tc.b)); diff != "" {
				t.Errorf("and (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.a); diff != "" {
				t.Errorf("the first requirement was changed (-want +got):\n%s", diff)
			}
		})
	}
}
