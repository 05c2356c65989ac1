package rollback

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector/httptarget"
	"github.com/cutonce/cutonce/internal/fault"
)

// statusFailed marks a deployment that cannot be activated.
const statusFailed = "failed"

// platform speaks the deployment platform's API. Its errors are faults where the caller can do something about it.
type platform struct{ *httptarget.Client }

// place is one service in one environment: the target.
type place struct{ service, environment string }

// id is the target's canonical ID, and placeOf reads it back.
func (p place) id() string { return p.service + "/" + p.environment }

func placeOf(id string) (place, bool) {
	service, environment, found := strings.Cut(id, "/")
	return place{service, environment}, found && isName(service) && isName(environment)
}

// path is that of the environment. Names are of letters, digits and hyphens, so nothing in it needs escaping.
func (p place) path() string { return "/v1/services/" + p.service + "/environments/" + p.environment }

func (p place) query() url.Values {
	return url.Values{"service": {p.service}, "environment": {p.environment}}
}

// deployment is one deployment as the platform showed it.
type deployment struct {
	ID, Version, Commit, Author, Status string
	// Activates is, of a rollback, the deployment whose build it runs.
	Activates string
	At        time.Time
	Migration bool
	place     place
}

// build is the deployment whose build this one runs.
func (d deployment) build() string {
	if d.Activates != "" {
		return d.Activates
	}
	return d.ID
}

func (d deployment) isRollback() bool { return d.Activates != "" }

// state is one environment as the platform showed it.
type state struct {
	place   place
	etag    string
	current deployment
}

// environment reads what runs in a place. What the platform does not know is not_found.
func (p *platform) environment(ctx context.Context, at place) (state, error) {
	d, refused, err := p.Get(ctx, at.path(), nil)
	switch {
	case err != nil:
		return state{}, err
	case refused != nil && refused.Says(http.StatusNotFound, "service_not_found"):
		return state{}, fault.New(fault.NotFound, nil).WithKey("rollback.service_not_found").
			WithField("/service", "rollback.field.unknown_service", fault.Args{"service": at.service})
	case refused != nil && refused.Says(http.StatusNotFound, "environment_not_found"):
		return state{}, fault.New(fault.NotFound, nil).WithKey("rollback.environment_not_found").WithField(
			"/environment", "rollback.field.unknown_environment", fault.Args{"service": at.service, "environment": at.environment})
	case refused != nil:
		return state{}, refused.Unavailable()
	}
	now, err := readState(d)
	if err == nil && (now.place != at || now.current.place != at) {
		err = fmt.Errorf("the platform answered about another environment")
	}
	if err != nil {
		return state{}, httptarget.Unavailable(err, 0)
	}
	return now, nil
}

func readState(d httptarget.Document) (state, error) {
	var now state
	err := d.Texts(map[string]*string{"service": &now.place.service, "environment": &now.place.environment, "etag": &now.etag})
	if err != nil {
		return state{}, err
	}
	current, err := d.Object("current")
	if err != nil {
		return state{}, err
	}
	now.current, err = readDeployment(current)
	return now, err
}

// readDeployment takes nothing for granted: a deployment that does not say whether it contains a migration is none that a
// preview could be built on.
func readDeployment(d httptarget.Document) (deployment, error) {
	var out deployment
	var at string
	err := d.Texts(map[string]*string{
		"id": &out.ID, "service": &out.place.service, "environment": &out.place.environment, "version": &out.Version,
		"commit": &out.Commit, "author": &out.Author, "status": &out.Status, "time": &at,
	})
	if err != nil {
		return deployment{}, err
	}
	if out.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return deployment{}, fmt.Errorf("reading a deployment's time: %w", err)
	}
	migration, ok := d["contains_migration"].(bool)
	if !ok {
		return deployment{}, fmt.Errorf("the platform does not say whether a deployment contains a migration")
	}
	out.Migration = migration
	if raw, given := d["activates"]; given {
		if out.Activates, ok = raw.(string); !ok || out.Activates == "" {
			return deployment{}, fmt.Errorf("the platform does not say which deployment a rollback activates")
		}
	}
	return out, nil
}

// deployment reads one deployment; false means that the platform has none of that ID.
func (p *platform) deployment(ctx context.Context, id string) (deployment, bool, error) {
	d, refused, err := p.Get(ctx, "/v1/deployments/"+url.PathEscape(id), nil)
	switch {
	case err != nil:
		return deployment{}, false, err
	case refused != nil && refused.Says(http.StatusNotFound, "deployment_not_found"):
		return deployment{}, false, nil
	case refused != nil:
		return deployment{}, false, refused.Unavailable()
	}
	found, err := readDeployment(d)
	if err == nil && found.ID != id {
		err = fmt.Errorf("the platform answered about another deployment")
	}
	if err != nil {
		return deployment{}, false, httptarget.Unavailable(err, 0)
	}
	return found, true, nil
}

// search is what deployments are listed by.
type search struct {
	place                place
	status, cursor, user string
	limit                int
}

type deploymentPage struct {
	deployments []deployment
	next        string
	total       int
}

// list reads one page, the newest deployment first. A cursor that the platform does not take is the caller's mistake.
func (p *platform) list(ctx context.Context, s search) (deploymentPage, error) {
	query := url.Values{"limit": {strconv.Itoa(s.limit)}}
	for name, value := range map[string]string{
		"service": s.place.service, "environment": s.place.environment, "status": s.status, "cursor": s.cursor, "user": s.user,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	d, refused, err := p.Get(ctx, "/v1/deployments", query)
	switch {
	case err != nil:
		return deploymentPage{}, err
	case refused != nil && s.cursor != "" && refused.Says(http.StatusBadRequest, "invalid_parameter"):
		return deploymentPage{}, fault.New(fault.InvalidInput, nil).WithField("/cursor", "rollback.field.cursor", nil)
	case refused != nil:
		return deploymentPage{}, refused.Unavailable()
	}
	page, err := readPage(d)
	if err != nil {
		return deploymentPage{}, httptarget.Unavailable(err, 0)
	}
	return page, nil
}

func readPage(d httptarget.Document) (deploymentPage, error) {
	items, err := d.List("deployments")
	if err != nil {
		return deploymentPage{}, err
	}
	page := deploymentPage{total: -1}
	for _, item := range items {
		one, err := readDeployment(item)
		if err != nil {
			return deploymentPage{}, err
		}
		page.deployments = append(page.deployments, one)
	}
	if n, ok := d["total"].(json.Number); ok {
		if page.total, err = strconv.Atoi(string(n)); err != nil {
			return deploymentPage{}, fmt.Errorf("reading the total: %w", err)
		}
	}
	page.next, _ = d["next_cursor"].(string)
	return page, nil
}
