package target

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// NewDeployment is what someone else deploys, outside the API.
type NewDeployment struct {
	Service           string `json:"service"`
	Environment       string `json:"environment"`
	Version           string `json:"version"`
	Commit            string `json:"commit,omitempty"` // made up if empty
	Author            string `json:"author"`
	ContainsMigration bool   `json:"contains_migration,omitempty"`
	// Failed makes it one that is in the history and never became active.
	Failed bool `json:"failed,omitempty"`
}

var (
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Deploy is someone else's deployment, made outside the API: a new current deployment, a log entry from the console, no
// effect counted. A failed one changes nothing but the history. A service or environment that is not there yet begins
// with it.
func (d *Deploys) Deploy(n NewDeployment) (Deployment, error) {
	if err := n.check(); err != nil {
		return Deployment{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next := Deployment{
		Version: n.Version, Commit: n.Commit, Author: n.Author, ContainsMigration: n.ContainsMigration, Status: StatusActive, Source: FromConsole,
	}
	if next.Commit == "" {
		next.Commit = commitOf(d.seed, fmt.Sprintf("%s/%d", place(n.Service, n.Environment), d.serial))
	}
	e, ok := d.environments[place(n.Service, n.Environment)]
	switch {
	case !ok && n.Failed:
		return Deployment{}, errors.New("the first deployment of an environment cannot be a failed one")
	case !ok:
		return d.begin(n.Service, n.Environment, next), nil
	case n.Failed:
		return d.fail(e, next), nil
	}
	made, _ := d.add(e, next, StatusSuperseded, Entry{Agent: "console", Source: SourceConsole})
	return made, nil
}

func (n NewDeployment) check() error {
	switch {
	case !nameForm.MatchString(n.Service) || !nameForm.MatchString(n.Environment):
		return errors.New("a deployment has a service and an environment of lower-case letters, digits and -")
	case n.Version == "" || n.Author == "":
		return errors.New("a deployment has a version and an author")
	case n.Commit != "" && !commitForm.MatchString(n.Commit):
		return errors.New("a commit is forty hexadecimal digits")
	}
	return nil
}

// begin makes an environment with its first deployment. The caller holds mu.
func (d *Deploys) begin(service, name string, first Deployment) Deployment {
	e := &environment{service: service, name: name}
	first = d.numbered(e, first)
	e.now = []Deployment{first}
	e.before = e.now
	d.environments[place(service, name)] = e
	return first
}

// fail puts a failed deployment into the history. The caller holds mu.
func (d *Deploys) fail(e *environment, failed Deployment) Deployment {
	failed.Status = StatusFailed
	failed = d.numbered(e, failed)
	e.before, e.now = e.now, append(slices.Clone(e.now), failed)
	return failed
}

// SetDeploymentStatus says of a deployment that is not active that it failed after all (its build is not usable any
// more), or that it is usable again. The environment's version stays.
func (d *Deploys) SetDeploymentStatus(id, status string) (Deployment, error) {
	if status != StatusFailed && status != StatusSuperseded {
		return Deployment{}, fmt.Errorf("status can be set to %s or %s", StatusFailed, StatusSuperseded)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.find(id, false)
	if !ok || found.Status == StatusActive {
		return Deployment{}, fmt.Errorf("deployment %q is active or unknown", id)
	}
	e := d.environments[place(found.Service, found.Environment)]
	found.Status = status
	history := slices.Clone(e.now)
	history[slices.IndexFunc(history, func(x Deployment) bool { return x.ID == id })] = found
	e.before, e.now = e.now, history
	return found, nil
}

func (d *Deploys) controlDeploy(w http.ResponseWriter, r *http.Request) {
	var n NewDeployment
	control(w, r, &n, func() (any, error) { return d.Deploy(n) })
}

// statusChange is the body of POST /_sim/deployments/{id}.
type statusChange struct {
	Status string `json:"status"`
}

func (d *Deploys) controlStatus(w http.ResponseWriter, r *http.Request) {
	var change statusChange
	control(w, r, &change, func() (any, error) { return d.SetDeploymentStatus(r.PathValue("id"), change.Status) })
}
