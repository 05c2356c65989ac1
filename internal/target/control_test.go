package target_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/target"
)

func (s sim) control() target.Control {
	return target.Control{BaseURL: s.url + "/", Token: token, Client: s.client}
}

func TestControlDoesWhatTheMethodsDo(t *testing.T) {
	t.Parallel()
	s, ctx := start(t), t.Context()
	c := s.control()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hold := target.Once(target.OpChange, id, target.Step{Action: target.HoldAfter, Gate: "g"})
	read := target.Once(target.OpRead, id, target.Step{Action: target.DropBefore})
	ok(c.AddFault(ctx, hold, read))
	reply := inBackground(func() got { return s.set(id, "1", "JPY", "k", "X-On-Behalf-Of", target.UserSato) })
	ok(c.Wait(ctx, target.Event{Stage: target.StageHeld, Match: target.Match{Op: target.OpChange, Resource: id, Key: "k"}}, 1))
	ok(c.Release(ctx, "g"))
	(<-reply).want(t, 200, "")

	left, err := c.Faults(ctx)
	ok(err)
	if diff := cmp.Diff(s.Faults(), left); diff != "" || len(left) != 1 {
		t.Errorf("got %d faults (-want +got):\n%s", len(left), diff)
	}
	ok(c.ClearFaults(ctx))
	counters, err := c.Counters(ctx)
	ok(err)
	if diff := cmp.Diff(s.Counters(), counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	tally, err := c.CountersFor(ctx, "k")
	ok(err)
	if want := (target.Tally{Received: 1, Effects: 1}); tally != want {
		t.Errorf("tally: got %+v, want %+v", tally, want)
	}
	changes, err := c.Changes(ctx, "k")
	ok(err)
	if len(changes) != 1 || changes[0].OnBehalfOf != target.UserSato {
		t.Errorf("changes: got %+v, want one on behalf of %s", changes, target.UserSato)
	}
	edited, err := c.EditCampaign(ctx, id, target.CampaignEdit{DailyBudget: "5", Name: "改名", Status: target.StatusPaused})
	ok(err)
	found, err := c.Campaign(ctx, id)
	ok(err)
	if found != edited || found.DailyBudget != "5" || found.Name != "改名" || found.Status != target.StatusPaused {
		t.Errorf("campaign: got %+v and %+v, want the edit in both", edited, found)
	}
	ok(c.SetHonourKeys(ctx, true))
	s.set(id, "1", "JPY", "k2").want(t, 200, "")
	s.set(id, "1", "JPY", "k2").want(t, 200, "")
	s.wantTally(t, "k2", 2, 1)
	ok(c.SetPermission(ctx, target.Permission{User: target.UserSato, Verb: "write"}))
	s.get("/v1/permissions"+query("user", target.UserSato, "campaign", id, "verb", "write")).want(t, 200, "withdrawn")
	found.ID = "2009001"
	ok(c.AddCampaign(ctx, found))
	ok(c.Reset(ctx))
	if n := s.Counters().Total.Received; n != 0 {
		t.Errorf("after a reset: got %d received, want 0", n)
	}
}

func TestControlErrors(t *testing.T) {
	t.Parallel()
	s, ctx := start(t), t.Context()
	c := s.control()
	held := target.Event{Stage: target.StageHeld}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	wrong := c
	wrong.Token = "wrong"
	for name, err := range map[string]error{
		"no such action":   c.AddFault(ctx, target.Once("", "", target.Step{Action: "explode"})),
		"nobody":           c.SetPermission(ctx, target.Permission{Verb: "write"}),
		"no such campaign": second(c.EditCampaign(ctx, "9999999", target.CampaignEdit{Name: "x"})),
		"no such stage":    c.Wait(ctx, target.Event{Stage: "gone"}, 1),
		"never":            c.Wait(short, held, 1),
		"a wrong token":    wrong.Reset(ctx),
	} {
		if err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v, want an error without the credential", name, err)
		}
	}
	s.get("/_sim/wait?stage=held&timeout_ms=1").want(t, 504, "not_in_time")
	s.get("/_sim/wait?n=0").want(t, 400, "invalid_parameter")
	for _, body := range []string{"", "{", `{"gate":"g","x":1}`, `{"gate":"g"} 1`, `{"gate":1}`} {
		s.send("POST", "/_sim/release", body).want(t, 400, "invalid_script")
	}
}

// TestDocumentedScript sends the rule that the package's page shows, as it is written there.
func TestDocumentedScript(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send("POST", "/_sim/faults", `[{"op":"change","resource":"2001001","times":1,"do":[{"action":"drop_after_effect"}]}]`).want(t, 200, "{}")
	want := []target.Fault{{
		Match: target.Match{Op: target.OpChange, Resource: id}, Times: 1, Do: []target.Step{{Action: target.DropAfter}},
	}}
	if diff := cmp.Diff(want, s.Faults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.send("POST", "/_sim/faults", `[{"op":"change","campaign":"2001001","do":[{"action":"drop_after_effect"}]}]`).want(t, 400, "invalid_script")
}

func second[T any](_ T, err error) error { return err }

func TestWaitCountsPerOperationAndKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		waited <- s.Wait(ctx, target.Event{Stage: target.StageDone, Match: target.Match{Op: target.OpChange}}, 2)
	}()
	s.get("/v1/campaigns/"+id).want(t, 200, "")
	s.set(id, "1", "JPY", "a").want(t, 200, "")
	s.set(id, "2", "JPY", "b").want(t, 200, "")
	if err := <-waited; err != nil {
		t.Error(err)
	}
	cancel()
	if err := s.Wait(ctx, target.Event{Stage: target.StageEffect, Match: target.Match{Key: "c"}}, 1); err == nil {
		t.Error("waiting for what never came: got no error")
	}
}

func TestServeDrains(t *testing.T) {
	t.Parallel()
	ads := target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: token}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- target.Serve(ctx, ln, ads) }()
	s := sim{ads, callerOf("http://" + ln.Addr().String())}
	s.get("/healthz").want(t, 200, "ok")
	s.script(t, target.Once(target.OpChange, id, target.Step{Action: target.HoldBefore}))
	held := inBackground(func() got { return s.set(id, "1", "JPY", "k") })
	s.wait(t, target.StageHeld, target.OpChange, "k", 1)
	stop()
	if err := <-served; err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if r := <-held; r.err == nil {
		t.Errorf("held request: got %d, want a cut connection", r.status)
	}
	s.wantTally(t, "k", 1, 0)
	if r := s.get("/healthz"); r.err == nil {
		t.Error("the server still answers after it has stopped")
	}
	if err := target.Serve(t.Context(), ln, ads); err == nil {
		t.Error("serving a closed listener: got no error")
	}
}
