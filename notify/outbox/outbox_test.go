package outbox_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/notify/outbox"
	"github.com/cutonce/cutonce/notify/post"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

const (
	simulatorToken = "simulator-token"
	// soon bounds what a test waits for.
	soon = 60 * time.Second
)

var hookSecret = []byte("0123456789abcdef0123456789abcdef")

// hook is a receiver of webhooks: a real HTTP server that checks every signature and keeps what it took.
type hook struct {
	t   *testing.T
	url string

	mu    sync.Mutex
	took  []message
	tried int
	// first is the ID of the first try, whatever became of it.
	first string
	// answer is the status that it gives; hang makes it say nothing until the test ends.
	answer int
	hang   chan struct{}
	came   chan struct{}
}

type message struct {
	id    string
	kind  string
	event string
	// preview is the change.
	preview string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{t: t, answer: http.StatusNoContent, came: make(chan struct{}, 1000)}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(func() { h.release() })
	h.url = s.URL
	return h
}

func (h *hook) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hang != nil {
		close(h.hang)
		h.hang = nil
	}
}

func (h *hook) set(answer int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, hookSecret)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("webhook-signature") != want {
		h.t.Errorf("a message came whose signature does not fit: %v, %v", r.Header, err)
	}
	h.mu.Lock()
	h.tried++
	h.first = cmp.Or(h.first, r.Header.Get("webhook-id"))
	hang, answer := h.hang, h.answer
	if hang == nil && answer < 300 {
		var m struct {
			Type string `json:"type"`
			Data struct {
				Event     string `json:"event"`
				PreviewID string `json:"preview_id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &m); err != nil {
			h.t.Errorf("a message came that is no JSON: %v", err)
		}
		h.took = append(h.took, message{r.Header.Get("webhook-id"), strings.TrimPrefix(m.Type, "change."), m.Data.Event, m.Data.PreviewID})
	}
	h.mu.Unlock()
	h.came <- struct{}{}
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler) // it never answers what came before
	}
	w.WriteHeader(answer)
}

func (h *hook) messages() []message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.took)
}

func (h *hook) firstID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first
}

func (h *hook) tries() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tried
}

func (h *hook) kinds() (kinds []string) {
	for _, m := range h.messages() {
		kinds = append(kinds, m.kind)
	}
	return kinds
}

// eventually polls with a deadline.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come about: %s", what)
		}
	}
}

// counted counts deliveries.
type counted struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counted) Delivery(receiver, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[receiver+" "+outcome]++
}

func (c *counted) of(receiver, outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[receiver+" "+outcome]
}

// rig is the core on a database and a platform of its own, with receivers.
type rig struct {
	t         *testing.T
	url       string
	ads       *target.Ads
	registry  *connector.Registry
	store     *store.Store
	previews  *preview.Service
	approvals *approvals.Service
	commits   *commit.Service
	pool      *pgxpool.Pool
}

var clocks = connector.Clocks{
	PreviewTTL: 10 * time.Minute, ApprovalFor: 24 * time.Hour, ApplyWindow: 30 * time.Minute, SendFor: 2 * time.Second,
	LeaseFor: 5 * time.Second, SettleFor: 200 * time.Millisecond,
}

type observer struct{}

func (observer) Sent(string, connector.Class, time.Duration) {}
func (observer) Settled(string, string, commit.Status)       {}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, url: pgtest.URL(t, pgtest.Migrated(migrations.FS, store.Migrate))}
	r.ads = target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: simulatorToken}, Seed: 1})
	platform := httptest.NewServer(r.ads)
	t.Cleanup(func() { _ = r.ads.Close(); platform.Close() })
	ads, err := adbudget.New(adbudget.Config{BaseURL: platform.URL, Token: simulatorToken, System: "ads.example/agency", SettleFor: clocks.SettleFor})
	r.must(err)
	t.Cleanup(ads.Close)
	r.registry, err = connector.NewRegistry(ads)
	r.must(err)
	r.store, err = store.Open(t.Context(), store.Config{URL: r.url, MaxConns: 4})
	r.must(err)
	t.Cleanup(r.store.Close)
	r.pool, err = pgxpool.New(t.Context(), r.url)
	r.must(err)
	t.Cleanup(r.pool.Close)
	rules, err := policy.Load(policies.FS)
	r.must(err)
	r.must(r.store.ActivatePolicy(t.Context(), rules.Version(), "test"))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	r.previews, err = preview.NewService(preview.Deps{Store: r.store, Actions: r.registry, Policy: rules, Clocks: clocks, Log: quiet})
	r.must(err)
	r.approvals = approvals.NewService(approvals.Deps{Store: r.store, Actions: r.registry, Policy: rules, Clocks: clocks})
	r.commits = commit.NewService(commit.Deps{
		Store: r.store, Actions: r.registry, Freezes: r.store, Recheck: r.approvals, PolicyVersion: rules.Version(), Secret: []byte("a secret of thirty-two bytes....."),
		Clocks: clocks, SendMargin: 50 * time.Millisecond, ProbeBase: 10 * time.Millisecond, Log: quiet, Observe: observer{},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.must(r.commits.Drain(ctx))
	})
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func webhookTo(name, url string, change ...func(*notify.Receiver)) notify.Receiver {
	r := notify.Receiver{
		Name: name, Tenant: "acme", Groups: []string{"ads-approvers"}, Kinds: []notify.Kind{notify.ApprovalWanted, notify.Expiring, notify.Decided},
		Webhook: &notify.Webhook{URL: url, Secrets: [][]byte{hookSecret}},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func everything(r *notify.Receiver) { r.Groups, r.Everything, r.Kinds = nil, true, notify.Kinds() }

func operators(r *notify.Receiver) {
	r.Groups, r.Operators, r.Kinds = nil, true, []notify.Kind{notify.OutcomeUnknown, notify.Settled}
}

// replica is one process's outbox.
type replica struct {
	*outbox.Outbox
	feed    *store.Outbox
	counts  *counted
	stop    func()
	stopped chan error
}

// newReplica makes an outbox that looks often and waits little.
func newReplica(t testing.TB, url string, texts *catalog.Catalog, try time.Duration, receivers ...notify.Receiver) *replica {
	t.Helper()
	feed, err := store.OpenOutbox(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(feed.Close)
	p := &replica{feed: feed, counts: &counted{}}
	deps := post.Deps{PublicURL: "https://cutonce.example", Version: "test", Now: time.Now, For: try}
	service := notify.NewService(notify.Deps{
		Changes: feed, Texts: texts, Receivers: receivers, Senders: post.Senders(notify.Config{Receivers: receivers}, deps),
		PublicURL: "https://cutonce.example", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	p.Outbox, err = outbox.New(outbox.Config{
		Feed: feed, Pool: feed.Pool(), Notify: service, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Observe: p.counts,
		Every: 50 * time.Millisecond, ScanEvery: 100 * time.Millisecond, TryFor: 2 * try, RescueAfter: 3 * try,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *rig) replica(receivers ...notify.Receiver) *replica {
	r.t.Helper()
	texts, err := catalog.New(r.registry.Texts()...)
	r.must(err)
	return newReplica(r.t, r.url, texts, time.Second, receivers...)
}

// run starts it; it ends with the test, or with stop.
func (p *replica) run(t testing.TB) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.stopped = make(chan error, 1)
	go func() { p.stopped <- p.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-p.stopped:
			if err != nil {
				t.Errorf("the outbox ended with %v", err)
			}
		case <-time.After(soon):
			t.Error("the outbox did not end")
		}
	})
	t.Cleanup(p.stop)
	return p
}

// begun makes sure that what happens from now on is told, before any replica runs.
func (r *rig) begun(p *replica) {
	r.t.Helper()
	r.must(p.feed.Begin(r.t.Context()))
}

var bot = actor.Actor{
	Tenant: "acme", Kind: actor.Agent, Issuer: "https://id.example", Subject: "dev-agent", Client: "dev-agent", For: target.UserSato,
	Scopes: []string{"ads:read", "ads:budget"},
}

var kim = actor.Actor{
	Tenant: "acme", Kind: actor.Human, Issuer: "https://id.example", Subject: target.UserKim, Groups: []string{"ads-approvers"}, Roles: []string{actor.RoleApprover},
}

// pending makes a change that waits for one of ads-approvers.
func (r *rig) pending(campaign string) preview.Preview {
	r.t.Helper()
	prepared, err := r.previews.Prepare(r.t.Context(), bot, preview.Request{
		Action: adbudget.ActionName, Input: fmt.Appendf(nil, `{"campaign_id":%q,"new_daily_budget_jpy":16000,"reason":"sale"}`, campaign),
	})
	r.must(err)
	p, err := r.approvals.Request(r.t.Context(), bot, prepared.Preview.ID, "please")
	r.must(err)
	if p.State != preview.Pending {
		r.t.Fatalf("got state %s, want pending", p.State)
	}
	return p
}

func (r *rig) decide(p preview.Preview, approve bool) {
	r.t.Helper()
	_, err := r.approvals.Decide(r.t.Context(), kim, p.ID, approvals.Decision{Approve: approve, Reason: "as said", Digest: p.Digest})
	r.must(err)
}

func (r *rig) apply(p preview.Preview) commit.Change {
	r.t.Helper()
	c, err := r.commits.Apply(r.t.Context(), bot, adbudget.ActionName, p.ID, 20*time.Second)
	r.must(err)
	return c
}

func TestAChangesLifeIsToldAsItGoes(t *testing.T) {
	t.Parallel()
	r, group, keeper := newRig(t), newHook(t), newHook(t)
	one := r.replica(webhookTo("leads", group.url), webhookTo("keeper", keeper.url, everything))
	r.begun(one)
	one.run(t)
	p := r.pending(target.PlainJPY(0))
	both := func(kind string) func() bool {
		return func() bool { return slices.Contains(group.kinds(), kind) && slices.Contains(keeper.kinds(), kind) }
	}
	eventually(t, "the group is asked", both("approval_wanted"))
	r.decide(p, true)
	eventually(t, "the group is told of the decision", both("decided"))
	if c := r.apply(p); c.Status != commit.StatusApplied {
		t.Fatalf("got status %s, want applied", c.Status)
	}
	eventually(t, "the outcome is told", func() bool { return slices.Contains(keeper.kinds(), "settled") })
	want := []string{"approval_wanted", "decided", "settled"}
	if got := keeper.kinds(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := group.kinds(); !slices.Equal(got, want[:2]) {
		t.Errorf("got %v told to the group, want %v", got, want[:2])
	}
	for _, m := range keeper.messages() {
		if m.preview != p.ID.String() {
			t.Errorf("got a message about %s, want %s", m.preview, p.ID)
		}
	}
}

// TestTwoReplicasTellOnce: both relay and deliver, and each message comes once to each receiver.
func TestTwoReplicasTellOnce(t *testing.T) {
	t.Parallel()
	r, group, keeper := newRig(t), newHook(t), newHook(t)
	receivers := []notify.Receiver{webhookTo("leads", group.url), webhookTo("keeper", keeper.url, everything)}
	one, two := r.replica(receivers...), r.replica(receivers...)
	r.begun(one)
	one.run(t)
	two.run(t)
	const changes = 6
	for n := range changes {
		p := r.pending(target.PlainJPY(n))
		if n%2 == 0 {
			eventually(t, "the group is asked", func() bool { return len(group.messages()) > n })
		}
		r.decide(p, n%3 != 0)
	}
	eventually(t, "all decisions are told", func() bool {
		return count(group.kinds(), "decided") == changes && count(keeper.kinds(), "decided") == changes
	})
	one.stop()
	two.stop()
	for _, h := range []*hook{group, keeper} {
		seen := map[string]bool{}
		for _, m := range h.messages() {
			if seen[m.id] {
				t.Errorf("%+v came twice", m)
			}
			seen[m.id] = true
		}
	}
	if waiting := r.number(`select count(*) from river_job where state <> 'completed'`); waiting != 0 {
		t.Errorf("got %d jobs that are not done, want none", waiting)
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func (r *rig) number(sql string, args ...any) (n int) {
	r.t.Helper()
	r.must(r.pool.QueryRow(r.t.Context(), sql, args...).Scan(&n))
	return n
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), sql, args...)
	r.must(err)
}

// TestWhatWasDecidedInTheMeantimeIsNotAskedFor: the message was in the queue while the decision came.
func TestWhatWasDecidedInTheMeantimeIsNotAskedFor(t *testing.T) {
	t.Parallel()
	r, group := newRig(t), newHook(t)
	one := r.replica(webhookTo("leads", group.url))
	r.begun(one)
	p := r.pending(target.PlainJPY(0))
	r.decide(p, false)
	one.run(t)
	eventually(t, "the decision is told", func() bool { return slices.Contains(group.kinds(), "decided") })
	eventually(t, "the question is dropped", func() bool { return one.counts.of("leads", "dropped") == 1 })
	if got := group.kinds(); !slices.Equal(got, []string{"decided"}) {
		t.Errorf("got %v, want the decision alone", got)
	}
}

// TestADeadReceiverHoldsUpNobody: one receiver takes connections and never answers. Changes go through meanwhile, and so do the messages
// of everybody else; what it did not take is tried again, and arrives when it is well.
func TestADeadReceiverHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r, dead, well := newRig(t), newHook(t), newHook(t)
	dead.hang = make(chan struct{})
	one := r.replica(webhookTo("dead", dead.url), webhookTo("well", well.url))
	r.begun(one)
	one.run(t)
	const changes = 6
	for n := range changes {
		p := r.pending(target.PlainJPY(n))
		eventually(t, "the others are asked", func() bool { return count(well.kinds(), "approval_wanted") == n+1 })
		r.decide(p, true)
		if c := r.apply(p); c.Status != commit.StatusApplied {
			t.Fatalf("got status %s, want applied", c.Status)
		}
	}
	eventually(t, "the dead one has been tried", func() bool { return dead.tries() > 0 })
	eventually(t, "the others are told", func() bool { return count(well.kinds(), "decided") == changes })
	if got := dead.messages(); len(got) != 0 {
		t.Fatalf("got %v taken by a receiver that says nothing", got)
	}
	eventually(t, "its tries hold no connection", func() bool { return one.feed.Pool().Stat().AcquiredConns() == 0 && r.store.Stat().AcquiredConns() == 0 })
	dead.release()
	desk, err := outbox.NewDesk(r.pool)
	r.must(err)
	eventually(t, "the dead one gets what is still so", func() bool {
		failed, err := desk.Failed(t.Context(), 100)
		r.must(err)
		for _, f := range failed { // an operator does not wait for the next try, which is minutes away by now
			r.must(desk.Retry(t.Context(), f.Job))
		}
		return count(dead.kinds(), "decided") == changes
	})
	if got := count(dead.kinds(), "approval_wanted"); got != 0 {
		t.Errorf("got %d questions about what was decided long ago, want none", got)
	}
}

// TestEveryTryHasTheSameID, and a receiver that is gone for good is tried no more.
func TestEveryTryHasTheSameID(t *testing.T) {
	t.Parallel()
	r, shaky, gone := newRig(t), newHook(t), newHook(t)
	shaky.set(http.StatusInternalServerError)
	gone.set(http.StatusGone)
	ids := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("webhook-id")
		shaky.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	one := r.replica(webhookTo("shaky", proxy.URL), webhookTo("gone", gone.url))
	r.begun(one)
	one.run(t)
	p := r.pending(target.PlainJPY(0))
	first := <-ids
	eventually(t, "the failure is counted", func() bool { return one.counts.of("shaky", "failed") >= 1 })
	shaky.set(http.StatusOK)
	if second := <-ids; second != first {
		t.Errorf("got the ID %s at the second try, want %s", second, first)
	}
	eventually(t, "it is delivered", func() bool { return one.counts.of("shaky", "delivered") == 1 })
	eventually(t, "the other one is given up", func() bool { return one.counts.of("gone", "dead") == 1 })
	if got := gone.tries(); got != 1 {
		t.Errorf("got %d tries at a receiver that is gone, want 1", got)
	}
	desk, err := outbox.NewDesk(r.pool)
	r.must(err)
	failed, err := desk.Failed(t.Context(), 10)
	r.must(err)
	if len(failed) != 1 || !failed[0].GivenUp || failed[0].Item.Receiver != "gone" || failed[0].Item.Preview != p.ID.String() || !strings.Contains(failed[0].LastSaid, "410") {
		t.Fatalf("got %+v, want the one that was given up, with what was said", failed)
	}
	if strings.Contains(failed[0].LastSaid, gone.url) {
		t.Errorf("the address is in %q", failed[0].LastSaid)
	}
	gone.set(http.StatusOK)
	r.must(desk.Retry(t.Context(), failed[0].Job))
	eventually(t, "it is tried again by hand", func() bool { return len(gone.messages()) == 1 })
	if err := desk.Retry(t.Context(), 1<<40); !errors.Is(err, outbox.ErrNone) {
		t.Errorf("got %v, want no such delivery", err)
	}
}

func TestWhatIsAboutToExpireIsToldOnce(t *testing.T) {
	t.Parallel()
	r, group := newRig(t), newHook(t)
	one := r.replica(webhookTo("leads", group.url))
	r.begun(one)
	one.run(t)
	p := r.pending(target.PlainJPY(0))
	eventually(t, "the group is asked", func() bool { return slices.Contains(group.kinds(), "approval_wanted") })
	r.exec(`alter table previews disable trigger user`)
	r.exec(`update previews set deadline = clock_timestamp() + interval '10 minutes', requested_at = clock_timestamp() - interval '1 hour' where id = $1`, p.ID.UUID())
	r.exec(`alter table previews enable trigger user`)
	eventually(t, "it is told", func() bool { return slices.Contains(group.kinds(), "expiring") })
	two := r.replica(webhookTo("leads", group.url))
	two.run(t) // scans at once, and finds that it was told
	r.decide(p, true)
	eventually(t, "the decision is told", func() bool { return slices.Contains(group.kinds(), "decided") })
	if got := group.kinds(); !slices.Equal(got, []string{"approval_wanted", "expiring", "decided"}) {
		t.Errorf("got %v, want each once", got)
	}
}

// TestOperatorsAreToldOnceNoMachineCanTell, and that it is settled.
func TestOperatorsAreToldOnceNoMachineCanTell(t *testing.T) {
	t.Parallel()
	r, ops := newRig(t), newHook(t)
	one := r.replica(webhookTo("ops", ops.url, operators))
	r.begun(one)
	one.run(t)
	p := r.pending(target.PlainJPY(0))
	r.decide(p, true)
	r.must(r.ads.AddFault(target.Once(target.OpChange, target.PlainJPY(0), target.Step{Action: target.DropAfter})))
	if c, _ := r.commits.Apply(t.Context(), bot, adbudget.ActionName, p.ID, 10*time.Second); c.Status != commit.StatusUnknown {
		t.Fatalf("got status %s, want unknown", c.Status)
	}
	r.exec(`update executions set needs_operator = true where preview_id = $1`, p.ID.UUID())
	eventually(t, "operators are told", func() bool { return slices.Contains(ops.kinds(), "outcome_unknown") })
	eventually(t, "the service finds out", func() bool {
		r.must(r.commits.Sweep(t.Context()))
		return slices.Contains(ops.kinds(), "settled")
	})
	if got := ops.kinds(); !slices.Equal(got, []string{"outcome_unknown", "settled"}) {
		t.Errorf("got %v, want each once", got)
	}
}

func TestAnotherTenantsReceiverIsToldNothing(t *testing.T) {
	t.Parallel()
	r, own, rival := newRig(t), newHook(t), newHook(t)
	one := r.replica(webhookTo("own", own.url), webhookTo("rival", rival.url, everything, func(r *notify.Receiver) { r.Tenant = "rival" }))
	r.begun(one)
	one.run(t)
	r.decide(r.pending(target.PlainJPY(0)), true)
	eventually(t, "the tenant's own is told", func() bool { return slices.Contains(own.kinds(), "decided") })
	one.stop()
	if got := rival.tries(); got != 0 {
		t.Errorf("got %d messages to another tenant, want none", got)
	}
}

// TestAStopCutsOffATryThatHangs, soon, and the message is told later: the try does not count.
func TestAStopCutsOffATryThatHangs(t *testing.T) {
	t.Parallel()
	r, group := newRig(t), newHook(t)
	group.hang = make(chan struct{})
	texts, err := childTexts()
	r.must(err)
	one := newReplica(t, r.url, texts, time.Hour, webhookTo("leads", group.url))
	r.begun(one)
	one.run(t)
	r.pending(target.PlainJPY(0))
	<-group.came
	one.stop() // fails the test if it does not end
	if n := r.number(`select count(*) from river_job where state = 'available' and attempt = 0`); n != 1 {
		t.Errorf("got %d messages that wait as if they had not been tried, want 1", n)
	}
	group.release()
	r.replica(webhookTo("leads", group.url)).run(t)
	eventually(t, "it is told later", func() bool { return len(group.messages()) == 1 })
	if m := group.messages()[0]; m.id != group.firstID() {
		t.Errorf("got the ID %s, want %s as at the first try", m.id, group.firstID())
	}
}

// TestWhatHappenedWhileNobodyWasToldIsPassedOver: the file was away for days.
func TestWhatHappenedWhileNobodyWasToldIsPassedOver(t *testing.T) {
	t.Parallel()
	r, group := newRig(t), newHook(t)
	one := r.replica(webhookTo("leads", group.url))
	r.begun(one)
	r.pending(target.PlainJPY(0))
	r.exec(`alter table audit_events disable trigger user`)
	r.exec(`update audit_events set at = at - interval '25 hours'`)
	r.exec(`alter table audit_events enable trigger user`)
	one.run(t)
	r.pending(target.PlainJPY(1))
	eventually(t, "what happens now is told", func() bool { return len(group.messages()) == 1 })
	if n := r.number(`select count(*) from river_job`); n != 1 {
		t.Errorf("got %d deliveries, want one: nothing of what is old", n)
	}
}

// TestWhatNobodyTakesIsGivenUpAfterADay: its receiver has left the file.
func TestWhatNobodyTakesIsGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	r, group, other := newRig(t), newHook(t), newHook(t)
	one := r.replica(webhookTo("leaves", group.url))
	r.begun(one)
	group.hang = make(chan struct{})
	one.run(t)
	r.pending(target.PlainJPY(0))
	<-group.came
	one.stop()
	r.exec(`update river_job set created_at = created_at - interval '25 hours', state = 'available'`)
	two := r.replica(webhookTo("stays", other.url))
	two.run(t)
	eventually(t, "it is given up", func() bool { return r.number(`select count(*) from river_job where state = 'cancelled'`) == 1 })
	told, err := two.feed.Told(t.Context(), outbox.JobKind)
	r.must(err)
	if told.Dead != 1 || told.Waiting != 0 {
		t.Errorf("got %+v, want one that is dead", told)
	}
}
