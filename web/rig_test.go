package web_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/session"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
	"github.com/cutonce/cutonce/web"
)

const (
	simulatorToken = "simulator-token"
	issuer         = "https://id.example"
)

// cast are the people who can sign in, by ID.
var cast = map[string]actor.Actor{
	"sato": human("acme", target.UserSato, "佐藤 美咲", "ja", []string{actor.RoleRequester}),
	// sato-reads is sato without the scope to write.
	"sato-reads": reading(human("acme", target.UserSato, "佐藤 美咲", "ja", []string{actor.RoleRequester})),
	"kim":        human("acme", target.UserKim, "김민준", "en", []string{actor.RoleApprover}, "ads-approvers"),
	"kim-now":    now(human("acme", target.UserKim, "김민준", "en", []string{actor.RoleApprover}, "ads-approvers")),
	"tanaka":     human("acme", target.UserTanaka, "田中 健", "ja", []string{actor.RoleApprover}, "ads-approvers"),
	"oper":       human("acme", "oper@agency.example", "Olive Park", "en", []string{actor.RoleOperator}),
	"admin":      human("acme", "admin@agency.example", "Adam Lee", "en", []string{actor.RoleAdmin}),
	"auditor":    human("acme", "auditor@agency.example", "Audrey Mori", "en", []string{actor.RoleAuditor}),
	"nobody":     human("acme", "nobody@agency.example", "Nobody", "en", nil),
	"rival":      human("rival", "kim@rival.example", "Rival", "en", []string{actor.RoleApprover, actor.RoleOperator}, "ads-approvers"),
	"bot":        bot,
}

var bot = actor.Actor{
	Tenant: "acme", Kind: actor.Agent, Issuer: issuer, Subject: "dev-agent", Client: "dev-agent", For: target.UserSato,
	Scopes: []string{"ads:read", "ads:budget"},
}

func reading(a actor.Actor) actor.Actor {
	a.Scopes = []string{"ads:read"}
	return a
}

// now is somebody who has just shown themselves to the provider.
func now(a actor.Actor) actor.Actor {
	a.AuthTime = time.Now()
	return a
}

func human(tenant, subject, name, locale string, roles []string, groups ...string) actor.Actor {
	return actor.Actor{
		Tenant: tenant, Kind: actor.Human, Issuer: issuer, Subject: subject, Name: name, Locale: locale, Roles: roles, Groups: groups,
		Scopes: []string{"ads:read", "ads:budget"},
	}
}

// dev is the development sign-in of the tests: the code of each person is "code-" and their ID.
type dev struct{ closed bool }

func (d dev) Allowed(*http.Request) bool { return !d.closed }

func (dev) People() []web.DevPerson {
	var people []web.DevPerson
	for _, id := range []string{"sato", "kim", "tanaka", "oper", "admin", "auditor"} {
		a := cast[id]
		people = append(people, web.DevPerson{
			Name: a.Name, Subject: a.Subject, Roles: a.Roles, Groups: a.Groups, Path: "/dev/sign-in?person=" + id + "&code=code-" + id,
		})
	}
	return people
}

func (dev) CheckSignIn(_ context.Context, person, code string) (actor.Actor, error) {
	a, ok := cast[person]
	if !ok || code != "code-"+person {
		return actor.Actor{}, errors.New("no such secret-sign-in link")
	}
	return a, nil
}

type observer struct{}

func (observer) Sent(string, connector.Class, time.Duration) {}
func (observer) Settled(string, string, commit.Status)       {}

var clocks = connector.Clocks{
	PreviewTTL: 10 * time.Minute, ApprovalFor: 24 * time.Hour, ApplyWindow: 30 * time.Minute, SendFor: 500 * time.Millisecond,
	LeaseFor: 1500 * time.Millisecond, SettleFor: 200 * time.Millisecond,
}

// rig is the console over the whole core, on a database and a target of its own.
type rig struct {
	t         testing.TB
	url       string
	ads       *target.Ads
	texts     *catalog.Catalog
	store     *store.Store
	previews  *preview.Service
	approvals *approvals.Service
	commits   *commit.Service
	// clocks and deps may be changed by options before the start.
	clocks connector.Clocks
	deps   web.Deps
	// noLookup makes a target that keeps no history.
	noLookup bool
	// resolvers is how many operators the action asks for.
	resolvers int
	// front stands before the platform's connector, if it is set.
	front func(*adbudget.Connector) connector.Connector
	// rules are a policy of the test's own, if there is one.
	rules string
	// console is what the browsers reach.
	console *web.Console
	// databaseURL is the rig's own database.
	databaseURL string
	// forge changes what the console reads of a change's record, if it is set.
	forge func(*audit.Trail)
}

func newRig(t testing.TB, options ...func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, clocks: clocks, deps: web.Deps{Dev: dev{}, Version: "test", RequestID: func(*http.Request) string { return "req-1" }}}
	for _, o := range options {
		o(r)
	}
	r.ads = target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: simulatorToken}, Seed: 1})
	platform := httptest.NewServer(r.ads)
	t.Cleanup(func() { _ = r.ads.Close(); platform.Close() })
	registry := r.connect(platform.URL)
	r.openCore(registry)
	r.serve(registry)
	return r
}

func (r *rig) connect(base string) *connector.Registry {
	r.t.Helper()
	ads, err := adbudget.New(adbudget.Config{
		BaseURL: base, Token: simulatorToken, System: "ads.example/agency", NoLookup: r.noLookup, ResolveBy: r.resolvers, SettleFor: r.clocks.SettleFor,
	})
	r.must(err)
	r.t.Cleanup(ads.Close)
	var front connector.Connector = ads
	if r.front != nil {
		front = r.front(ads)
	}
	registry, err := connector.NewRegistry(front)
	r.must(err)
	return registry
}

func (r *rig) openCore(registry *connector.Registry) {
	r.t.Helper()
	ctx := r.t.Context()
	var err error
	r.databaseURL = pgtest.URL(r.t, pgtest.Migrated(migrations.FS, store.Migrate))
	r.store, err = store.Open(ctx, store.Config{URL: r.databaseURL, MaxConns: 6})
	r.must(err)
	r.t.Cleanup(r.store.Close)
	var files fs.FS = policies.FS
	if r.rules != "" {
		files = fstest.MapFS{"rules.yaml": {Data: []byte(r.rules)}}
	}
	rules, err := policy.Load(files)
	r.must(err)
	r.must(r.store.ActivatePolicy(ctx, rules.Version(), "test"))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	r.previews, err = preview.NewService(preview.Deps{Store: r.store, Actions: registry, Policy: rules, Clocks: r.clocks, Log: quiet})
	r.must(err)
	r.approvals = approvals.NewService(approvals.Deps{Store: r.store, Actions: registry, Policy: rules, Clocks: r.clocks})
	r.commits = commit.NewService(commit.Deps{
		Store: r.store, Actions: registry, Freezes: r.store, Journal: r.store, Recheck: r.approvals, PolicyVersion: rules.Version(), Secret: []byte("a secret of thirty-two bytes....."),
		Clocks: r.clocks, SendMargin: 50 * time.Millisecond, ProbeBase: time.Hour, Log: quiet, Observe: observer{},
	})
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.commits.Drain(ctx); err != nil {
			r.t.Errorf("drain: %v", err)
		}
	})
}

func (r *rig) serve(registry *connector.Registry) {
	r.t.Helper()
	texts, err := catalog.New(registry.Texts()...)
	r.must(err)
	r.texts = texts
	d := r.deps
	d.Catalog, d.PublicURL = texts, "http://127.0.0.1"
	d.Key = func(tenant string, id preview.ID, item int) string {
		return fmt.Sprintf("key of %s %s %d", tenant, id, item)
	}
	if d.Approvals == nil {
		d.Approvals = r.approvals
	}
	if d.Freezes == nil && r.commits != nil {
		d.Freezes = r.commits
	}
	if d.Commits == nil {
		d.Commits = r.commits
	}
	if d.Previews == nil && r.previews != nil {
		d.Previews = r.previews
	}
	if d.Exports == nil && r.commits != nil {
		d.Exports, d.Now = r.commits, time.Now
	}
	if d.Trails == nil && r.store != nil {
		d.Trails, d.Keys = forger{r.store, r.forge}, sealKey(r.t).Trusted()
	}
	if d.Sessions == nil {
		d.Sessions, err = session.New(session.Config{Store: store.Sessions{Store: r.store}, Rand: rand.Reader})
		r.must(err)
	}
	if d.Log == nil {
		d.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	switch f, own := d.Feed.(*flaky); {
	case own:
		f.Feed = r.store
	case r.store != nil && d.Feed == nil:
		d.Feed = r.store
	}
	r.console, err = web.New(d)
	r.must(err)
	server := httptest.NewServer(r.console)
	r.t.Cleanup(server.Close)
	r.url = server.URL
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// prepare makes a change of a JPY campaign's budget.
func (r *rig) prepare(campaign, jpy, reason string, more ...string) preview.ID {
	r.t.Helper()
	body := fmt.Sprintf(`{"campaign_id":%q,"new_daily_budget_jpy":%s,"reason":%q`, campaign, jpy, reason)
	if len(more) > 0 {
		body += fmt.Sprintf(`,"expect_campaign_name":%q`, more[0])
	}
	p, err := r.previews.Prepare(r.t.Context(), bot, preview.Request{Action: adbudget.ActionName, Input: []byte(body + "}")})
	if err != nil {
		r.t.Fatalf("prepare: %v %+v", err, fault.From(err).Fields)
	}
	return p.Preview.ID
}

// pending makes a change that waits for one of ads-approvers.
func (r *rig) pending(campaign string) preview.ID {
	r.t.Helper()
	id := r.prepare(campaign, "16000", "Weekend sale")
	r.ask(id, "Please, before Friday")
	return id
}

func (r *rig) ask(id preview.ID, justification string) {
	r.t.Helper()
	p, err := r.approvals.Request(r.t.Context(), bot, id, justification)
	if err != nil || p.State != preview.Pending {
		r.t.Fatalf("request: got state %s, %v, want pending", p.State, err)
	}
}

func (r *rig) apply(id preview.ID, want commit.Status) commit.Change {
	r.t.Helper()
	c, err := r.commits.Apply(r.t.Context(), bot, adbudget.ActionName, id, 10*time.Second)
	if err != nil || c.Status != want {
		r.t.Fatalf("apply: got status %s, %v, want %s", c.Status, err, want)
	}
	return c
}

func (r *rig) status(id preview.ID) commit.Change {
	r.t.Helper()
	c, err := r.commits.Status(r.t.Context(), bot, id, 0, true)
	r.must(err)
	return c
}

// browser is one person's browser. It follows redirects, keeps cookies, and checks every page it is shown.
type browser struct {
	t      testing.TB
	base   string
	client *http.Client
	// headers are sent with every request.
	headers http.Header
}

// page is what a browser ended at.
type page struct {
	*goquery.Document
	t      testing.TB
	status int
	header http.Header
	url    *url.URL
	body   string
}

func (r *rig) browser() *browser {
	jar, err := cookiejar.New(nil)
	r.must(err)
	return &browser{t: r.t, base: r.url, client: &http.Client{Jar: jar}, headers: http.Header{}}
}

// as is the browser of somebody who has signed in, in English unless the person's locale says otherwise.
func (r *rig) as(person string) *browser {
	r.t.Helper()
	b := r.browser()
	if got := b.get("/dev/sign-in?person=" + person + "&code=code-" + person); got.status != http.StatusOK {
		r.t.Fatalf("signing in as %s: got status %d, want 200", person, got.status)
	}
	return b
}

// cookies are what the browser holds.
func (b *browser) cookies() []*http.Cookie {
	at, err := url.Parse(b.base)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.client.Jar.Cookies(at)
}

func (b *browser) get(path string) *page { b.t.Helper(); return b.do(http.MethodGet, path, nil) }

func (b *browser) post(path string, fields ...string) *page {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.do(http.MethodPost, path, form)
}

func (b *browser) do(method, path string, form url.Values) *page {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, values := range b.headers {
		req.Header[name] = values
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	return readPage(b.t, resp)
}

func readPage(t testing.TB, resp *http.Response) *page {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{Document: doc, t: t, status: resp.StatusCode, header: resp.Header, url: resp.Request.URL, body: string(raw)}
	if redirect := p.status/100 == 3; !redirect && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		p.checkMarkup()
	}
	return p
}

// submit fills a form as a person would: every field that the page holds is sent, the given ones changed.
func (b *browser) submit(p *page, form string, fields ...string) *page {
	b.t.Helper()
	f := p.Find(form)
	if f.Length() != 1 {
		b.t.Fatalf("%s: got %d forms %q, want 1", p.url, f.Length(), form)
	}
	values := url.Values{}
	f.Find("input[type=hidden], input:not([type]), textarea").Each(func(_ int, s *goquery.Selection) {
		name, _ := s.Attr("name")
		value, _ := s.Attr("value")
		if goquery.NodeName(s) == "textarea" {
			value = s.Text()
		}
		values.Set(name, value)
	})
	for i := 0; i < len(fields); i += 2 {
		if f.Find(fmt.Sprintf("[name=%q]", fields[i])).Length() == 0 {
			b.t.Fatalf("%s: the form has no field %s", p.url, fields[i])
		}
		values.Set(fields[i], fields[i+1])
	}
	return b.do(http.MethodPost, f.AttrOr("action", ""), values)
}

// text is a selection's text with runs of space made one.
func (p *page) text(selector string) string {
	return strings.Join(strings.Fields(p.Find(selector).Text()), " ")
}

func (p *page) want(status int, texts ...string) *page {
	p.t.Helper()
	if p.status != status {
		p.t.Errorf("%s: got status %d, want %d", p.url, p.status, status)
	}
	for _, text := range texts {
		if got := p.text("main"); !strings.Contains(got, text) {
			p.t.Errorf("%s: got %.700q, want it to say %q", p.url, got, text)
		}
	}
	return p
}

func (p *page) wantOne(selector string) *goquery.Selection {
	p.t.Helper()
	s := p.Find(selector)
	if s.Length() != 1 {
		p.t.Errorf("%s: got %d of %s, want 1", p.url, s.Length(), selector)
	}
	return s
}

func (p *page) wantNone(selector string) {
	p.t.Helper()
	if n := p.Find(selector).Length(); n != 0 {
		p.t.Errorf("%s: got %d of %s, want none", p.url, n, selector)
	}
}
