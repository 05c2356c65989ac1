package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

// world is one attack under way.
type world struct {
	*stage
	ctx context.Context
	// p and db are the service and its database; an attack may have its own.
	p  *fleet.Process
	db *pgxpool.Pool

	closes []func()
	// quietly counts the stretches in which nothing moved; an attack without one has shown nothing.
	quietly int
	failure string
	held    bool
}

// fail ends the attack, which was not refused as it should be.
func (w *world) fail(format string, args ...any) {
	w.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *world) must(err error) {
	if err != nil {
		_, file, line, _ := runtime.Caller(1)
		w.fail("%s:%d: %v", file[strings.LastIndex(file, "/")+1:], line, err)
	}
}

// want fails unless got is one of wanted.
func want[T comparable](w *world, what string, got T, wanted ...T) {
	for _, one := range wanted {
		if got == one {
			return
		}
	}
	w.fail("%s: got %v, want %v", what, got, wanted)
}

func (w *world) onClose(do func()) { w.closes = append(w.closes, do) }

func (w *world) close() {
	for _, do := range w.closes {
		do()
	}
}

// picture is everything that an attack must not move.
type picture struct {
	Target                                                    target.Tally
	Previews, Decisions, Executions, Attempts, Events, Orders string
}

const pictureSQL = `select
	(select count(*) || coalesce(md5(string_agg(concat_ws('|', id, state, revision, justification), ',' order by id)), '') from previews),
	(select count(*)::text from decisions), (select count(*) || coalesce(string_agg(distinct state, ','), '') from executions),
	(select count(*)::text from attempts), (select count(*)::text from audit_events),
	(select (select count(*) from control_events) || '/' || (select count(*) from freezes))`

func (w *world) picture() (p picture) {
	w.must(w.db.QueryRow(w.ctx, pictureSQL).Scan(&p.Previews, &p.Decisions, &p.Executions, &p.Attempts, &p.Events, &p.Orders))
	counters, err := w.f.Ads.Counters(w.ctx)
	w.must(err)
	p.Target = counters.Total
	return p
}

// quiet runs the hostile part: the platform's counters, the records and the audit must be afterwards as they were before.
func (w *world) quiet(hostile func()) {
	before := w.picture()
	hostile()
	if after := w.picture(); after != before {
		w.fail("the attack left traces: before %+v, after %+v", before, after)
	}
	w.quietly++
}

// unsent runs a hostile part that may leave a preview of its own, or have one expire: nothing may be decided, sent or frozen.
func (w *world) unsent(hostile func()) {
	before := w.picture()
	hostile()
	after := w.picture()
	before.Previews, before.Events = after.Previews, after.Events
	if after != before {
		w.fail("the attack left traces: before %+v, after %+v", before, after)
	}
	w.quietly++
}

// still wants that something was shown, and that the service answers and works as before.
func (w *world) still() {
	if w.quietly == 0 {
		w.fail("the attack looked at nothing")
	}
	want(w, "health", w.send("GET", "/healthz", "").status, http.StatusOK)
	want(w, "readiness", w.send("GET", "/readyz", "").status, http.StatusOK)
	want(w, "an honest call", w.send("GET", "/v1/previews", "", bearer(w.token(w.agent()))...).status, http.StatusOK)
}

// reply is what the service answered.
type reply struct {
	status int
	header http.Header
	text   string
}

// send makes one request as written. headers are pairs; Host sets the host.
func (w *world) send(method, path, body string, headers ...string) reply {
	r, err := w.try(method, path, body, headers...)
	w.must(err)
	return r
}

func (w *world) try(method, path, body string, headers ...string) (r reply, err error) {
	request, err := http.NewRequestWithContext(w.ctx, method, w.p.URL+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := w.client.Do(request)
	if err != nil {
		return r, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	r = reply{response.StatusCode, response.Header, string(text)}
	w.keep(r.text)
	return r, err
}

// keep remembers an answer.
func (s *stage) keep(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

func bearer(token string) []string {
	return []string{"Authorization", "Bearer " + token, "Content-Type", "application/json"}
}

// caller is somebody at the JSON API.
func (w *world) caller(c claims) fleet.Caller { return fleet.Caller{URL: w.p.URL, Token: w.token(c)} }

// The budgets that attacks ask for: small passes by policy, large needs an approver.
const (
	small = fleet.Budget + 1000
	large = 2 * fleet.Budget
)

// ready is a change of the agent's that is approved and could be applied.
func (w *world) ready() fleet.Reply { return w.prepared(w.agent(), small, "approved") }

// pending is a change of the agent's that waits for people.
func (w *world) pending() fleet.Reply {
	r := w.prepared(w.agent(), large, "needs_approval")
	r, err := w.caller(w.agent()).Request(w.ctx, r.PreviewID)
	w.must(err)
	want(w, "asking for approval", r.Status, "pending")
	return r
}

func (w *world) prepared(who claims, yen int, status string) fleet.Reply {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	r, err := w.caller(who).Prepare(w.ctx, campaign, yen, "")
	w.must(err)
	want(w, "preparing ("+r.Message+")", r.Status, status)
	return r
}

// digest is what an approver sees and confirms.
func (w *world) digest(id string) string {
	r, err := w.caller(w.agent()).Status(w.ctx, id, 0)
	w.must(err)
	if r.Change == nil || r.Change.Digest == "" {
		w.fail("no digest in the status of %s", id)
	}
	return r.Change.Digest
}

// applies is the positive control: the honest caller applies it, once.
func (w *world) applies(id string) {
	r, err := w.caller(w.agent()).Apply(w.ctx, id)
	w.must(err)
	want(w, "the honest apply ("+r.Message+")", r.Status, "applied")
	n, err := w.f.Effects(w.ctx, id)
	w.must(err)
	want(w, "effects of the honest apply", n, 1)
}

// approves is the positive control of decisions: an approver says yes, and the change is approved.
func (w *world) approves(id string) {
	r, err := w.caller(w.kim()).Decide(w.ctx, id, "approve", w.digest(id))
	w.must(err)
	want(w, "the honest approval ("+r.Message+")", r.Status, "approved")
}
