package target

import (
	"context"
	"net/http"
	"net/url"
)

// Deploy is someone else's deployment on a deployment platform; it returns the deployment that came of it.
func (c Control) Deploy(ctx context.Context, n NewDeployment) (made Deployment, err error) {
	return made, c.do(ctx, http.MethodPost, "/_sim/deployments", n, &made)
}

// SetDeploymentStatus makes a deployment that is not active unusable (failed) or usable again (superseded).
func (c Control) SetDeploymentStatus(ctx context.Context, id, status string) error {
	return c.do(ctx, http.MethodPost, "/_sim/deployments/"+url.PathEscape(id), statusChange{Status: status}, nil)
}

// ActiveDeployment reads what runs in an environment through the platform's own API; scripted faults apply.
func (c Control) ActiveDeployment(ctx context.Context, service, environment string) (Deployment, error) {
	var found environmentDocument
	path := "/v1/services/" + url.PathEscape(service) + "/environments/" + url.PathEscape(environment)
	err := c.do(ctx, http.MethodGet, path, nil, &found)
	return found.Current, err
}

// Rollbacks is a deployment platform's own log for a request key ("" for all), oldest first; scripted faults apply.
func (c Control) Rollbacks(ctx context.Context, key string) ([]Rollback, error) {
	var log struct {
		Entries []Rollback `json:"entries"`
	}
	err := c.do(ctx, http.MethodGet, "/v1/log?"+url.Values{"key": {key}}.Encode(), nil, &log)
	return log.Entries, err
}
