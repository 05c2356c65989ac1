package target

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// rollbackReceipt is the reply to a rollback that happened.
type rollbackReceipt struct {
	Deployment
	ChangeID         string `json:"change_id"`
	FromDeploymentID string `json:"from_deployment_id"`
}

// rollbackRequest is a well-formed rollback.
type rollbackRequest struct {
	service, environment, to, ifMatch string
	who                               Entry
}

func (d *Deploys) serveRollback(w http.ResponseWriter, r *http.Request) {
	service, environment := r.PathValue("service"), r.PathValue("environment")
	c := call{op: OpChange, resource: place(service, environment), key: r.Header.Get("Idempotency-Key")}
	members, refusal := c.readMembers(w, r, "to_deployment_id")
	c.refusal = refusal
	asked := rollbackRequest{
		service: service, environment: environment, to: members["to_deployment_id"],
		ifMatch: r.Header.Get("If-Match"), who: whoOf(r),
	}
	d.serve(w, c, func(bool) answer { return d.rollBack(asked) })
}

// rollBack is the effect. It runs with mu held, and refuses before it changes anything.
func (d *Deploys) rollBack(asked rollbackRequest) answer {
	e, refusal := d.environment(asked.service, asked.environment)
	if refusal != nil {
		return *refusal
	}
	to, refusal := e.allows(asked)
	if refusal != nil {
		return *refusal
	}
	author := asked.who.OnBehalfOf
	if author == "" {
		author = "api"
	}
	next := Deployment{
		Version: to.Version, Commit: to.Commit, Author: author, Status: StatusActive, Source: FromRollback, Activates: to.build(),
	}
	made, entry := d.add(e, next, StatusRolledBack, asked.who)
	done := reply(http.StatusCreated, rollbackReceipt{Deployment: made, ChangeID: entry.ChangeID, FromDeploymentID: entry.Before})
	done.header.Set("ETag", etagOf(made.ID))
	return done
}

// allows is the deployment to go to, or why not. The precondition comes first: what else is wrong may only be so because
// the environment has moved.
func (e *environment) allows(asked rollbackRequest) (Deployment, *answer) {
	current := active(e.now)
	var a answer
	if asked.ifMatch != "" && asked.ifMatch != "*" && asked.ifMatch != etagOf(current.ID) {
		a = refuse(http.StatusPreconditionFailed, "etag_mismatch", "another deployment is active since this was read")
		a.header.Set("ETag", etagOf(current.ID))
		return Deployment{}, &a
	}
	i := slices.IndexFunc(e.now, func(d Deployment) bool { return d.ID == asked.to })
	switch {
	case i < 0:
		a = refuse(http.StatusUnprocessableEntity, "unknown_deployment", "this environment never had such a deployment")
	case e.now[i].Status == StatusFailed:
		a = refuse(http.StatusUnprocessableEntity, "deployment_failed", "a deployment that failed cannot be activated")
	case e.now[i].build() == current.build():
		a = refuse(http.StatusUnprocessableEntity, "already_current", "this deployment's build is active already")
	default:
		return e.now[i], nil
	}
	return Deployment{}, &a
}

// rollbacks shows entries of the log, those of one key or environment if they are named.
func rollbacks(entries []Entry, q url.Values, key string) []Rollback {
	shown := []Rollback{}
	for _, e := range entries {
		service, environment, _ := strings.Cut(e.Resource, "/")
		if (q.Get("service") != "" && q.Get("service") != service) || (q.Get("environment") != "" && q.Get("environment") != environment) ||
			(key != "" && key != e.Key) {
			continue
		}
		shown = append(shown, Rollback{
			ChangeID: e.ChangeID, Time: e.At, Service: service, Environment: environment,
			FromDeploymentID: e.Before, ToDeploymentID: e.After, DeploymentID: strings.Trim(e.ETag, `"`),
			Key: e.Key, OnBehalfOf: e.OnBehalfOf, ApprovedBy: e.ApprovedBy, Agent: e.Agent, Source: e.Source,
		})
	}
	return shown
}
