package target

import (
	"net/http"
	"net/url"
	"time"
)

// The verbs of the deployment platform's permissions.
const (
	verbRead     = "read"
	verbRollback = "rollback"
)

// serviceDocument is one service in a list.
type serviceDocument struct {
	Name         string   `json:"name"`
	Environments []string `json:"environments"`
}

// environmentDocument is one environment with what runs in it.
type environmentDocument struct {
	Service     string     `json:"service"`
	Environment string     `json:"environment"`
	ETag        string     `json:"etag"`
	Current     Deployment `json:"current"`
	Deployments int        `json:"deployments"`
}

// deploymentPage is the document of a search.
type deploymentPage struct {
	Deployments []Deployment `json:"deployments"`
	Total       int          `json:"total"`
	NextCursor  string       `json:"next_cursor,omitempty"`
}

// Rollback is one change as the deployment platform shows it in look-ups and in its log. A deployment that someone else
// made is there too, with the source console.
type Rollback struct {
	ChangeID         string    `json:"change_id"`
	Time             time.Time `json:"time"`
	Service          string    `json:"service"`
	Environment      string    `json:"environment"`
	FromDeploymentID string    `json:"from_deployment_id"` // what was active before
	ToDeploymentID   string    `json:"to_deployment_id"`   // whose build runs since
	DeploymentID     string    `json:"deployment_id"`      // what is active since
	Key              string    `json:"key,omitempty"`
	OnBehalfOf       string    `json:"on_behalf_of,omitempty"`
	ApprovedBy       string    `json:"approved_by,omitempty"`
	Agent            string    `json:"agent,omitempty"`
	Source           Source    `json:"source"`
}

func (d *Deploys) serveServices(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user")
	d.serve(w, call{op: OpFind, refusal: onlyParameters(r, "user")}, func(bool) answer {
		shown := []serviceDocument{}
		for _, name := range d.serviceNames() {
			if s := d.serviceFor(name, user); len(s.Environments) > 0 {
				shown = append(shown, s)
			}
		}
		return reply(http.StatusOK, map[string][]serviceDocument{"services": shown})
	})
}

// serviceFor is a service with those of its environments that the user may read; everybody is "". It runs with mu held.
func (d *Deploys) serviceFor(name, user string) serviceDocument {
	s := serviceDocument{Name: name, Environments: []string{}}
	for _, environment := range []string{EnvProduction, EnvStaging} {
		if _, ok := d.environments[place(name, environment)]; ok && d.mayRead(user, place(name, environment)) {
			s.Environments = append(s.Environments, environment)
		}
	}
	return s
}

func (d *Deploys) mayRead(user, resource string) bool {
	return user == "" || d.permits(user, verbRead, resource).Allowed
}

func (d *Deploys) serveEnvironment(w http.ResponseWriter, r *http.Request) {
	service, name := r.PathValue("service"), r.PathValue("environment")
	c := call{op: OpRead, resource: place(service, name), refusal: onlyParameters(r)}
	d.serve(w, c, func(stale bool) answer {
		e, refusal := d.environment(service, name)
		if refusal != nil {
			return *refusal
		}
		history := e.view(stale)
		current := active(history)
		done := reply(http.StatusOK, environmentDocument{
			Service: e.service, Environment: e.name, ETag: etagOf(current.ID), Current: current, Deployments: len(history),
		})
		done.header.Set("ETag", etagOf(current.ID))
		return done
	})
}

// environment runs with mu held.
func (d *Deploys) environment(service, name string) (*environment, *answer) {
	if e, ok := d.environments[place(service, name)]; ok {
		return e, nil
	}
	a := refuse(http.StatusNotFound, "service_not_found", "there is no service with this name")
	for _, known := range d.environments {
		if known.service == service {
			a = refuse(http.StatusNotFound, "environment_not_found", "this service has no such environment")
		}
	}
	return nil, &a
}

func (d *Deploys) serveDeployment(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	c := call{op: OpRead, resource: d.resourceOf(id), refusal: onlyParameters(r)}
	d.serve(w, c, func(stale bool) answer {
		found, ok := d.find(id, stale)
		if !ok {
			return refuse(http.StatusNotFound, "deployment_not_found", "there is no deployment with this ID")
		}
		return reply(http.StatusOK, found)
	})
}

func (d *Deploys) resourceOf(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.find(id, false)
	if !ok {
		return ""
	}
	return place(found.Service, found.Environment)
}

// deploymentSearch is a well-formed search request.
type deploymentSearch struct {
	service, environment, status, user, after string
	limit                                     int
}

// filter is what a cursor is sealed to.
func (s deploymentSearch) filter() url.Values {
	return url.Values{"s": {s.service}, "e": {s.environment}, "t": {s.status}, "u": {s.user}}
}

func (s deploymentSearch) matches(d Deployment) bool {
	return (s.service == "" || s.service == d.Service) && (s.environment == "" || s.environment == d.Environment) &&
		(s.status == "" || s.status == d.Status)
}

func readDeploymentSearch(r *http.Request) (deploymentSearch, *answer) {
	refusal := onlyParameters(r, "service", "environment", "status", "user", "cursor", "limit")
	if refusal != nil {
		return deploymentSearch{}, refusal
	}
	q := r.URL.Query()
	s := deploymentSearch{service: q.Get("service"), environment: q.Get("environment"), status: q.Get("status"), user: q.Get("user")}
	switch s.status {
	case "", StatusActive, StatusSuperseded, StatusFailed, StatusRolledBack:
	default:
		return s, badParameter("status is active, superseded, failed or rolled_back")
	}
	if s.limit, refusal = readLimit(q); refusal != nil {
		return s, refusal
	}
	if text := q.Get("cursor"); text != "" {
		after, ok := openCursor(s.filter(), text)
		if !ok {
			return s, badParameter("cursor is not one that this search gave")
		}
		s.after = after
	}
	return s, nil
}

func (d *Deploys) serveFind(w http.ResponseWriter, r *http.Request) {
	s, refusal := readDeploymentSearch(r)
	c := call{op: OpFind, refusal: refusal}
	if s.service != "" && s.environment != "" {
		c.resource = place(s.service, s.environment)
	}
	d.serve(w, c, func(stale bool) answer { return reply(http.StatusOK, d.page(s, stale)) })
}

// page runs with mu held.
func (d *Deploys) page(s deploymentSearch, stale bool) deploymentPage {
	page := deploymentPage{Deployments: []Deployment{}}
	begun := s.after == ""
	for _, one := range d.all(stale) {
		if s.matches(one) && d.mayRead(s.user, place(one.Service, one.Environment)) {
			page.Total++
			switch {
			case !begun:
			case len(page.Deployments) == s.limit:
				page.NextCursor = cursorOf(s.filter(), page.Deployments[s.limit-1].ID)
			default:
				page.Deployments = append(page.Deployments, one)
			}
		}
		begun = begun || one.ID == s.after // its status, and so its match, may have changed since
	}
	return page
}

func (d *Deploys) serveLookup(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c := call{op: OpLookup, key: q.Get("key"), resource: resourceIn(q)}
	c.refusal = onlyParameters(r, "key", "service", "environment")
	if c.key == "" {
		c.refusal = badParameter("key is required")
	}
	c.resource = d.resourceFor(c)
	d.serve(w, c, func(stale bool) answer {
		found := rollbacks(d.changesOf(c.key), q, "")
		if stale && len(found) > 0 {
			found = found[:len(found)-1]
		}
		return reply(http.StatusOK, map[string][]Rollback{"rollbacks": found})
	})
}

func (d *Deploys) serveLog(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c := call{op: OpLog, key: q.Get("key"), resource: resourceIn(q), refusal: onlyParameters(r, "key", "service", "environment")}
	d.serve(w, c, func(bool) answer {
		return reply(http.StatusOK, map[string][]Rollback{"entries": rollbacks(d.history, q, c.key)})
	})
}

// resourceIn is the environment that a query names; empty unless it names the service too.
func resourceIn(q url.Values) string {
	if q.Get("service") == "" || q.Get("environment") == "" {
		return ""
	}
	return place(q.Get("service"), q.Get("environment"))
}

func (d *Deploys) servePermission(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	user, verb := q.Get("user"), q.Get("verb")
	c := call{op: OpPermission, resource: resourceIn(q), refusal: onlyParameters(r, "user", "service", "environment", "verb")}
	if user == "" || c.resource == "" || (verb != verbRead && verb != verbRollback) {
		c.refusal = badParameter("user, service, environment and verb (read or rollback) are required")
	}
	d.serve(w, c, func(bool) answer {
		if _, ok := d.environments[c.resource]; !ok {
			return reply(http.StatusOK, permissionAnswer{Reason: "unknown_environment"})
		}
		return reply(http.StatusOK, d.permits(user, verb, c.resource))
	})
}
