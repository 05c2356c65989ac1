package main

import (
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/answer"
)

const approversHelp = `For admins: remove a person as an approver, whatever groups their token names, and restore them. It asks a running service's JSON API
with the token of a person, as cutonce changes does. When remove comes back, nothing is claimed any more that rests on their approval: a change
that was approved and lacks people without them goes back for approval when it is applied. What had been claimed before is not called back.
Somebody is named by their subject, as tokens do; spelling in capitals and the issuer make no difference.

  cutonce approvers remove kim@agency.example --reason "Left the agency"
  cutonce approvers list
  cutonce approvers restore kim@agency.example

It takes away no role and no sign-in: those are the identity provider's.

Exit codes: 0 done; 1 the service refused, and said why; 2 wrong usage; 3 the service was not reached.`

const removalsPath = "/v1/removed-approvers"

func approversCommand() *cobra.Command {
	var f changesFlags
	cmd := &cobra.Command{
		Use: "approvers", Short: "Remove a person as an approver, and restore them", Long: approversHelp,
		Args: exactly(0, "which command? list, remove or restore"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f.register(cmd)
	cmd.AddCommand(approversList(&f), approversRemove(&f), approversRestore(&f))
	return cmd
}

func approversList(f *changesFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List who was removed", Args: exactly(0, "list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(o *operating) error {
				var all answer.Removals
				if done, err := o.get(removalsPath, nil, &all); done || err != nil {
					return err
				}
				o.out.line("%s", all.Message)
				for _, one := range all.Items {
					o.out.line("  %s  %s", one.Since.Format("2006-01-02 15:04"), one.Message)
				}
				return nil
			})
		},
	}
}

func approversRemove(f *changesFlags) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "remove PERSON --reason TEXT", Short: "Remove a person", Args: exactly(1, "whom? give their subject, such as kim@agency.example"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return misused(cmd, "why? give --reason")
			}
			return f.run(cmd, func(o *operating) error {
				var removed answer.RemovedApprover
				if done, err := o.post(removalsPath, map[string]any{"person": args[0], "reason": reason}, &removed); done || err != nil {
					return err
				}
				o.out.line("%s", removed.Message)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the person reads it")
	return cmd
}

func approversRestore(f *changesFlags) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "restore PERSON [--reason TEXT]", Short: "Restore a person", Args: exactly(1, "whom? list names them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := url.Values{"person": {args[0]}}
			if reason != "" {
				q.Set("reason", reason)
			}
			return f.run(cmd, func(o *operating) error {
				var b answer.Body
				reply, err := o.client.Delete(o.ctx, removalsPath, q)
				if err != nil {
					return err
				}
				if done, err := o.read(reply, &b); done || err != nil {
					return err
				}
				o.out.line("%s", b.Message)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is kept in the audit trail")
	return cmd
}
