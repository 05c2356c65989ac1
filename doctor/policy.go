package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/policy"
)

// policy compiles it, and rules on the cases beside it.
func (d *Deployment) policy(_ context.Context, see *Seen) {
	if d.PolicyErr != nil {
		see.fail("mend the files of CUTONCE_POLICY_DIR", "%s", oneLine(d.PolicyErr))
		return
	}
	if err := d.Policy.CheckActions(d.Actions); err != nil {
		see.fail("mend the rule, or this version does not know the action", "%s", oneLine(err))
		return
	}
	see.ok("compiled, version %s", short(d.Policy.Version()))
	if served := d.served(); len(served) > 0 {
		if err := d.Policy.CheckActions(served); err != nil {
			see.warn("configure its platform, or take the rule out", "a rule can never apply: %s", oneLine(err))
		}
	}
	d.cases(see)
}

func (d *Deployment) cases(see *Seen) {
	cases, err := policy.Cases(d.Rules)
	switch {
	case err != nil:
		see.fail("cutonce policy test", "%s", oneLine(err))
		return
	case len(cases) == 0:
		see.warn("write some: docs/policies.md", "there are no cases (*.test.yaml) beside it: nothing shows that it does what is meant")
		return
	}
	var wrong []string
	for _, c := range cases {
		if _, differences := d.Policy.Try(c); len(differences) > 0 {
			wrong = append(wrong, c.Name)
		}
	}
	if len(wrong) > 0 {
		see.fail("cutonce policy test", "%d of %d cases are not as expected: %s", len(wrong), len(cases), strings.Join(wrong, "; "))
		return
	}
	see.ok("%d cases are as expected", len(cases))
}

// inForce holds the policy up against the one that claims rest on.
func (d *Deployment) inForce(_ context.Context, see *Seen) {
	if !d.migrated() || d.Policy == nil {
		see.unseen(errSchema)
		return
	}
	switch loaded, f := d.Policy.Version(), d.facts; {
	case f.Policy == loaded:
		see.ok("it is the one of these files")
	case f.Policy == "":
		see.ok("none yet: the first start puts this one in force")
	case f.Before && !d.Settings.PolicyReinstate:
		see.fail("use the current files, or set CUTONCE_POLICY_REINSTATE=true for one start",
			"%s is in force and has superseded the one of these files (%s): serve refuses to start", short(f.Policy), short(loaded))
	default:
		see.warn("nothing, if that is meant", "%s is in force: the start puts the one of these files (%s) in its place", short(f.Policy), short(loaded))
	}
}

func short(version string) string { return version[:min(12, len(version))] }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// served are the actions of the configured platforms.
func (d *Deployment) served() []string {
	var names []string
	for _, c := range d.Connectors {
		for _, a := range c.Describe().Actions {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}

var errNoConnector = errors.New("no platform is configured")

// registered refuses connectors that cannot stand beside each other.
func registered(all []connector.Connector) error {
	if len(all) == 0 {
		return errNoConnector
	}
	_, err := connector.NewRegistry(all...)
	return err
}
