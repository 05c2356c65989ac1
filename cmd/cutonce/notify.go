package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/notify/outbox"
	"github.com/cutonce/cutonce/store"
)

const notifyHelp = `Who is told of what stands in the file that CUTONCE_NOTIFY_FILE names (docs/notifications.md). check and test need that file
and the variables that it names; list and retry need CUTONCE_DATABASE_URL.`

func notifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "notify", Short: "Check who is told of what, try a receiver, and see what could not be delivered", Long: notifyHelp,
		Args: exactly(0, "which command? check, test, list or retry"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(notifyCheck(), notifyTest(), notifyList(), notifyRetry())
	return cmd
}

// receivers are those of the file.
func receivers() (config.Settings, notify.Config, error) {
	settings, err := config.Load(os.Environ())
	if err != nil {
		return settings, notify.Config{}, err
	}
	c, ok, err := readNotify(settings)
	if err == nil && !ok {
		err = config.Problems{"CUTONCE_NOTIFY_FILE: which file says who is told?"}
	}
	return settings, c, err
}

func notifyCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Read the file, and say who is told of what; nothing is sent",
		Args: exactly(0, "check takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, c, err := receivers()
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RECEIVER\tTENANT\tFOR\tBY\tKINDS")
			for _, r := range c.Receivers {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.Tenant, whomFor(r), wayOf(r), kindsOf(r))
			}
			return w.Flush()
		},
	}
}

func whomFor(r notify.Receiver) string {
	switch {
	case r.Operators:
		return "operators"
	case r.Requester:
		return "whoever asked"
	case r.Everything:
		return "everything"
	}
	return strings.Join(r.Groups, ", ")
}

func wayOf(r notify.Receiver) string {
	switch {
	case r.Webhook != nil:
		return "webhook"
	case r.Slack != nil:
		return "slack"
	}
	return "mail"
}

func kindsOf(r notify.Receiver) string {
	words := make([]string, 0, len(r.Kinds))
	for _, k := range r.Kinds {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

func notifyTest() *cobra.Command {
	return &cobra.Command{
		Use: "test RECEIVER", Short: "Send a test message to one receiver, about no change",
		Args: exactly(1, "which receiver? cutonce notify check lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, c, err := receivers()
			if err != nil {
				return err
			}
			texts, err := catalog.New()
			if err != nil {
				return err
			}
			parts := service{blueprint: blueprint{settings: settings}, texts: texts}
			if err := parts.teller(c, nil).Sample(cmd.Context(), args[0], time.Now()); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has taken a test message\n", args[0])
			return err
		},
	}
}

// desk opens the database and looks at deliveries.
func desk(ctx context.Context) (*outbox.Desk, func(), error) {
	settings, err := config.Load(os.Environ())
	if err != nil {
		return nil, nil, err
	}
	if settings.DatabaseURL == "" {
		return nil, nil, config.Problems{"CUTONCE_DATABASE_URL (or _FILE) is required: which Postgres?"}
	}
	feed, err := store.OpenOutbox(ctx, reachedDirectly(settings))
	if err != nil {
		return nil, nil, err
	}
	d, err := outbox.NewDesk(feed.Pool())
	if err != nil {
		feed.Close()
		return nil, nil, err
	}
	return d, feed.Close, nil
}

// mostFailed bounds a list.
const mostFailed = 200

func notifyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what could not be delivered: given up, or tried again later",
		Args: exactly(0, "list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, leave, err := desk(cmd.Context())
			if err != nil {
				return err
			}
			defer leave()
			failed, err := d.Failed(cmd.Context(), mostFailed)
			if err != nil {
				return err
			}
			return printFailed(cmd.OutOrStdout(), failed)
		},
	}
}

func printFailed(out io.Writer, failed []outbox.Failed) error {
	if len(failed) == 0 {
		_, err := fmt.Fprintln(out, "everything was delivered, or waits for its first try")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DELIVERY\tRECEIVER\tKIND\tCHANGE\tTRIES\tNEXT\tLAST ANSWER")
	for _, f := range failed {
		next := "given up"
		if !f.GivenUp {
			next = f.NextAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%s\n", f.Job, f.Item.Receiver, f.Item.Kind(), f.Item.Preview, f.Attempt, next, f.LastSaid)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "next: cutonce notify retry DELIVERY… or --all")
	return err
}

func notifyRetry() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "retry DELIVERY…", Short: "Have deliveries tried again now",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return misused(cmd, "which deliveries? Their numbers (cutonce notify list), or --all")
			}
			d, leave, err := desk(cmd.Context())
			if err != nil {
				return err
			}
			defer leave()
			jobs, err := numbers(cmd, d, args)
			if err != nil {
				return err
			}
			for _, job := range jobs {
				err = errors.Join(err, d.Retry(cmd.Context(), job))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d deliveries are tried again, if what they tell is still so\n", len(jobs))
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that cutonce notify list shows")
	return cmd
}

func numbers(cmd *cobra.Command, d *outbox.Desk, args []string) (jobs []int64, err error) {
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, misused(cmd, fmt.Sprintf("%q is no number of a delivery", arg))
		}
		jobs = append(jobs, n)
	}
	if len(args) > 0 {
		return jobs, nil
	}
	failed, err := d.Failed(cmd.Context(), mostFailed)
	for _, f := range failed {
		jobs = append(jobs, f.Job)
	}
	return jobs, err
}
