package target_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

const id = target.CampaignAutumnSearch

func TestFaultsOnAChange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		steps   []target.Step
		status  int // 0: no reply
		header  string
		effects int
	}{
		"none":               {steps: []target.Step{{Action: target.DelayBefore, DelayMS: 1}}, status: 200, effects: 1},
		"delay after":        {steps: []target.Step{{Action: target.DelayAfter, DelayMS: 1}}, status: 200, effects: 1},
		"drop before":        {steps: []target.Step{{Action: target.DropBefore}}},
		"drop after":         {steps: []target.Step{{Action: target.DropAfter}}, effects: 1},
		"slow, then dropped": {steps: []target.Step{{Action: target.DelayBefore, DelayMS: 1}, {Action: target.DropAfter}}, effects: 1},
		"conflict":           {steps: []target.Step{{Action: target.StatusBefore, Status: 409}}, status: 409},
		"accepted":           {steps: []target.Step{{Action: target.StatusBefore, Status: 202}}, status: 202},
		"no content after":   {steps: []target.Step{{Action: target.StatusAfter, Status: 204}}, status: 204, effects: 1},
		"rate limit":         {steps: []target.Step{{Action: target.StatusBefore, Status: 429, RetryAfterS: 3}}, status: 429, header: "3"},
		"503 before":         {steps: []target.Step{{Action: target.StatusBefore, Status: 503}}, status: 503},
		"503 after":          {steps: []target.Step{{Action: target.StatusAfter, Status: 503}}, status: 503, effects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.script(t, target.Fault{Match: target.Match{Op: target.OpChange, Resource: id}, Do: tc.steps})
			reply := s.set(id, "30000", "JPY", "k")
			if tc.status == 0 && reply.err == nil {
				t.Errorf("got reply %d %q, want a cut connection", reply.status, reply.body)
			}
			if tc.status != 0 && (reply.err != nil || reply.status != tc.status || reply.header.Get("Retry-After") != tc.header) {
				t.Errorf("got %d, Retry-After %q, error %v, want %d, %q", reply.status, reply.header.Get("Retry-After"), reply.err, tc.status, tc.header)
			}
			s.wantTally(t, "k", 1, tc.effects)
			s.wantBudget(t, id, []string{"20000", "30000"}[tc.effects])
			s.set(id, "40000", "JPY", "next").want(t, 200, "40000") // the rule was used up
		})
	}
}

func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.script(t, target.Once(target.OpChange, id, target.Step{Action: target.TruncateBody}))
	reply := s.set(id, "30000", "JPY", "k")
	if reply.status != 200 || !errors.Is(reply.err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d with error %v, want 200 with %v", reply.status, reply.err, io.ErrUnexpectedEOF)
	}
	if !strings.HasPrefix(reply.body, `{"id":"`) || strings.HasSuffix(reply.body, "}\n") {
		t.Errorf("got body %q, want the first half of a campaign", reply.body)
	}
	s.wantTally(t, "k", 1, 1)
}

func TestDuplicateDelivery(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys, ifMatch, replyLast bool
		status, effects          int
	}{
		"no keys":                            {status: 200, effects: 2},
		"keys":                               {keys: true, status: 200, effects: 1},
		"a precondition":                     {ifMatch: true, status: 200, effects: 1},
		"a precondition, the second's reply": {ifMatch: true, replyLast: true, status: 412, effects: 1},
		"keys, the second's reply":           {keys: true, ifMatch: true, replyLast: true, status: 200, effects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(cfg *target.AdsConfig) { cfg.HonourKeys = tc.keys })
			s.script(t, target.Once(target.OpChange, id, target.Step{Action: target.DuplicateDelivery, ReplyLast: tc.replyLast}))
			var headers []string
			if c, _ := s.Campaign(id); tc.ifMatch {
				headers = []string{"If-Match", c.ETag}
			}
			s.set(id, "30000", "JPY", "k", headers...).want(t, tc.status, "")
			s.wantTally(t, "k", 2, tc.effects)
			if n := len(s.Entries()); n != tc.effects {
				t.Errorf("log: got %d entries, want %d", n, tc.effects)
			}
		})
	}
}

func TestHeldBeforeTheEffectOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.script(t, target.Once(target.OpChange, id, target.Step{Action: target.HoldBefore}))
	ctx, hangUp := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, "PATCH", s.url+"/v1/campaigns/"+id, strings.NewReader(`{"daily_budget":"1","currency":"JPY"}`))
		if err == nil {
			req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
			_, err = s.client.Do(req) //nolint:bodyclose // there is no reply
		}
		failed <- err
	}()
	s.wait(t, target.StageHeld, target.OpChange, "k", 1)
	hangUp()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	s.wantTally(t, "k", 1, 0)
	s.Release("")
	s.wait(t, target.StageDone, target.OpChange, "k", 1)
	s.wantTally(t, "k", 1, 1)
	s.wantBudget(t, id, "1")
}

func TestHeldAfterTheEffect(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.script(t, target.Once(target.OpChange, id, target.Step{Action: target.HoldAfter, Gate: "g"}))
	reply := inBackground(func() got { return s.set(id, "1", "JPY", "k") })
	s.wait(t, target.StageHeld, target.OpChange, "k", 1)
	s.wait(t, target.StageEffect, target.OpChange, "k", 1)
	s.wantBudget(t, id, "1")
	s.get("/v1/changes?key=k").want(t, 200, `"after":"1"`)
	s.Release("other")
	select {
	case r := <-reply:
		t.Fatalf("got %+v before the gate opened", r)
	default:
	}
	s.Release("g")
	(<-reply).want(t, 200, `"change_id":"chg-000001"`)
}

func TestStaleRead(t *testing.T) {
	t.Parallel()
	s := start(t)
	before, _ := s.Campaign(id)
	changed := s.set(id, "30000", "JPY", "k")
	s.script(t,
		target.Once(target.OpRead, id, target.Step{Action: target.StaleRead}),
		target.Once(target.OpFind, "", target.Step{Action: target.StaleRead}),
		target.Once(target.OpLookup, id, target.Step{Action: target.StaleRead}))
	stale := s.get("/v1/campaigns/" + id)
	stale.want(t, 200, `"daily_budget":"20000"`)
	if tag := stale.header.Get("ETag"); tag != before.ETag {
		t.Errorf("stale ETag: got %s, want %s", tag, before.ETag)
	}
	s.get("/v1/campaigns"+query("query", "秋の特価_検索")).want(t, 200, `"daily_budget":"20000"`)
	s.get("/v1/changes?key=k").want(t, 200, `{"changes":[]}`)

	fresh := s.get("/v1/campaigns/" + id)
	fresh.want(t, 200, `"daily_budget":"30000"`)
	if got, want := fresh.header.Get("ETag"), changed.header.Get("ETag"); got != want || got == before.ETag {
		t.Errorf("fresh ETag: got %s, want %s, not %s", got, want, before.ETag)
	}
	s.get("/v1/changes?key=k").want(t, 200, `"after":"30000"`)
}

func TestLookupFaults(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(id, "30000", "JPY", "k")
	s.script(t,
		target.Once(target.OpLookup, id, target.Step{Action: target.LookupUnavailable}),
		target.Once(target.OpLookup, target.CampaignPaused, target.Step{Action: target.HideLookup}),
		target.Once(target.OpLookup, target.CampaignDollars, target.Step{Action: target.HideLookup, Status: 404}))
	s.get("/v1/changes?key=k").want(t, 503, "lookup_unavailable") // matched by what the key changed
	s.get("/v1/changes?key=k").want(t, 200, `"after":"30000"`)
	s.get("/v1/changes?key=none").want(t, 200, `{"changes":[]}`)
	s.get("/v1/changes?key=none&campaign="+target.CampaignPaused).want(t, 501, "lookup_unsupported")
	s.get("/v1/changes?key=none&campaign="+target.CampaignDollars).want(t, 404, "lookup_unsupported")
}

func TestFaultQueue(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.script(t,
		target.Fault{Match: target.Match{Op: target.OpRead}, Times: 2, Do: []target.Step{{Action: target.StatusBefore, Status: 500}}},
		target.Fault{Match: target.Match{Key: "k2"}, Do: []target.Step{{Action: target.StatusBefore, Status: 501}}},
		target.Fault{Match: target.Match{Op: target.OpRead}, Times: target.Forever, Do: []target.Step{{Action: target.StatusBefore, Status: 502}}})
	s.set(id, "1", "JPY", "k1").want(t, 200, "")
	s.set(id, "2", "JPY", "k2").want(t, 501, "not_implemented")
	for _, want := range []int{500, 500, 502, 502, 502} {
		s.get("/v1/campaigns/"+id).want(t, want, "")
	}
	if n := len(s.Faults()); n != 1 {
		t.Errorf("got %d rules left, want 1", n)
	}
	s.ClearFaults()
	s.get("/v1/campaigns/"+id).want(t, 200, "")
}

func TestWrongScriptsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, f := range map[string]target.Fault{
		"no step":             {},
		"unknown action":      {Do: []target.Step{{Action: "explode"}}},
		"unknown op":          target.Once("write", id, target.Step{Action: target.DropAfter}),
		"bad times":           {Times: -2, Do: []target.Step{{Action: target.DropAfter}}},
		"delay without time":  {Do: []target.Step{{Action: target.DelayBefore}}},
		"negative delay":      {Do: []target.Step{{Action: target.DelayBefore, DelayMS: -1}}},
		"endless delay":       {Do: []target.Step{{Action: target.DelayBefore, DelayMS: 600_001}}},
		"status missing":      {Do: []target.Step{{Action: target.StatusAfter}}},
		"status out of range": {Do: []target.Step{{Action: target.StatusAfter, Status: 199}}},
		"gate on a drop":      {Do: []target.Step{{Action: target.DropAfter, Gate: "g"}}},
		"retry on a drop":     {Do: []target.Step{{Action: target.DropAfter, RetryAfterS: 1}}},
		"reply_last alone":    {Do: []target.Step{{Action: target.DropAfter, ReplyLast: true}}},
		"twice for a read":    target.Once(target.OpRead, id, target.Step{Action: target.DuplicateDelivery}),
		"stale change":        target.Once(target.OpChange, id, target.Step{Action: target.StaleRead}),
		"hidden anything":     target.Once("", id, target.Step{Action: target.HideLookup}),
	} {
		good := target.Once(target.OpRead, id, target.Step{Action: target.DropAfter})
		if err := s.AddFault(good, f); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if n := len(s.Faults()); n != 0 {
		t.Errorf("got %d rules kept from refused scripts, want 0", n)
	}
}

func TestResetCutsWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := start(t, honourKeys)
	s.script(t,
		target.Once(target.OpChange, id, target.Step{Action: target.HoldBefore}),
		target.Once(target.OpChange, target.CampaignDollars, target.Step{Action: target.DelayBefore, DelayMS: 600_000}))
	held := inBackground(func() got { return s.set(id, "1", "JPY", "held") })
	s.wait(t, target.StageHeld, target.OpChange, "held", 1)
	slow := inBackground(func() got { return s.set(target.CampaignDollars, "1.00", "USD", "slow") })
	s.wait(t, target.StageArrived, target.OpChange, "slow", 1)
	s.set(target.CampaignPaused, "5", "JPY", "done").want(t, 200, "")
	s.SetPermission(target.Permission{User: "new@agency.example", Verb: "read", Allowed: true})
	s.Reset()
	for _, reply := range []<-chan got{held, slow} {
		if r := <-reply; r.err == nil {
			t.Errorf("got reply %d, want a cut connection", r.status)
		}
	}
	s.wantBudget(t, id, "20000")
	s.wantBudget(t, target.CampaignPaused, "12000")
	if c := s.Counters(); c.Total != (target.Tally{}) || len(c.ByKey) != 0 || len(s.Entries()) != 0 {
		t.Errorf("got counters %+v and %d entries after a reset, want none", c, len(s.Entries()))
	}
	s.get("/v1/permissions"+query("user", "new@agency.example", "campaign", id, "verb", "read")).want(t, 200, "unknown_user")
	s.set(id, "2", "JPY", "held").want(t, 200, "") // the key is free again, even with another body
}
