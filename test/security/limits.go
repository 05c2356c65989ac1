package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// endlessly lets one agent call as fast as it can, at both doors. It is told to come later, and nobody else notices.
func endlessly(w *world) {
	w.apart("CUTONCE_LIMIT_ACTOR=120", "CUTONCE_LIMIT_TENANT=600", "CUTONCE_LIMIT_ACTION=60")
	pending, ready := w.pending(), w.ready()
	flooding := w.token(w.otherAgent())
	arrived := len(w.recorder.arrivals())
	w.quiet(func() {
		w.floods(flooding, func(n int) reply {
			if n%2 == 0 {
				return w.send("GET", "/v1/previews", "", bearer(flooding)...)
			}
			return w.send("POST", "/v1/finds/campaigns_find", `{"query":"a"}`, bearer(flooding)...)
		})
		r := w.mcp(flooding, "campaigns_find", map[string]any{"query": "a"})
		if !strings.Contains(r.text, `"rate_limited"`) || !strings.Contains(r.text, `"isError":true`) || !strings.Contains(r.text, `"retry_after_s":`) {
			w.fail("the agents' door: got %d %s, want rate_limited with the time to wait", r.status, r.text)
		}
		list := w.send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, append(bearer(flooding), "Accept", "application/json, text/event-stream")...)
		if list.status == http.StatusOK && !strings.Contains(list.text, "rate_limited") {
			w.fail("a list of tools: got %s, want it refused as well", list.text)
		}
	})
	if asked := len(w.recorder.arrivals()) - arrived; asked > 40 {
		w.fail("the platform was asked %d times by one agent", asked)
	}
	w.approves(pending.PreviewID)
	w.applies(ready.PreviewID)
	lee := w.home.person("lee@agency.example", "Lee").with("roles", []string{"operator"})
	r := w.send("POST", "/v1/freezes", `{"kind":"action","name":"budget_change","reason":"an agent runs wild","for_s":60}`, bearer(w.token(lee))...)
	want(w, "a freeze meanwhile ("+r.text+")", r.status, http.StatusOK)
}

// floods calls three hundred times at once. Some are served, most are not, and those are told when to come again.
func (w *world) floods(token string, call func(int) reply) {
	var mu sync.Mutex
	statuses := map[int]int{}
	var odd string
	var group sync.WaitGroup
	for worker := range 10 {
		group.Go(func() {
			for n := range 30 {
				r := call(worker + n)
				after, err := strconv.Atoi(r.header.Get("Retry-After"))
				mu.Lock()
				statuses[r.status]++
				if r.status == http.StatusTooManyRequests && (err != nil || after < 1 || !strings.Contains(r.text, `"rate_limited"`)) {
					odd = fmt.Sprintf("Retry-After %q: %s", r.header.Get("Retry-After"), r.text)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if odd != "" || statuses[http.StatusOK] == 0 || statuses[http.StatusTooManyRequests] < 150 || len(statuses) != 2 {
		w.fail("got %v, want some served and most told to come later; %s", statuses, odd)
	}
}

// buryTheQueue prepares fifty changes at once where ten may be open.
func buryTheQueue(w *world) {
	w.apart("CUTONCE_LIMIT_OPEN=10")
	var campaigns []string
	for range 51 {
		campaign, err := w.f.Campaign(w.ctx)
		w.must(err)
		campaigns = append(campaigns, campaign)
	}
	who := w.caller(w.agent().with("act", claims{"sub": "burying-bot"}))
	var mu sync.Mutex
	codes := map[string]int{}
	w.unsent(func() {
		var group sync.WaitGroup
		for _, campaign := range campaigns[:50] {
			group.Go(func() {
				r, err := who.Prepare(w.ctx, campaign, large, "")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					r.Code = err.Error()
				}
				codes[r.Code]++
			})
		}
		group.Wait()
	})
	if codes[""] != 10 || codes["too_many_open"] != 40 {
		w.fail("got %v, want ten prepared and forty refused", codes)
	}
	r := w.send("POST", "/v1/actions/budget_change/previews",
		fmt.Sprintf(`{"campaign_id":%q,"new_daily_budget_jpy":%d,"reason":"one more"}`, campaigns[50], large), bearer(who.Token)...)
	if r.status != http.StatusConflict || !strings.Contains(r.text, `"next_tool":"changes_find"`) || r.header.Get("Retry-After") == "" {
		w.fail("got %d %s, want to be told what to do", r.status, r.text)
	}
	var open int
	w.must(w.db.QueryRow(w.ctx, `select count(*) from previews where state = 'needs_approval'`).Scan(&open))
	want(w, "open changes", open, 10)
	w.applies(w.ready().PreviewID) // another agent of the tenant
}
