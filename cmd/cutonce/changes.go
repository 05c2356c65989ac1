package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of cutonce changes.
const (
	exitRefused  = 1
	exitUsage    = 2
	exitNotHeard = 3
)

const changesHelp = `For operators, at any hour: what is not known, why, and how to settle it. It asks a running service's JSON API with the token of a
person (` + bridgeURL + `, and ` + bridgeToken + ` or ` + bridgeTokenFile + `; or --url and --token-file), and holds nothing else: no database,
no key, no target.

Exit codes: 0 done; 1 the service refused, and said why; 2 wrong usage; 3 the service was not reached.`

func changesCommand() *cobra.Command {
	var f changesFlags
	cmd := &cobra.Command{
		Use: "changes", Short: "List, explain, probe and settle changes, by asking a running service", Long: changesHelp,
		Args: exactly(0, "which command? list, show, why, probe or resolve"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f.register(cmd)
	cmd.AddCommand(changesList(&f), changesShow(&f), changesWhy(&f), changesProbe(&f), changesResolve(&f))
	return cmd
}

// register adds the flags of every command that asks a service.
func (f *changesFlags) register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.url, "url", "", "the service, such as https://cutonce.example (plain http on this machine only)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file that holds the access token")
	flags.StringVar(&f.language, "lang", "", "en or ja; if not given, that of LC_ALL, LC_MESSAGES or LANG, else what the token says")
	flags.BoolVar(&f.json, "json", false, "print the service's answer as it is")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
}

// exactly wants n arguments, and else says what it wants.
func exactly(n int, wanted string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return misused(cmd, wanted)
	}
}

func misused(cmd *cobra.Command, text string) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "cutonce: %s\nsee %s --help\n", text, cmd.CommandPath())
	return exitCode(exitUsage)
}

const whichChange = "which change? give its ID, pv_…; cutonce changes list shows them"

type listFlags struct {
	status, target, cursor string
	needsOperator          bool
	limit                  int
}

func changesList(f *changesFlags) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List changes, the newest first",
		Long: "Lists the tenant's changes for people who review, and a requester's own.\n\n" +
			"  cutonce changes list --status applying,unknown\n  cutonce changes list --needs-operator",
		Args: exactly(0, "list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(o *operating) error { return o.list(l) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&l.status, "status", "", "only these, separated by commas, such as applying,unknown")
	flags.BoolVar(&l.needsOperator, "needs-operator", false, "only outcomes that no machine can settle")
	flags.StringVar(&l.target, "target", "", "only changes of the target with this ID")
	flags.IntVar(&l.limit, "limit", 20, "how many at most, 1 to 100")
	flags.StringVar(&l.cursor, "cursor", "", "where the page before ended")
	return cmd
}

func (l listFlags) query() url.Values {
	q := url.Values{"limit": {strconv.Itoa(l.limit)}, "response_format": {"detailed"}}
	for name, value := range map[string]string{"status": l.status, "target_id": l.target, "cursor": l.cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if l.needsOperator {
		q.Set("needs_operator", "true")
	}
	return q
}

func changesShow(f *changesFlags) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show all that is known of a change", Args: exactly(1, whichChange),
		Long: "Shows what was asked, what was sent and when, under which key the target knows it, every attempt and look with its result,\n" +
			"the values at the preview, at the last look and as requested, who waits for the same target, and the audit events.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(o *operating) error { return o.show(args[0]) })
		},
	}
}

func changesWhy(f *changesFlags) *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Explain why a change stands where it stands, and who moves next", Args: exactly(1, whichChange),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(o *operating) error { return o.why(args[0]) })
		},
	}
}

func changesProbe(f *changesFlags) *cobra.Command {
	return &cobra.Command{
		Use: "probe ID", Short: "Look at the target of an unknown outcome now", Args: exactly(1, whichChange),
		Long: "Looks for the change's own mark at the target. Proof settles the outcome; anything else is shown. Nothing is sent as a new\n" +
			"request. What was called not applied can be looked at again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(o *operating) error { return o.probe(args[0]) })
		},
	}
}

type resolveFlags struct {
	applied, notApplied bool
	reason, evidence    string
}

func changesResolve(f *changesFlags) *cobra.Command {
	var r resolveFlags
	cmd := &cobra.Command{
		Use: "resolve ID --applied|--not-applied --reason TEXT --evidence TEXT", Short: "Settle an unknown outcome by what you found at the target",
		Long: "Records your word under your name. The target is asked once more first, and its proof goes before any word. Saying the same\n" +
			"again changes nothing; the opposite of what was said is refused, naming who said it. Where the action asks for two\n" +
			"operators, the first word waits for a second one that agrees.",
		Args: exactly(1, whichChange),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wrong := r.wrong(); wrong != "" {
				return misused(cmd, wrong)
			}
			return f.run(cmd, func(o *operating) error { return o.resolve(args[0], r) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&r.applied, "applied", false, "it happened")
	flags.BoolVar(&r.notApplied, "not-applied", false, "it did not happen")
	flags.StringVar(&r.reason, "reason", "", "why you are sure")
	flags.StringVar(&r.evidence, "evidence", "", "what you looked at: a ticket, a log line, an address")
	return cmd
}

// wrong says what is missing of a statement, empty if nothing is.
func (r resolveFlags) wrong() string {
	switch {
	case r.applied == r.notApplied:
		return "did it happen? give --applied or --not-applied"
	case strings.TrimSpace(r.reason) == "":
		return "why are you sure? give --reason"
	case strings.TrimSpace(r.evidence) == "":
		return "what did you look at? give --evidence: a ticket, a log line, an address"
	}
	return ""
}

func (r resolveFlags) body() map[string]string {
	outcome := "not_applied"
	if r.applied {
		outcome = "applied"
	}
	return map[string]string{"outcome": outcome, "reason": r.reason, "evidence": r.evidence}
}
