package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine is what version and --version print.
func versionLine() string {
	return fmt.Sprintf("cutonce %s%s (%s, %s/%s)\n", version, between(" ", revised), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func between(space, text string) string {
	if text == "" {
		return ""
	}
	return space + text
}
