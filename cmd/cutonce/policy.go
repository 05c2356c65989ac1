package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/policy"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Test a policy before it is put in force: against its cases, and against the past",
		Args: exactly(0, "which command? test or replay"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
	cmd.AddCommand(policyTestCommand(), policyReplayCommand())
	return cmd
}

func policyTestCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Rule on the cases beside a policy (*.test.yaml) and say what is not as expected",
		Long: "Compiles the policy of DIR as serve would, rules on every case of its *.test.yaml files, and prints what was expected and what\n" +
			"came instead. It needs no database and no platform.\n\n" +
			"Exit codes: 0 every case is as expected; 1 at least one is not, and all of them were listed; 2 the policy or a case is not\n" +
			"readable, or there are no cases.\n\nHow to write rules and cases: docs/policies.md",
		Args: exactly(1, "which folder? It holds the policy and its *.test.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := tryPolicy(os.DirFS(args[0]))
			if err != nil {
				return misused(cmd, args[0]+": "+err.Error())
			}
			return report.print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// policyReport is what the cases of a policy showed.
type policyReport struct {
	Version string       `json:"policy_version"`
	Cases   []caseReport `json:"cases"`
	OK      int          `json:"ok"`
	Total   int          `json:"total"`
	Code    int          `json:"exit_code"`
}

type caseReport struct {
	File        string              `json:"file"`
	Name        string              `json:"name"`
	OK          bool                `json:"ok"`
	Differences []policy.Difference `json:"differences,omitempty"`
	Got         policy.Ruling       `json:"got"`
}

// tryPolicy refuses a folder without cases: a test that shows nothing must not pass.
func tryPolicy(files fs.FS) (policyReport, error) {
	rules, err := policy.Load(files)
	if err != nil {
		return policyReport{}, err
	}
	if err := rules.CheckActions(knownActions); err != nil {
		return policyReport{}, err
	}
	cases, err := policy.Cases(files)
	if err != nil {
		return policyReport{}, err
	}
	if len(cases) == 0 {
		return policyReport{}, errors.New("there are no cases: write some into NAME.test.yaml beside the policy")
	}
	report := policyReport{Version: rules.Version(), Total: len(cases)}
	for _, c := range cases {
		got, differences := rules.Try(c)
		report.Cases = append(report.Cases, caseReport{c.File, c.Name, len(differences) == 0, differences, got})
		if len(differences) == 0 {
			report.OK++
		}
	}
	if report.OK < report.Total {
		report.Code = 1
	}
	return report, nil
}

func (r policyReport) print(out io.Writer, asJSON bool) error {
	if asJSON {
		if err := printJSON(out, r); err != nil {
			return err
		}
	} else {
		r.printDiff(out)
	}
	if r.Code != 0 {
		return exitCode(r.Code)
	}
	return nil
}

func (r policyReport) printDiff(out io.Writer) {
	for _, c := range r.Cases {
		if c.OK {
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", c.File, c.Name)
		for _, d := range c.Differences {
			fmt.Fprintf(out, "  %s\n    - expected %s\n    + got      %s\n", d.What, orNothing(d.Expected), orNothing(d.Got))
		}
		if len(c.Got.Saw) > 0 {
			fmt.Fprintf(out, "  %s saw %s\n", c.Got.Rule, pairs(c.Got.Saw))
		}
	}
	fmt.Fprintf(out, "policy: %d/%d cases ok\n", r.OK, r.Total)
}

func orNothing(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

func printJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

func pairs(values map[string]string) string {
	said := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		said = append(said, name+" = "+values[name])
	}
	return strings.Join(said, ", ")
}
