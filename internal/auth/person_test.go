package auth_test

import (
	"errors"
	"testing"

	"github.com/cutonce/cutonce/internal/fault"
)

// TestWhoSignsInIsSomebody: claims that a provider has signed still have to name one person, who acts for themselves.
func TestWhoSignsInIsSomebody(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ES256")
	claims := func(name string, value any) map[string]any {
		c := map[string]any{"sub": "kim@agency.example", "tenant": "acme", "locale": "en", name: value}
		if value == nil {
			delete(c, name)
		}
		return c
	}
	who, err := r.verifier.Person(r.server.URL, "console", claims("locale", "ja"), nil)
	if err != nil || who.Subject != "kim@agency.example" || who.Locale != "ja" {
		t.Fatalf("got %+v, %v, want kim", who, err)
	}
	for what, c := range map[string]map[string]any{
		"no subject": claims("sub", nil), "an empty subject": claims("sub", ""), "a number": claims("sub", 7), "no tenant": claims("tenant", nil),
		"somebody who acts": claims("act", map[string]any{"sub": "bot"}),
	} {
		if who, err := r.verifier.Person(r.server.URL, "console", c, nil); !errors.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %+v, %v, want unauthenticated", what, who, err)
		}
	}
}
