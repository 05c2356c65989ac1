package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/session"
	"github.com/cutonce/cutonce/mcpadapter"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
	"github.com/cutonce/cutonce/web"
)

const (
	mcpPath      = "/mcp"
	metadataPath = "/.well-known/oauth-protected-resource"
	// issuerPath is where the development issuer's public documents are, in development.
	issuerPath = "/dev/issuer"
)

// devDoor is what the development command adds: the issuer's public documents and the console's sign-in.
type devDoor struct {
	handler http.Handler
	paths   []string
	signIn  func(*auth.Verifier) web.DevSignIn
}

// doors is everything that the main listener serves.
type doors struct {
	http.Handler
	mcp    *mcpadapter.Handler
	people *web.Console
}

func (s *service) openDoors() (*doors, error) {
	agents, err := s.agentsDoor()
	if err != nil {
		return nil, err
	}
	programs, err := s.programsDoor()
	if err != nil {
		return nil, err
	}
	people, err := s.peoplesDoor()
	if err != nil {
		return nil, err
	}
	metadata, err := auth.Metadata(auth.MetadataConfig{
		Resources: resources(s.settings), Issuers: s.issuers(), Scopes: s.scopes(false), Name: "cutonce",
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(mcpPath, agents)
	mux.Handle(metadataPath, metadata)
	mux.Handle(metadataPath+"/", metadata)
	for _, prefix := range api.Prefixes() {
		mux.Handle(prefix, programs)
	}
	mux.Handle("/", people)
	if s.dev != nil {
		for _, path := range s.dev.paths {
			mux.Handle(path, s.dev.handler)
		}
	}
	return &doors{Handler: named(s.metrics.Requests(mux, routeOf, time.Now)), mcp: agents, people: people}, nil
}

func (s *service) agentsDoor() (*mcpadapter.Handler, error) {
	at, err := auth.MetadataURL(origin(s.settings) + mcpPath)
	if err != nil {
		return nil, err
	}
	return mcpadapter.New(mcpadapter.Deps{
		Actions: s.actions, Changes: s.previews, Commits: s.commits, Approvals: s.approvals, Verifier: s.verifier, Catalog: s.texts,
		Log: s.log, ResourceMetadataURL: at, Version: version, ApplyWait: s.settings.Clock.ApplyWait,
		Clocks: clocksOf(s.settings.Clock), RequestID: requestID,
		Limit: s.limiter.Call, AllowedOrigins: s.settings.MCPOrigins, Listing: mcpadapter.Listing(s.settings.MCPListing),
	})
}

func (s *service) programsDoor() (http.Handler, error) {
	at, err := auth.MetadataURL(origin(s.settings))
	if err != nil {
		return nil, err
	}
	return api.New(api.Deps{
		Previews: s.previews, Approvals: s.approvals, Changes: s.commits, Freezes: s.commits, Verifier: s.verifier, Catalog: s.texts, Actions: s.actions,
		Challenge: auth.Challenge{ResourceMetadataURL: at, ReadScopes: s.scopes(true)},
		PublicURL: origin(s.settings), Ready: s.ready, ApplyWait: s.settings.Clock.ApplyWait, Log: s.log, Now: time.Now, NewRequestID: newRequestID,
		Version: version, Clocks: clocksOf(s.settings.Clock), Limit: s.limiter.Call,
	})
}

func (s *service) peoplesDoor() (*web.Console, error) {
	public, err := url.Parse(origin(s.settings))
	if err != nil {
		return nil, err
	}
	name := "cutonce"
	if s.dev != nil {
		name += "-" + public.Port() // browsers keep one set of cookies for all ports of a host
	}
	sessions, err := session.New(session.Config{
		Store: store.Sessions{Store: s.store}, Secure: public.Scheme == "https", Name: name, Rand: rand.Reader,
		IdleFor: s.settings.SignIn.IdleFor, AbsoluteFor: s.settings.SignIn.AbsoluteFor,
	})
	if err != nil {
		return nil, err
	}
	deps := web.Deps{
		Approvals: s.approvals, Commits: s.commits, Freezes: s.commits, Sessions: sessions, Catalog: s.texts, Log: s.log, Version: version,
		PublicURL: origin(s.settings), RequestID: requestID, Feed: s.store, Zones: s.settings.ConsoleZones,
		Previews: s.previews, Exports: s.commits, Now: time.Now, Trails: s.store, Keys: s.sealer.Key.Trusted(),
		Key: func(tenant string, id preview.ID, item int) string {
			return commit.IdempotencyKey([]byte(s.settings.Secret), tenant, id, item)
		},
	}
	if s.dev != nil {
		deps.Dev = s.dev.signIn(s.verifier)
	}
	if deps.SignIn, err = s.signIn(); err != nil {
		return nil, err
	}
	return web.New(deps)
}

// ready is an error while this process should get no calls: the database does not answer, or another policy is in force than
// the one loaded here, so that every apply would be refused.
func (s *service) ready(ctx context.Context) error {
	if err := s.store.Ping(ctx); err != nil {
		return err
	}
	version, err := s.store.PolicyInForce(ctx)
	if err == nil && version != s.commits.PolicyVersion {
		err = fmt.Errorf("the policy %.12s… is in force and %.12s… is loaded: restart with the current files", version, s.commits.PolicyVersion)
	}
	return err
}

func (s *service) issuers() []string {
	var out []string
	for _, url := range []string{s.settings.Issuer.URL, s.settings.Issuer2.URL, s.settings.Issuer3.URL} {
		if url != "" {
			out = append(out, url)
		}
	}
	return out
}

// scopes lists the scopes that tools need: those for reading, or all.
func (s *service) scopes(onlyRead bool) []string {
	var all []string
	for _, f := range s.actions.Finds() {
		all = append(all, f.Scopes...)
	}
	for _, a := range s.actions.Actions() {
		all = append(all, a.ReadScopes...)
		if !onlyRead {
			all = append(all, a.Scopes...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// requestHeader carries a request's name, from the caller's proxy if it gives one, to every door and every log line.
const requestHeader = "X-Request-Id"

var usableID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// named gives every request a name before any door sees it, so that all of them, and the events that it causes, bear the same.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !usableID.MatchString(r.Header.Get(requestHeader)) {
			r.Header.Set(requestHeader, newRequestID())
		}
		next.ServeHTTP(w, r.WithContext(store.InRequest(r.Context(), requestID(r))))
	})
}

func requestID(r *http.Request) string { return r.Header.Get(requestHeader) }

func newRequestID() string {
	var id [12]byte
	_, _ = rand.Read(id[:]) // it never fails: it ends the process instead
	return hex.EncodeToString(id[:])
}

// routes are the templates under which requests are measured.
var routes = []string{
	mcpPath, metadataPath, metadataPath + "/{resource}",
	"/v1/actions", "/v1/finds/{tool}", "/v1/actions/{action}/previews", "/v1/previews", "/v1/previews/{id}", "/v1/previews/export", "/v1/previews/{id}/why",
	"/v1/previews/{id}/approval-request", "/v1/previews/{id}/decisions", "/v1/previews/{id}/apply", "/v1/previews/{id}/cancel",
	"/v1/previews/{id}/undo",
	"/v1/previews/{id}/probe", "/v1/previews/{id}/resolve", "/v1/previews/{id}/reveal", "/v1/approvals", "/v1/outcomes", "/v1/freezes", "/v1/removed-approvers", "/healthz", "/readyz", "/openapi.yaml",
	"/{$}", "/sign-in", "/sign-out", "/dev/sign-in", issuerPath + "/{document...}", "/outcomes", "/history", "/history/export.csv", "/history/export.ndjson", "/bulk", "/changes/{id}", "/changes/{id}/review",
	"/changes/{id}/document", "/changes/{id}/decision", "/changes/{id}/apply", "/live", "/changes/{id}/probe", "/changes/{id}/resolution", "/changes/{id}/again", "/changes/{id}/reveal", "/freeze", "/freeze/lift", "/assets/{name}",
}

var routeTable = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
}()

// routeOf is the template of a request's path. Anything else is one name: callers choose paths, and must not choose labels.
func routeOf(r *http.Request) string {
	_, pattern := routeTable.Handler(r)
	if pattern == "" || strings.HasPrefix(pattern, "CONNECT") {
		return "other"
	}
	return strings.TrimSuffix(pattern, "{$}")
}
