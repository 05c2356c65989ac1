package pglocal

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestComposeIsStartedAndStopped(t *testing.T) {
	if os.Getenv("CUTONCE_TEST_CONTAINERS") != "1" {
		t.Skip("needs a container engine; set CUTONCE_TEST_CONTAINERS=1")
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COMPOSE_PROJECT_NAME", "cutonce-test-"+strconv.Itoa(os.Getpid()))
	t.Setenv("CUTONCE_POSTGRES_PORT", strconv.Itoa(port))
	if image := os.Getenv("CUTONCE_TEST_POSTGRES_IMAGE"); image != "" {
		t.Setenv("CUTONCE_POSTGRES_IMAGE", image)
	}
	cfg := Config{ComposeFile: filepath.Join("..", "..", "docker-compose.yml")}.withDefaults()
	if !engineAnswers(t.Context()) {
		t.Fatal("no container engine answers")
	}
	compose, err := composeCommand(t.Context(), cfg.ComposeFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := compose(context.WithoutCancel(t.Context()), "down", "-v"); err != nil {
			t.Error(err)
		}
	})

	first, err := openCompose(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := first.Describe(), "in a container"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	second, err := openCompose(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := serverVersion(t.Context(), first.URL()); err != nil {
		t.Errorf("who found it running stopped it: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := serverVersion(t.Context(), first.URL()); err == nil {
		t.Error("who started it left it running")
	}
}
