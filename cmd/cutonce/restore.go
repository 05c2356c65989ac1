package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

const restoreHelp = `After the database was restored from a backup: what was applied since that backup is forgotten, and must not be applied again.

A declared restore freezes every apply and holds each change that may have been applied since. The service asks the targets by itself;
what it finds becomes applied, what is not there goes on as before. cutonce serve declares it by itself where CUTONCE_SEAL_WITNESS has
seen more than the database knows. These commands work on CUTONCE_DATABASE_URL.`

func restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore", Short: "Declare, watch and finish a restore of the database from a backup", Long: restoreHelp,
		Args: exactly(0, "which command? declare, status, resolve or finish"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(restoreDeclare(), restoreStatus(), restoreResolve(), restoreFinish())
	return cmd
}

// author is who says something, and why.
type author struct{ by, reason string }

func (a *author) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.by, "by", "", "your name, for the audit trail")
	cmd.Flags().StringVar(&a.reason, "reason", "", "why, for the audit trail")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
}

func (a *author) missing() bool {
	return strings.TrimSpace(a.by) == "" || strings.TrimSpace(a.reason) == ""
}

func (a *author) actor() string { return "operator:" + strings.TrimSpace(a.by) }

const whoSays = "--by and --reason are required: who says so, and why?"

func restoreDeclare() *cobra.Command {
	var a author
	var to string
	cmd := &cobra.Command{
		Use: "declare", Short: "Say that the database was restored to an earlier time",
		Long: "Freezes every apply, and holds each change that may have been applied between --to and now until its target was asked. Give a time\n" +
			"that is rather too early than too late. Declaring again widens it.",
		Args: exactly(0, "declare takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := time.Parse(time.RFC3339, to)
			switch {
			case err != nil:
				return misused(cmd, "--to: the time whose state was restored, such as 2026-01-02T15:04:05Z")
			case a.missing():
				return misused(cmd, whoSays)
			}
			s, err := openDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			_, held, err := s.DeclareRestore(cmd.Context(), store.Restore{To: at, By: a.actor(), Reason: a.reason})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "applies are frozen; %d changes are held until their targets were asked\nnext: cutonce restore status\n", held)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the time whose state was restored, such as 2026-01-02T15:04:05Z")
	a.flags(cmd)
	return cmd
}

func restoreFinish() *cobra.Command {
	var a author
	cmd := &cobra.Command{
		Use: "finish", Short: "Lift the freeze of a restore; what is still held stays held, one by one",
		Args: exactly(0, "finish takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.missing() {
				return misused(cmd, whoSays)
			}
			s, err := openDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			finished, err := s.FinishRestore(cmd.Context(), a.actor(), a.reason)
			if err != nil {
				return err
			}
			text := "applies are no longer frozen by the restore"
			if !finished {
				text = "no restore was under way"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	a.flags(cmd)
	return cmd
}

func restoreResolve() *cobra.Command {
	var a author
	var happened, never bool
	cmd := &cobra.Command{
		Use: "resolve PREVIEW", Short: "Say what became of a held change whose target cannot tell",
		Long: "For changes that have ended, or were recorded as not applied: --never: it was not applied in the lost time. --happened: it was, and\n" +
			"that stays on record as an incident. The service asks the target first, until no late effect is to be expected; only what the target\n" +
			"cannot tell is heard here, never from the requester. Where the action asks for two operators, the second says the same within the hour.\n" +
			"An open change that no target can tell of becomes unknown, and is settled with cutonce changes resolve.\n" +
			"Names are taken on trust: whoever runs this holds the database's credentials.",
		Args: exactly(1, whichChange),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, ok := preview.ParseID(args[0])
			switch {
			case !ok:
				return misused(cmd, whichChange)
			case happened == never:
				return misused(cmd, "--happened or --never: which one?")
			case a.missing():
				return misused(cmd, whoSays)
			}
			s, err := openDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			ended, err := s.StateHeld(cmd.Context(), id, happened, strings.TrimSpace(a.by), a.reason)
			if err != nil {
				return err
			}
			text := "recorded"
			if !ended {
				text = "recorded as the first of two: another operator must say the same within the hour"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().BoolVar(&happened, "happened", false, "it was applied")
	cmd.Flags().BoolVar(&never, "never", false, "it was not applied")
	a.flags(cmd)
	return cmd
}

func restoreStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether a restore is under way, and what is held or left over",
		Args: exactly(0, "status takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := openDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := s.RestoreStatus(cmd.Context())
			if err != nil {
				return err
			}
			return printRestore(cmd.OutOrStdout(), r)
		},
	}
}

// leftOver says what each state of a hold asks for.
var leftOver = map[string]string{
	"held":        "held; the service asks its target",
	"found_ended": "INCIDENT: applied in the lost time, though it has ended otherwise since",
	"handed_over": "unknown; settle it with cutonce changes resolve",
}

func printRestore(to io.Writer, r store.RestoreStatus) error {
	switch {
	case r.At.IsZero():
		_, err := fmt.Fprintln(to, "no restore was ever declared")
		return err
	case r.Restoring:
		fmt.Fprintf(to, "RESTORING: every apply is frozen\n")
	default:
		fmt.Fprintf(to, "no restore is under way; the last one:\n")
	}
	fmt.Fprintf(to, "declared %s by %s: %s\nlost time from %s\n", r.At.UTC().Format(time.RFC3339), r.By, r.Reason, r.To.UTC().Format(time.RFC3339))
	fmt.Fprintf(to, "held %d, found applied %d, cleared %d, handed over %d, incidents %d\n",
		r.Counts["held"], r.Counts["found"], r.Counts["cleared"], r.Counts["handed_over"], r.Counts["found_ended"])
	for _, h := range r.Open {
		text := leftOver[h.State]
		if h.NeedsOperator {
			text = "held; its target cannot tell: cutonce restore resolve"
			if h.SaidBy != "" {
				text += " (" + h.SaidBy + " has said so; a second operator must say the same)"
			}
		}
		fmt.Fprintf(to, "  %s  %s  %s  %s\n", h.ID, h.Tenant, h.Action, text)
	}
	if r.Restoring && r.Counts["held"] == 0 {
		fmt.Fprintln(to, "nothing is held any more; next: cutonce restore finish")
	}
	return nil
}
