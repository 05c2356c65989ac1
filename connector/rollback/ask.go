package rollback

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

// ask is what the caller wants, as far as it can be judged without the platform.
type ask struct {
	at place
	// to is the deployment to go to, expect the one that the caller believes to be active.
	to, expect string
}

const mostReason = 500

// environments are those that the action may touch.
var environments = []string{"staging", "production"}

var (
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	idForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

func isName(s string) bool { return nameForm.MatchString(s) }

func isID(s string) bool { return idForm.MatchString(s) }

// readAsk checks the input whole and lists every wrong place. The schema has checked most of it before; this is the rule
// that holds without it.
func readAsk(in connector.Input) (ask, error) {
	a := ask{
		at: place{service: in.Text("service"), environment: in.Text("environment")},
		to: in.Text("to_deployment_id"), expect: in.Text("expect_current_deployment_id"),
	}
	var bad []fault.Field
	complain := func(wrong bool, path, key string, args fault.Args) {
		if wrong {
			bad = append(bad, fault.Field{Path: path, Key: key, Args: args})
		}
	}
	reason := in.Text("reason")
	blank := strings.TrimSpace(reason) == "" || utf8.RuneCountInString(reason) > mostReason
	complain(!isName(a.at.service), "/service", "rollback.field.service", nil)
	complain(!slices.Contains(environments, a.at.environment), "/environment", "rollback.field.environment",
		fault.Args{"environments": strings.Join(environments, ", ")})
	complain(!isID(a.to), "/to_deployment_id", "rollback.field.to_deployment_id", nil)
	complain(!isID(a.expect), "/expect_current_deployment_id", "rollback.field.expect_current_deployment_id", nil)
	complain(blank, "/reason", "rollback.field.reason", fault.Args{"most": mostReason})
	if len(bad) == 0 {
		return a, nil
	}
	f := fault.New(fault.InvalidInput, nil)
	f.Fields = bad
	return ask{}, f
}

// againstCurrent holds the expected deployment up to the active one. After a rollback either its own ID or that of the
// deployment it went back to names what is active.
func (a ask) againstCurrent(now state) error {
	if a.expect == now.current.ID || a.expect == now.current.build() {
		return nil
	}
	args := fault.Args{
		"expected": a.expect, "found": now.current.ID, "version": now.current.Version, "service": a.at.service, "environment": a.at.environment,
	}
	return fault.New(fault.ExpectMismatch, fault.Args{"expected": a.expect, "found": now.current.ID}).
		WithField("/expect_current_deployment_id", "rollback.field.expect_mismatch", args).
		WithData(map[string]any{"current": map[string]any{"id": now.current.ID, "version": now.current.Version}})
}

// notFound is the answer about an ID that this environment's history does not have. It is the same whether the platform has
// it elsewhere: the caller may not be allowed to know of it.
func (a ask) notFound() error {
	return fault.New(fault.NotFound, nil).WithKey("rollback.deployment_not_found").WithField("/to_deployment_id",
		"rollback.field.unknown_deployment", fault.Args{"id": a.to, "service": a.at.service, "environment": a.at.environment})
}

// againstTo says why a deployment of this environment cannot be gone to.
func (a ask) againstTo(now state, to deployment) error {
	args := fault.Args{"id": a.to, "version": to.Version}
	switch {
	case to.ID == now.current.build():
		return fault.New(fault.InvalidInput, nil).WithKey("rollback.no_change").
			WithField("/to_deployment_id", "rollback.field.no_change", args)
	case to.Status == statusFailed:
		return fault.New(fault.InvalidInput, nil).WithKey("rollback.deployment_failed").
			WithField("/to_deployment_id", "rollback.field.deployment_failed", args)
	}
	return nil
}
