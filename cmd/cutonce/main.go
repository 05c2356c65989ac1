// Command cutonce lets agents prepare changes, people approve them, and applies them exactly once.
//
// This package is wiring and printing: one file a command, wire.go for what dev and serve share. It decides nothing, and it
// alone may import every room. The development issuer is imported by the development command's files only, so that no
// setting of serve can turn it on. Start at main and wire.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/config"
)

// The version is set by the linker.
var (
	version = "dev"
	revised = ""
)

func main() {
	tune()
	ctx := untilSignal()
	err := root().ExecuteContext(ctx)
	var silent exitCode
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "cutonce: interrupted")
		os.Exit(interrupted)
	case errors.As(err, &silent):
		os.Exit(int(silent))
	case err != nil:
		fmt.Fprintf(os.Stderr, "cutonce: %v\n", err)
		os.Exit(codeOf(err))
	}
}

// interrupted is the exit code of a process that was told twice to end.
const interrupted = 130

// untilSignal ends at the first signal, which begins a drain. A second one ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(interrupted)
	}()
	return ctx
}

// exitCode ends the process with a code; what there is to say has been said.
type exitCode int

// Error makes it an error.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// codeOf is 2 where what was asked or configured is wrong, and 1 where something failed.
func codeOf(err error) int {
	var refused config.Problems
	if errors.As(err, &refused) {
		return exitUsage
	}
	return 1
}

// strict makes every command of a tree say what is wrong with its words as cutonce changes does: with where to look, and exit code 2.
func strict(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	given := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.HasSubCommands() && len(args) > 0 {
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return misused(cmd, fmt.Sprintf("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or ")))
			}
		}
		if given == nil {
			return nil
		}
		err := given(cmd, args)
		var said exitCode
		if err == nil || errors.As(err, &said) {
			return err
		}
		return misused(cmd, err.Error())
	}
	cmd.SuggestionsMinimumDistance = 2
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "cutonce",
		Short:         "Agents prepare, people approve, and it is applied exactly once",
		Long:          "Measure twice, cut once: an agent prepares a change and sees its impact; a policy or a person approves\nexactly that; it is applied exactly once, and an unknown outcome has an answer.\n\nStart with: cutonce dev",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		// With a Run of its own, a word that is no command is refused instead of answered with the help.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(devCommand(), serveCommand(), mcpCommand(), changesCommand(), freezeCommand(), approversCommand(), migrateCommand(), notifyCommand(), policyCommand(), demoCommand(), targetCommand(), healthCommand(), verifyCommand(), doctorCommand(), auditCommand(), restoreCommand(), connectorCommand(), versionCommand())
	cmd.Version = version
	cmd.SetVersionTemplate(versionLine())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
	strict(cmd)
	return cmd
}
