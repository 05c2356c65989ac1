package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/auth"
)

// TestARefusedAddressIsNamedWithoutItsPassword: what refuses a start is read by more people than the configuration.
func TestARefusedAddressIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, issuer := range []auth.Issuer{
		{URL: "https://user:hidden@issuer.example"}, {URL: "https://issuer.example", JWKSURL: "https://user:hidden@issuer.example/keys"},
		{URL: "https://user:hidden@issuer.example\x7f"},
	} {
		_, err := auth.New(t.Context(), auth.Config{Issuers: []auth.Issuer{issuer}, Audiences: []string{audience}, Now: time.Now})
		if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "issuer") {
			t.Errorf("%+v: got %v, want a refusal that holds no password", issuer, err)
		}
	}
}
