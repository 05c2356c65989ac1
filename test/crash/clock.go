package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A process has no way to ask for a clock of its own. So the program is built once more with one line of the standard library
// exchanged: time.Now adds what CRASH_CLOCK_SHIFT says, everywhere in the program and in all that it is made from.
const (
	theClock = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	itsShift = "sec, nsec, mono := runtimeNow()\n\tsec += shift\n\tif mono == 0 {"
	theShift = `package time

import "syscall"

var shift = func() int64 {
	text, _ := syscall.Getenv("CRASH_CLOCK_SHIFT")
	by, _ := ParseDuration(text)
	return int64(by / Second)
}()
`
)

// shiftedProgram builds the program, with the tag stops, whose clock CRASH_CLOCK_SHIFT shifts by a duration such as -1h, once.
func (s *suite) shiftedProgram(ctx context.Context) (string, error) {
	s.shifting.Do(func() {
		if s.dir, s.shiftErr = os.MkdirTemp("/var/tmp", "cutonce-shifted-"); s.shiftErr == nil {
			s.shiftErr = errors.Join(os.Chmod(s.dir, 0o755), buildShifted(ctx, s.dir, s.shiftedBinary()))
		}
	})
	return s.shiftedBinary(), s.shiftErr
}

func (s *suite) shiftedBinary() string { return filepath.Join(s.dir, "cutonce") }

func buildShifted(ctx context.Context, dir, binary string) error {
	overlay, err := overlay(ctx, dir)
	if err != nil {
		return fmt.Errorf("exchanging the clock: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "stops", "-overlay", overlay, "-o", binary, "./cmd/cutonce")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building with another clock: %w: %s", err, said)
	}
	return nil
}

// overlay writes what the go command is to read instead of package time's own files.
func overlay(ctx context.Context, dir string) (file string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	code, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return "", err
	}
	if strings.Count(string(code), theClock) != 1 {
		return "", errors.New("time.Now of this Go reads as it never did: clock.go must be told how")
	}
	replace := map[string]string{}
	for name, text := range map[string]string{
		"time.go": strings.Replace(string(code), theClock, itsShift, 1), "shift.go": theShift,
	} {
		replace[filepath.Join(source, name)] = filepath.Join(dir, name+".txt")
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o600)
}
