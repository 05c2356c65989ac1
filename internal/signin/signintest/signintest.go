// Package signintest runs a real OpenID provider (the example server of zitadel/oidc) for tests. Only tests import it.
package signintest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/text/language"
)

// Password is everybody's.
const Password = "correct horse battery staple"

// Person is somebody the provider knows.
type Person struct {
	Subject, Name string
	Groups, Roles []string
}

// Provider is a running OpenID provider.
type Provider struct {
	URL     string
	people  map[string]Person
	clients map[string]*storage.Client

	mu sync.Mutex
	// asked counts requests to the token endpoint.
	asked int
	down  bool
}

// Start runs a provider until the test ends. It tells groups and roles at its userinfo endpoint only, as many do.
func Start(t testing.TB, people ...Person) *Provider {
	t.Helper()
	p := &Provider{people: map[string]Person{}, clients: map[string]*storage.Client{}}
	for _, one := range people {
		p.people[one.Subject] = one
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		down := p.down
		if r.URL.Path == "/oauth/token" {
			p.asked++
		}
		p.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	handler = exampleop.SetupServer(p.URL, told{storage.NewStorageWithClients(users{p}, p.clients), p}, nil, false)
	return p
}

// Client registers a console.
func (p *Provider) Client(id, secret, redirectURL string) {
	p.clients[id] = storage.WebClient(id, secret, redirectURL)
}

// Down makes the provider answer nothing but 503, or well again.
func (p *Provider) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Asked is how often the token endpoint was asked.
func (p *Provider) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// SignIn does what a person's browser does at the provider, from the address that the console sent it to, and returns the
// address at the console that the provider sends it back to.
func (p *Provider) SignIn(t testing.TB, address, subject string) *url.URL {
	t.Helper()
	browser := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(address string) *http.Response {
		response, err := browser.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	login := p.at(t, get(address))
	page, err := io.ReadAll(get(login).Body)
	if err != nil {
		t.Fatal(err)
	}
	id := hiddenID.FindSubmatch(page)
	if id == nil {
		t.Fatalf("the provider's page has no form: %s", page)
	}
	response, err := browser.PostForm(p.URL+"/login/username", url.Values{"username": {subject}, "password": {Password}, "id": {string(id[1])}})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	back, err := url.Parse(p.at(t, get(p.at(t, response))))
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// at is where a redirect leads.
func (p *Provider) at(t testing.TB, r *http.Response) string {
	t.Helper()
	if r.StatusCode != http.StatusFound {
		body, _ := io.ReadAll(r.Body)
		t.Fatalf("%s: got %d %s, want a redirect", r.Request.URL, r.StatusCode, body)
	}
	to, err := r.Location()
	if err != nil {
		t.Fatal(err)
	}
	return to.String()
}

// users is the provider's directory.
type users struct{ *Provider }

func (u users) GetUserByID(id string) *storage.User {
	person, ok := u.people[id]
	if !ok {
		return nil
	}
	return &storage.User{
		ID: person.Subject, Username: person.Subject, Password: Password, FirstName: person.Name, LastName: "Test", PreferredLanguage: language.Japanese,
	}
}

func (u users) GetUserByUsername(name string) *storage.User { return u.GetUserByID(name) }

func (users) ExampleClientID() string { return "unused" }

// told adds groups and roles to what the userinfo endpoint tells.
type told struct {
	*storage.Storage
	*Provider
}

func (s told) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return fmt.Errorf("userinfo: %w", err)
	}
	info.AppendClaims("groups", s.people[subject].Groups)
	info.AppendClaims("roles", s.people[subject].Roles)
	return nil
}
