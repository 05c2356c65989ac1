package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/config"
)

func TestGiven(t *testing.T) {
	t.Parallel()
	got := config.Given([]string{
		"PATH=/bin", "CUTONCE_URL=x", "CUTONCE_SECRET=y", "CUTONCE_LISTEN=", "CUTONCE_SERVICE_HOST=10.0.0.1", "CUTONCE_POSTGRES_PASSWORD=z",
	})
	if diff := cmp.Diff([]string{"CUTONCE_SECRET"}, got); diff != "" {
		t.Error(diff)
	}
}
