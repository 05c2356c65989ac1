package main

import (
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
)

const freezeHelp = `For operators: forbid applying an action, a connector, the tenant or everything, for a while or until it is lifted. It asks a running
service's JSON API with the token of a person, as cutonce changes does. When set comes back, nothing that it covers is applied any
more; what had been claimed before is listed, and is not called back.

  cutonce freeze set --action budget_change --reason "The platform bills twice, OPS-118" --for 2h
  cutonce freeze set --everything --reason "…"        (admins)
  cutonce freeze lift --action budget_change

Exit codes: 0 done; 1 the service refused, and said why; 2 wrong usage; 3 the service was not reached.`

const freezesPath = "/v1/freezes"

func freezeCommand() *cobra.Command {
	var f changesFlags
	cmd := &cobra.Command{
		Use: "freeze", Short: "Forbid applying for a while, and lift that", Long: freezeHelp,
		Args: exactly(0, "which command? list, set or lift"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f.register(cmd)
	cmd.AddCommand(freezeList(&f), freezeSet(&f), freezeLift(&f))
	return cmd
}

func freezeList(f *changesFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what is frozen", Args: exactly(0, "list takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(o *operating) error {
				var all answer.Freezes
				if done, err := o.get(freezesPath, nil, &all); done || err != nil {
					return err
				}
				o.out.line("%s", all.Message)
				for _, one := range all.Items {
					o.out.line("  %s", one.Message)
				}
				return nil
			})
		},
	}
}

// frozenThing is what a command freezes or lifts.
type frozenThing struct {
	action, connector  string
	tenant, everything bool
	reason             string
}

func (t *frozenThing) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&t.action, "action", "", "this action, such as budget_change")
	flags.StringVar(&t.connector, "connector", "", "all changes of this target system, such as ads.example/agency")
	flags.BoolVar(&t.tenant, "tenant", false, "all changes of your tenant")
	flags.BoolVar(&t.everything, "everything", false, "all changes of every tenant (admins)")
	flags.StringVar(&t.reason, "reason", "", "why; whoever is refused reads it")
}

// named is the kind and name, empty where not exactly one thing was named.
func (t frozenThing) named() (kind commit.FreezeKind, name string) {
	n := 0
	for k, given := range map[commit.FreezeKind]bool{
		commit.FreezeAction: t.action != "", commit.FreezeConnector: t.connector != "", commit.FreezeTenant: t.tenant, commit.FreezeEverything: t.everything,
	} {
		if given {
			kind, n = k, n+1
		}
	}
	if n != 1 {
		return "", ""
	}
	return kind, t.action + t.connector // the one that was given
}

const whatFrozen = "what? give one of --action, --connector, --tenant or --everything"

func freezeSet(f *changesFlags) *cobra.Command {
	var t frozenThing
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "set --action NAME|--connector SYSTEM|--tenant|--everything --reason TEXT [--for 2h]", Short: "Freeze an action, a connector, the tenant or everything",
		Args: exactly(0, "set takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, name := t.named()
			switch {
			case kind == "":
				return misused(cmd, whatFrozen)
			case strings.TrimSpace(t.reason) == "":
				return misused(cmd, "why? give --reason")
			case lasts < 0 || lasts%time.Second != 0:
				return misused(cmd, "for how long? give whole seconds, such as 90s or 2h")
			}
			body := map[string]any{"kind": string(kind), "reason": t.reason}
			if name != "" {
				body["name"] = name
			}
			if lasts > 0 {
				body["for_s"] = int64(lasts / time.Second)
			}
			return f.run(cmd, func(o *operating) error { return o.freeze(body) })
		},
	}
	t.register(cmd)
	cmd.Flags().DurationVar(&lasts, "for", 0, "ends by itself after this long; until it is lifted if not given")
	return cmd
}

func (o *operating) freeze(body map[string]any) error {
	var frozen answer.Frozen
	if done, err := o.post(freezesPath+"?response_format=detailed", body, &frozen); done || err != nil {
		return err
	}
	o.out.line("%s", frozen.Message)
	for _, c := range frozen.InFlight {
		o.printRow(c)
	}
	if frozen.More {
		o.out.apart("%s", o.t("cli.more", nil))
		o.out.line("  cutonce changes list --status applying,unknown")
	}
	return nil
}

func freezeLift(f *changesFlags) *cobra.Command {
	var t frozenThing
	cmd := &cobra.Command{
		Use: "lift --action NAME|--connector SYSTEM|--tenant|--everything [--reason TEXT]", Short: "Lift a freeze",
		Args: exactly(0, "lift takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, name := t.named()
			if kind == "" {
				return misused(cmd, whatFrozen)
			}
			q := url.Values{"kind": {string(kind)}}
			for key, value := range map[string]string{"name": name, "reason": t.reason} {
				if value != "" {
					q.Set(key, value)
				}
			}
			return f.run(cmd, func(o *operating) error {
				var b answer.Body
				reply, err := o.client.Delete(o.ctx, freezesPath, q)
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
	t.register(cmd)
	return cmd
}
