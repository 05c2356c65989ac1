package target

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// DeploysConfig is what a deployment platform is made from.
type DeploysConfig struct {
	PlatformConfig
	// Seed decides commits, authors, and the whole history of [ServiceSearch] and [ServiceSearchIndexer]. The other
	// services have the same IDs, versions, times, migrations and statuses under every seed.
	Seed int64
}

// Deployment is one deployment as the API shows it.
type Deployment struct {
	ID                string    `json:"id"`
	Service           string    `json:"service"`
	Environment       string    `json:"environment"`
	Version           string    `json:"version"`
	Commit            string    `json:"commit"`
	Author            string    `json:"author"`
	Time              time.Time `json:"time"`
	ContainsMigration bool      `json:"contains_migration"`
	Status            string    `json:"status"` // active, superseded, failed or rolled_back
	Source            string    `json:"source"` // pipeline, rollback or console
	// Activates is, of a rollback, the deployment whose build it runs again.
	Activates string `json:"activates,omitempty"`
}

// The statuses of a deployment. Each environment has exactly one that is active.
const (
	StatusActive     = "active"
	StatusSuperseded = "superseded"
	StatusFailed     = "failed"
	StatusRolledBack = "rolled_back"
)

// Where a deployment came from.
const (
	FromPipeline = "pipeline"
	FromRollback = "rollback"
	FromConsole  = "console"
)

// Deploys is the simulated deployment platform. The package's page documents its API.
type Deploys struct {
	*Platform
	seed    int64
	handler http.Handler

	// The rest is guarded by Platform.mu.
	environments map[string]*environment // by "service/environment"
	serial       int                     // of deployments made since the seed
}

// environment is the history of one service in one environment, oldest first: as it is, and as it was before its last
// change. Neither is ever changed in place.
type environment struct {
	service, name string
	now, before   []Deployment
}

// NewDeploys makes a platform with its seeded data.
func NewDeploys(cfg DeploysConfig) *Deploys {
	if cfg.Clock == nil {
		cfg.Clock = logicalClock(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	}
	d := &Deploys{Platform: newPlatform(cfg.PlatformConfig), seed: cfg.Seed}
	d.reseed = d.plant
	d.plant()
	d.handler = d.routes()
	return d
}

func (d *Deploys) routes() http.Handler {
	guarded := http.NewServeMux()
	guarded.HandleFunc("GET /v1/services", d.serveServices)
	guarded.HandleFunc("GET /v1/services/{service}/environments/{environment}", d.serveEnvironment)
	guarded.HandleFunc("POST /v1/services/{service}/environments/{environment}/rollback", d.serveRollback)
	guarded.HandleFunc("GET /v1/deployments", d.serveFind)
	guarded.HandleFunc("GET /v1/deployments/{id}", d.serveDeployment)
	guarded.HandleFunc("GET /v1/rollbacks", d.serveLookup)
	guarded.HandleFunc("GET /v1/permissions", d.servePermission)
	guarded.HandleFunc("GET /v1/log", d.serveLog)
	guarded.HandleFunc("POST /_sim/deployments", d.controlDeploy)
	guarded.HandleFunc("POST /_sim/deployments/{id}", d.controlStatus)
	return d.front(guarded)
}

// ServeHTTP serves the API and, under /_sim/, the control API.
func (d *Deploys) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// plant puts the seeded histories and permissions in place. The caller holds mu, or is alone.
func (d *Deploys) plant() {
	d.environments, d.serial = map[string]*environment{}, 0
	for _, e := range seededEnvironments(d.seed) {
		d.environments[place(e.service, e.name)] = e
	}
	for _, p := range seededDeployPermissions() {
		d.setPermission(p)
	}
}

// place is how an environment is named in faults, counters, permissions and the log.
func place(service, environment string) string { return service + "/" + environment }

// etag is an environment's version: the deployment that is active.
func etagOf(id string) string { return `"` + id + `"` }

// view is the history as it is, or before its last change.
func (e *environment) view(stale bool) []Deployment {
	if stale {
		return e.before
	}
	return e.now
}

// active is the one deployment that runs. Every history has one.
func active(history []Deployment) Deployment {
	i := slices.IndexFunc(history, func(d Deployment) bool { return d.Status == StatusActive })
	return history[i]
}

// build is the deployment whose build runs: a rollback runs that of an earlier one.
func (d Deployment) build() string {
	if d.Activates != "" {
		return d.Activates
	}
	return d.ID
}

// add puts one more deployment at the end of a history and logs it. If it is active, the one that was becomes replaced.
// The caller holds mu and has checked everything.
func (d *Deploys) add(e *environment, next Deployment, replaced string, entry Entry) (Deployment, Entry) {
	was := active(e.now)
	next = d.numbered(e, next)
	entry.Resource, entry.ETag = place(e.service, e.name), etagOf(next.ID)
	entry.Before, entry.After = was.ID, next.build()
	entry = d.note(entry)
	history := slices.Clone(e.now)
	for i := range history {
		if history[i].Status == StatusActive {
			history[i].Status = replaced
		}
	}
	e.before, e.now = e.now, append(history, next)
	return next, entry
}

// numbered gives a new deployment its ID and its time, which is never before that of the one it follows, whatever the clock
// says. The caller holds mu.
func (d *Deploys) numbered(e *environment, one Deployment) Deployment {
	d.serial++
	one.ID = fmt.Sprintf("dep-%06d", firstSerial+d.serial)
	one.Service, one.Environment, one.Time = e.service, e.name, d.clock().UTC()
	if len(e.now) > 0 {
		if last := e.now[len(e.now)-1].Time.Add(time.Second); one.Time.Before(last) {
			one.Time = last
		}
	}
	return one
}

// find is a deployment with the environment that it belongs to. The caller holds mu.
func (d *Deploys) find(id string, stale bool) (Deployment, bool) {
	for _, e := range d.environments {
		history := e.view(stale)
		if i := slices.IndexFunc(history, func(x Deployment) bool { return x.ID == id }); i >= 0 {
			return history[i], true
		}
	}
	return Deployment{}, false
}

// Deployment is one deployment as it is now.
func (d *Deploys) Deployment(id string) (Deployment, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(id, false)
}

// Active is the deployment that runs in an environment.
func (d *Deploys) Active(service, environment string) (Deployment, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.environments[place(service, environment)]
	if !ok {
		return Deployment{}, false
	}
	return active(e.now), true
}

// Deployments are all deployments as they are now, the newest first.
func (d *Deploys) Deployments() []Deployment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all(false)
}

// all runs with mu held.
func (d *Deploys) all(stale bool) []Deployment {
	var all []Deployment
	for _, e := range d.environments {
		all = append(all, e.view(stale)...)
	}
	slices.SortFunc(all, func(a, b Deployment) int {
		if order := b.Time.Compare(a.Time); order != 0 {
			return order
		}
		return strings.Compare(b.ID, a.ID)
	})
	return all
}
