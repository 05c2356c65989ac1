package web_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// ids are the changes that a list shows, in its order.
func (p *page) ids() []string {
	return p.Find(".card h2").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("id", "") })
}

func TestHistoryIsSearched(t *testing.T) {
	t.Parallel()
	r := newRig(t, patient, func(r *rig) { r.deps.Zones = []string{"Asia/Tokyo"} })
	voted := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	kim.submit(kim.get("/changes/"+voted.String()+"/review"), "form.decide", "decision", "reject", "reason", "not this week")
	applied := r.prepare(target.PlainJPY(1), "12000", "Weekend sale")
	r.apply(applied, commit.StatusApplied)
	auditor := r.as("auditor")
	today := auditor.get("/changes/" + applied.String()).Find(".timeline time").First().Text()[:10] // in Tokyo
	for query, want := range map[string][]string{
		"":                                     {applied.String(), voted.String()},
		"?person=kim":                          {voted.String()},
		"?person=KIM@agency":                   {voted.String()},
		"?person=dev-agent":                    {applied.String(), voted.String()},
		"?person=sato&status=rejected":         {voted.String()},
		"?person=nobody-here":                  {},
		"?action=budget_change&status=applied": {applied.String()},
		"?action=deployment_rollback":          {},
		"?from=" + today + "&to=" + today:      {applied.String(), voted.String()},
		"?to=2020-01-01":                       {},
		"?from=2999-01-01":                     {},
		"?contradicted=1":                      {},
		"?target=" + target.PlainJPY(1):        {applied.String()},
	} {
		got := auditor.get("/history" + query).want(http.StatusOK).ids()
		if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	kept := auditor.get("/history?person=kim&from=2026-01-31&to=2999-12-31&contradicted=1")
	for selector, want := range map[string]string{"#person": "kim", "#from": "2026-01-31", "#to": "2999-12-31"} {
		if got := kept.wantOne(selector).AttrOr("value", ""); got != want {
			t.Errorf("%s: got %q, want it kept as %q", selector, got, want)
		}
	}
	kept.wantOne("input[name=contradicted][checked]")
	if got := auditor.get("/history?action=budget_change").wantOne("#from").AttrOr("value", ""); got == "" {
		t.Error("an action alone is searched for ever, want the last months")
	}
	if got, want := auditor.get("/history?target="+applied.String()).url.Path, "/changes/"+applied.String(); got != want {
		t.Errorf("a change's ID: got %s, want %s", got, want)
	}
	auditor.get("/history?from=31.1.2026").want(http.StatusUnprocessableEntity, "Write the day as 2026-11-30.")
	auditor.get("/history?person="+strings.Repeat("x", 201)).want(http.StatusUnprocessableEntity, "Write at most 200 characters.")
	if got := r.as("rival").get("/history?person=kim").ids(); len(got) != 0 {
		t.Errorf("another tenant: got %v, want nothing", got)
	}
}

func TestHistoryIsTakenOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, patient, func(r *rig) { r.deps.Zones = []string{"Asia/Tokyo"} })
	r.must(r.ads.Add(target.Campaign{ID: "2009009", Status: target.StatusEnabled, AccountID: "acc-jp-01", Owner: target.UserSato, Name: "=HYPERLINK(\"http://evil.example\")", DailyBudget: "10000", Currency: "JPY"}))
	evil := r.prepare("2009009", "12000", "+1+1, a \"reason\"")
	plain := r.prepare(target.PlainJPY(1), "12000", "週末のセール")
	r.apply(plain, commit.StatusApplied)
	oper := r.as("auditor")
	links := oper.get("/history?status=applied").Find(".export a").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("href", "") })
	if want := []string{"/history/export.csv?status=applied", "/history/export.ndjson?status=applied"}; !slices.Equal(links, want) {
		t.Errorf("the links: got %v, want %v", links, want)
	}

	file := oper.get("/history/export.csv?lang=ja")
	if got := file.header.Get("Content-Type"); file.status != http.StatusOK || !strings.HasPrefix(got, "text/csv; charset=utf-8") {
		t.Fatalf("got %d, %s", file.status, got)
	}
	if got, want := file.header.Get("Content-Disposition"), `attachment; filename="cutonce-changes.csv"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	body, marked := strings.CutPrefix(file.body, "\ufeff")
	if !marked || !strings.Contains(body, "\r\n") {
		t.Error("got no byte order mark, or lines without CR: some spreadsheets read Japanese as something else")
	}
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	r.must(err)
	if len(rows) != 3 {
		t.Fatalf("got %d rows, want a header and two", len(rows))
	}
	cell := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	got := map[string]string{}
	for _, name := range []string{"change_id", "status", "target_id", "field", "before", "after", "currency", "on_behalf_of", "effect", "evidence", "zone"} {
		got[name] = cell(1, name)
	}
	if diff := cmp.Diff(map[string]string{
		"change_id": plain.String(), "status": "applied", "target_id": target.PlainJPY(1), "field": "daily_budget", "before": "10000", "after": "12000",
		"currency": "JPY", "on_behalf_of": target.UserSato, "effect": "applied", "evidence": "receipt", "zone": "Asia/Tokyo",
	}, got); diff != "" {
		t.Errorf("a row (-want +got):\n%s", diff)
	}
	if got, want := cell(2, "target_name")+"|"+cell(2, "reason"), `'=HYPERLINK("http://evil.example")|'+1+1, a "reason"`; got != want {
		t.Errorf("what a spreadsheet would compute: got %s, want %s", got, want)
	}
	if cell(2, "change_id") != evil.String() || cell(2, "sent_at") != "" {
		t.Errorf("the other row: got %v", rows[2])
	}

	lines := bufio.NewScanner(strings.NewReader(oper.get("/history/export.ndjson?status=applied").body))
	var all []map[string]any
	for lines.Scan() {
		var line map[string]any
		r.must(json.Unmarshal(lines.Bytes(), &line))
		all = append(all, line)
	}
	if len(all) != 2 || all[0]["preview_id"] != plain.String() || all[1]["end"] != true || fmt.Sprint(all[1]["rows"]) != "1" || all[1]["more"] != false {
		t.Errorf("got %v, want one change and the end", all)
	}
}

// TestWhoTakesHistoryOut: approvers and requesters read, and take nothing out.
func TestWhoTakesHistoryOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
	for person, may := range map[string]bool{"auditor": true, "oper": true, "admin": true, "kim": false, "sato": false, "nobody": false} {
		b := r.as(person)
		if got := b.get("/history?lang=en").Find(".export").Length() == 1; got != may {
			t.Errorf("%s: offered: got %t, want %t", person, got, may)
		}
		got := b.get("/history/export.csv?lang=en")
		if (got.status == http.StatusOK) != may {
			t.Errorf("%s: got status %d, want allowed %t", person, got.status, may)
		}
		if !may {
			got.want(http.StatusForbidden, "Only an operator, an auditor or an admin may export changes.")
		}
	}
	r.as("auditor").get("/history/export.csv?status=nonsense").want(http.StatusUnprocessableEntity, "There is no such status.")
}

func TestAnExportOfNothingIsWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	auditor := r.as("auditor")
	if got := strings.Count(auditor.get("/history/export.csv").body, "\r\n"); got != 1 {
		t.Errorf("got %d lines, want the header alone", got)
	}
	if got, want := auditor.get("/history/export.ndjson").body, `{"end":true,"rows":0,"more":false}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// contradict has an operator call an unknown outcome not applied, whose effect is at the target, and then has it looked up.
func (r *rig) contradict(id preview.ID) {
	r.t.Helper()
	r.must(r.ads.AddFault(target.Fault{Match: target.Match{Op: target.OpLookup}, Times: target.Forever, Do: []target.Step{{Action: target.LookupUnavailable}}}))
	said := commit.Resolution{Key: commit.Key{ID: id}, By: cast["oper"], Reason: "nothing in the log", Evidence: "ticket 4713"}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // too early until a late effect is no longer to be expected
		_, err := r.commits.Resolve(r.t.Context(), said)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			r.t.Fatal(err)
		}
	}
	r.ads.ClearFaults()
	c, err := r.commits.Probe(r.t.Context(), cast["oper"], id)
	if err != nil || c.Status != commit.StatusApplied || !c.Executions[0].Contradicted {
		r.t.Fatalf("got %s, %v, want applied, openly contradicted", c.Status, err)
	}
}

// TestIncidentsStandAboveUnknownOutcomes: what was settled one way and proved to be the other is shown to whoever looks at outcomes.
func TestIncidentsStandAboveUnknownOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.unknown(target.PlainJPY(0))
	waits := r.prepare(target.PlainJPY(0), "13000", "Another sale")
	oper := r.as("oper")
	path := "/changes/" + id.String()
	page := oper.get(path).want(http.StatusOK, "Who waits behind it", "1 other open change is of the same target", "13,000 JPY")
	if got, want := page.Find("#behind ~ ul a").AttrOr("href", ""), "/changes/"+waits.String(); got != want {
		t.Errorf("who waits: got %s, want %s", got, want)
	}
	oper.get("/outcomes").want(http.StatusOK, "key of acme "+id.String()).wantNone("#incidents")

	r.contradict(id)
	oper.get("/outcomes").want(http.StatusOK, "Incidents: the evidence contradicts itself", "There is no unknown outcome.").wantOne("#incidents ~ ul a[href='" + path + "']")
	told := oper.get(path).want(http.StatusOK, "Incident: the evidence contradicts itself.", "First: event", "Then: event")
	if got := told.Find(".incident a[href^='#event-']").Length(); got != 2 {
		t.Errorf("the two pieces of evidence: got %d links, want 2", got)
	}
	if got := oper.get("/history?contradicted=1").ids(); !slices.Equal(got, []string{id.String()}) {
		t.Errorf("contradicted: got %v, want %s", got, id)
	}
}

func TestAHeadOfAnExportTakesNothingOut(t *testing.T) {
	t.Parallel()
	var taken atomic.Int32
	r := newRig(t, func(r *rig) { r.deps.Exports = counted{&taken} })
	auditor := r.as("auditor")
	for _, path := range []string{"/history/export.csv", "/history/export.ndjson"} {
		got := auditor.do(http.MethodHead, path, nil).want(http.StatusMethodNotAllowed)
		if allow := got.header.Get("Allow"); allow != http.MethodGet {
			t.Errorf("%s: got Allow %q, want GET", path, allow)
		}
	}
	if got := taken.Load(); got != 0 {
		t.Errorf("exports by HEAD: got %d, want none", got)
	}
	auditor.get("/history/export.csv").want(http.StatusOK)
	if got := taken.Load(); got != 1 {
		t.Errorf("exports by GET: got %d, want 1", got)
	}
}

// An export is on record under the name of whoever takes it, and so is not for another site to cause.
func TestAnotherSitesLinkTakesNothingOut(t *testing.T) {
	t.Parallel()
	var taken atomic.Int32
	r := newRig(t, func(r *rig) { r.deps.Exports = counted{&taken} })
	auditor := r.as("auditor")
	for site, want := range map[string]int32{"cross-site": 0, "same-site": 0, "same-origin": 1, "none": 1, "": 1} {
		for _, path := range []string{"/history/export.csv?status=applied", "/history/export.ndjson?status=applied"} {
			taken.Store(0)
			auditor.headers = http.Header{"Sec-Fetch-Site": {site}}
			got := auditor.get(path).want(http.StatusOK)
			if taken.Load() != want {
				t.Errorf("%q, %s: got %d exports, want %d", site, path, taken.Load(), want)
			}
			if at := got.url.RequestURI(); want == 0 && at != "/history?status=applied" {
				t.Errorf("%q, %s: got to %s, want the search that it would have taken out", site, path, at)
			}
		}
	}
}

// counted counts what is taken out, and hands over nothing.
type counted struct{ taken *atomic.Int32 }

func (c counted) Export(context.Context, actor.Actor, commit.ExportOrder, func(commit.Change) error) (bool, error) {
	c.taken.Add(1)
	return false, nil
}
