package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
	"github.com/cutonce/cutonce/web"
)

// forger hands the console a record that somebody has changed.
type forger struct {
	*store.Store
	change func(*audit.Trail)
}

// Trail is web.Trails.
func (f forger) Trail(ctx context.Context, tenant string, id preview.ID) (audit.Trail, error) {
	t, err := f.Store.Trail(ctx, tenant, id)
	if f.change != nil {
		f.change(&t)
	}
	return t, err
}

func sealKey(t testing.TB) audit.Key {
	t.Helper()
	key, err := audit.DeriveKey([]byte("a secret of thirty-two bytes....."))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// seal seals until all of a change is sealed: transactions of other tests hold seals back.
func (r *rig) seal(id preview.ID) {
	r.t.Helper()
	sealer := audit.Sealer{Store: r.store, Key: sealKey(r.t), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r.must(sealer.Seal(r.t.Context()))
		t, err := r.store.Trail(r.t.Context(), "acme", id)
		r.must(err)
		if t.Leaf != nil && t.Leaf.Seq == t.Seq {
			return
		}
	}
	r.t.Fatal("it is not sealed in time")
}

// patient gives a send time that a busy machine does not use up.
func patient(r *rig) { r.clocks.LeaseFor, r.clocks.SendFor = 40*time.Second, 15*time.Second }

func TestTheRecordIsCheckedAgainstItsSeal(t *testing.T) {
	t.Parallel()
	r := newRig(t, patient)
	id := r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
	auditor := r.as("auditor")
	path := "/changes/" + id.String()
	auditor.get(path).want(http.StatusOK, "The 1 event below is intact", "No seal covers it yet")
	r.seal(id)
	sealed := auditor.get(path).want(http.StatusOK, "covers all of them", "its signature was checked", "What this shows, and what it does not")
	sealed.wantNone("#record.bad")
	r.apply(id, commit.StatusApplied)
	auditor.get(path).want(http.StatusOK, "All 3 events below are intact", "covers the events up to 1", "2 newer events are not sealed yet")
	if got, want := auditor.get(path).Find(".timeline > li").Length(), 3; got != want {
		t.Errorf("events: got %d, want %d", got, want)
	}
}

func TestABrokenRecordIsAnIncident(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		forge func(*audit.Trail)
		want  string
	}{
		"an event's words":       {func(t *audit.Trail) { t.Events[1].Body = []byte(`{"attempt":"another"}`) }, "Event 2, or the hash of the one before it, was altered"},
		"an event taken out":     {func(t *audit.Trail) { t.Events = append(t.Events[:1], t.Events[2:]...) }, "Event 2 is missing."},
		"the end cut off":        {func(t *audit.Trail) { t.Events = t.Events[:2] }, "Event 3 is missing."},
		"the record's end":       {func(t *audit.Trail) { t.Seq, t.Head = 2, t.Events[1].Hash }, "ends otherwise than its chain, at event 3"},
		"another one was sealed": {func(t *audit.Trail) { t.Leaf.Head = t.Events[0].Hash }, "Event 3 is not the one that was sealed."},
		"the seal's leaves":      {func(t *audit.Trail) { t.Leaves[t.Place][0] ^= 1 }, "The seal has signed other leaves"},
		"the seal's signature":   {func(t *audit.Trail) { t.Seal.Signature[0] ^= 1 }, "its signature is forged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, patient, func(r *rig) { r.forge = c.forge })
			id := r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
			r.apply(id, commit.StatusApplied)
			r.seal(id)
			page := r.as("auditor").get("/changes/"+id.String()).want(http.StatusOK, "Incident: the record of this change is broken.", c.want)
			page.wantOne("#record.bad")
		})
	}
}

func TestAnotherKeyIsNoForgery(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.forge = func(t *audit.Trail) { t.Seal.KeyID = "0000000000000000" }
	})
	id := r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
	r.seal(id)
	r.as("auditor").get("/changes/"+id.String()).want(http.StatusOK, "signed by a key that is not this service’s present one")
}

func TestPreparingAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, patient)
	id := r.prepare(target.PlainJPY(0), "12000", "Sale of the weekend")
	r.must(r.ads.SetBudget(target.PlainJPY(0), "11000"))
	r.apply(id, commit.StatusNotApplied)
	path := "/changes/" + id.String()

	page := r.as("auditor").get(path).want(http.StatusOK, "As a call of budget_change_preview")
	page.wantNone("form[action$='/again']")
	var call struct {
		Name      string
		Arguments map[string]any
	}
	r.must(json.Unmarshal([]byte(page.Find("pre.copy").Text()), &call))
	want := map[string]any{"campaign_id": target.PlainJPY(0), "new_daily_budget_jpy": 12000.0, "reason": "Sale of the weekend"}
	if diff := cmp.Diff(want, call.Arguments); diff != "" || call.Name != "budget_change_preview" {
		t.Errorf("the call of %s (-want +got):\n%s", call.Name, diff)
	}
	r.as("auditor").post(path+"/again?lang=en").want(http.StatusForbidden, "Only its requester")

	sato := r.as("sato")
	made := sato.submit(sato.get(path+"?lang=en"), "form[action*='/again']").want(http.StatusOK, "11,000 JPY", "12,000 JPY", "sato@agency.example asks:")
	if made.url.Path == path {
		t.Errorf("got %s, want another change", made.url.Path)
	}
	made.wantNone("form[action*='/again']")
	open := r.prepare(target.PlainJPY(1), "12000", "Weekend sale")
	sato.post("/changes/"+open.String()+"/again?lang=en").want(http.StatusForbidden, "only once it is over")
}

func TestTimesInTheReadersZone(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.Zones = []string{"Asia/Tokyo", "Asia/Seoul"} })
	id := r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
	path := "/changes/" + id.String()
	auditor := r.as("auditor")
	for query, want := range map[string]struct{ zone, mark string }{
		"": {" JST", ""}, "?zone=Asia/Seoul": {" KST", "Asia/Seoul"}, "?zone=UTC": {" UTC", "UTC"}, "?zone=Mars/Base": {" JST", ""},
	} {
		page := auditor.get(path + query)
		at := page.Find(".timeline time").First()
		if got := at.Text(); !strings.HasSuffix(got, want.zone) {
			t.Errorf("%s: got %q, want it to end in %q", query, got, want.zone)
		}
		if got := at.AttrOr("data-zone", ""); got != want.mark {
			t.Errorf("%s: the zone that was chosen: got %q, want %q", query, got, want.mark)
		}
		if got := at.AttrOr("datetime", ""); !strings.HasSuffix(got, "Z") {
			t.Errorf("%s: the machine's time: got %q, want UTC", query, got)
		}
	}
	page := auditor.get(path + "?zone=Asia/Seoul")
	if got, want := page.Find("nav a").First().AttrOr("href", ""), "/?zone="+url.QueryEscape("Asia/Seoul"); got != want {
		t.Errorf("a link: got %s, want %s", got, want)
	}
	if _, err := web.New(web.Deps{}); err == nil {
		t.Error("a console without its parts started")
	}
}

// TestWhyAFreezeIsInTheWay: the console's own words know freezes, and say their end in the reader's zone.
func TestWhyAFreezeIsInTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.Zones = []string{"Asia/Tokyo"} })
	id := r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
	_, err := r.commits.Freeze(t.Context(), commit.FreezeOrder{Kind: commit.FreezeTenant, By: cast["oper"], Reason: "month's end", For: 3600e9})
	r.must(err)
	page := r.as("auditor").get("/changes/"+id.String()).want(http.StatusOK, "It is approved, and cannot be applied before", "JST", "oper@agency.example has frozen all changes here (month's end)")
	if got := page.text(".frozen"); !strings.Contains(got, "here: month's end Until 2") || !strings.Contains(got, "JST") || strings.Contains(got, "T0") {
		t.Errorf("on top: got %q, want the end in the reader's zone", got)
	}
	r.as("tanaka").get("/changes/"+id.String()).want(http.StatusOK, "承認済みですが、")
}
