package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// Command runs the program once, as an operator does, with the deployment's secret and one database. An exit code other than 0 is no
// error: the caller knows what it means.
func (f *Fleet) Command(ctx context.Context, database string, args ...string) (said string, code int, err error) {
	cmd := exec.CommandContext(ctx, f.Binary, args...)
	cmd.Env = []string{"CUTONCE_DATABASE_URL=" + database, "CUTONCE_SECRET=" + f.Secret}
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return out.String() + problems.String(), exit.ExitCode(), nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("running %s %v: %w: %s", f.Binary, args, err, &problems)
	}
	return out.String(), 0, nil
}
