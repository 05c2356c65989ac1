package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func policyReplayCommand() *cobra.Command {
	var since, dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Say what a policy would have decided on the changes that were prepared before",
		Long: "Rules on every stored preview since then, with the facts that were stored and the time at which it was prepared, and prints how\n" +
			"often which verdict became which, and each change that would have been ruled otherwise. It reads CUTONCE_DATABASE_URL in one\n" +
			"read-only transaction and writes nothing. Previews that retention has removed are not there to be ruled on.\n\n" +
			"Exit codes: 0 everything was ruled on, whatever came of it; 2 wrong usage, or the policy or the database is not readable.",
		Args: exactly(0, "replay takes no arguments; --policy names the folder"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := replayPolicy(cmd.Context(), since, dir)
			if err != nil {
				return misused(cmd, err.Error())
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), report)
			}
			report.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far back: days, hours or minutes, such as 30d or 12h")
	cmd.Flags().StringVar(&dir, "policy", "", "the policy's folder (default: CUTONCE_POLICY_DIR)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// replayReport is what a policy makes of the past.
type replayReport struct {
	Version  string         `json:"policy_version"`
	Since    string         `json:"since"`
	Previews int            `json:"previews"`
	Changed  int            `json:"changed"`
	Verdicts []verdictMove  `json:"verdicts"`
	Changes  []replayChange `json:"changes"`
}

// verdictMove counts the previews that one verdict was given and that another would be given now.
type verdictMove struct {
	Old   policy.Verdict `json:"old"`
	New   policy.Verdict `json:"new"`
	Count int            `json:"count"`
}

// replayChange is one preview that would be ruled otherwise.
type replayChange struct {
	ID         preview.ID `json:"preview_id"`
	Tenant     string     `json:"tenant"`
	Action     string     `json:"action"`
	Target     string     `json:"target"`
	PreparedAt time.Time  `json:"prepared_at"`
	Old        outcome    `json:"old"`
	New        outcome    `json:"new"`
}

// outcome is what a ruling comes to.
type outcome struct {
	Verdict policy.Verdict     `json:"verdict"`
	Rule    string             `json:"rule"`
	Needs   policy.Requirement `json:"needs,omitempty"`
	Confirm bool               `json:"confirm,omitempty"`
}

func outcomeOf(r policy.Ruling) outcome { return outcome{r.Verdict, r.Rule, r.Needs, r.Confirm} }

// alike compares what people would notice. Another rule with the same outcome is no change.
func (s outcome) alike(other outcome) bool {
	return s.Verdict == other.Verdict && s.Confirm == other.Confirm && s.Needs.String() == other.Needs.String()
}

func (s outcome) String() string {
	text := string(s.Verdict) + " by " + s.Rule
	switch {
	case s.Confirm:
		text += " (confirm)"
	case len(s.Needs) > 0:
		text += " (" + s.Needs.String() + ")"
	}
	return text
}

func replayPolicy(ctx context.Context, since, dir string) (replayReport, error) {
	span, err := spanOf(since)
	if err != nil {
		return replayReport{}, err
	}
	settings, err := config.Load(os.Environ())
	if err != nil {
		return replayReport{}, err
	}
	if dir = cmp.Or(dir, settings.PolicyDir); dir == "" {
		return replayReport{}, errors.New("which policy? --policy DIR, or CUTONCE_POLICY_DIR")
	}
	rules, err := policy.Load(os.DirFS(dir))
	if err == nil {
		err = rules.CheckActions(knownActions)
	}
	if err != nil {
		return replayReport{}, fmt.Errorf("%s: %w", dir, err)
	}
	s, err := openDatabase(ctx)
	if err != nil {
		return replayReport{}, err
	}
	defer s.Close()
	report := replayReport{Version: rules.Version(), Since: since, Verdicts: []verdictMove{}, Changes: []replayChange{}}
	err = s.EachRuled(ctx, span, func(p preview.Preview) error { report.add(rules, p); return nil })
	return report, err
}

func (r *replayReport) add(rules *policy.Policy, p preview.Preview) {
	now := rules.Evaluate(policy.Facts{
		Action: p.Action, Input: p.Input, Plan: p.Plan, Impact: p.Impact, Requester: p.Requester, Now: p.CreatedAt,
	})
	r.Previews++
	i := slices.IndexFunc(r.Verdicts, func(m verdictMove) bool { return m.Old == p.Ruling.Verdict && m.New == now.Verdict })
	if i < 0 {
		i, r.Verdicts = len(r.Verdicts), append(r.Verdicts, verdictMove{Old: p.Ruling.Verdict, New: now.Verdict})
	}
	r.Verdicts[i].Count++
	was, is := outcomeOf(p.Ruling), outcomeOf(now)
	if was.alike(is) {
		return
	}
	r.Changed++
	r.Changes = append(r.Changes, replayChange{
		ID: p.ID, Tenant: p.Tenant, Action: p.Action, Target: visible.Text(p.Plan.Target.Key()), PreparedAt: p.CreatedAt, Old: was, New: is,
	})
}

func (r replayReport) print(out io.Writer) {
	for _, c := range r.Changes {
		fmt.Fprintf(out, "%s  %s\n  - %s\n  + %s\n", c.ID, c.Target, c.Old, c.New)
	}
	strictness := []policy.Verdict{policy.Allow, policy.Require, policy.Deny}
	for _, old := range strictness {
		for _, now := range strictness {
			for _, m := range r.Verdicts {
				if m.Old == old && m.New == now {
					fmt.Fprintf(out, "%-7s → %-7s %d\n", m.Old, m.New, m.Count)
				}
			}
		}
	}
	fmt.Fprintf(out, "policy: %d of %d previews since %s would be ruled otherwise\n", r.Changed, r.Previews, r.Since)
}

// longestReplay keeps a mistyped number from being an overflow.
const longestReplay = 100 * 366

// spanOf reads 30d, and what Go calls a duration.
func spanOf(text string) (time.Duration, error) {
	wrong := fmt.Errorf("--since: %q is no time span such as 30d or 12h", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > longestReplay {
			return 0, wrong
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span <= 0 {
		return 0, wrong
	}
	return span, nil
}
