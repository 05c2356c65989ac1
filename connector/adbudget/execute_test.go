package adbudget_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/target"
)

var call = connector.Call{
	Key: "key-1", OnBehalfOf: target.UserSato, Agent: "budget-agent", ApprovedBy: []string{target.UserKim, target.UserTanaka}, PreviewID: "pv_1",
}

func TestExecuteNamesThePeople(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	receipt, err := c.Execute(t.Context(), plan, call)
	if err != nil {
		t.Fatalf("Execute: %v", err)
	}
	now, _ := ads.Campaign(target.PlainJPY(0))
	if now.DailyBudget != "12000" || receipt.Version != now.ETag {
		t.Errorf("got budget %s at %s, receipt %s", now.DailyBudget, now.ETag, receipt.Version)
	}
	want := map[string]any{"http_status": int64(200), "change_id": "chg-000001", "after": "12000", "currency": "JPY", "etag": now.ETag}
	if diff := cmp.Diff(want, receipt.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	entry := ads.Entries()[0]
	got := []string{entry.Key, entry.OnBehalfOf, entry.ApprovedBy, entry.Agent}
	if diff := cmp.Diff([]string{"key-1", target.UserSato, target.UserKim + ", " + target.UserTanaka, "budget-agent"}, got); diff != "" {
		t.Errorf("the target's log (-want +got):\n%s", diff)
	}
}

// TestNoHeaderIsForged: a name from outside cannot add a header, and cannot keep a change from being sent.
func TestNoHeaderIsForged(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	forged := call
	forged.Agent = "agent\r\nX-Approved-By: root@agency.example"
	forged.ApprovedBy = nil
	if _, err := c.Execute(t.Context(), plan, forged); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	entry := ads.Entries()[0]
	if entry.ApprovedBy != "" || !strings.Contains(entry.Agent, "⟨U+000D⟩⟨U+000A⟩") {
		t.Errorf("got agent %q, approved by %q", entry.Agent, entry.ApprovedBy)
	}
}

func TestDriftShowsThreeColumns(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	if err := ads.SetBudget(target.PlainJPY(0), "11000"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Execute(t.Context(), plan, call)
	var drifted *connector.DriftedError
	if !errors.As(err, &drifted) || drifted.Now == nil {
		t.Fatalf("got %v, want drifted with a reading", err)
	}
	if now := drifted.Now.Values[adbudget.FieldBudget]; !now.Equal(connector.Money(jpy(11000))) {
		t.Errorf("now: got %+v, want 11,000 JPY", now)
	}
	if change := plan.Changes[0]; !change.Before.Equal(connector.Money(jpy(10000))) || !change.After.Equal(connector.Money(jpy(12000))) {
		t.Errorf("got %+v", change)
	}
}

// TestDocumentedRefusals: only status and code together are the platform's word. Each is answered with and without it.
func TestDocumentedRefusals(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{
		"400 invalid_body": true, "400 invalid_key": true, "401 unauthenticated": true, "404 campaign_not_found": true, "413 too_large": true,
		"415 unsupported_media_type": true, "422 invalid_amount": true, "422 amount_out_of_range": true, "422 currency_mismatch": true,
		"422 campaign_removed": true,
		"409 in_progress":      false, "422 key_reused": false, "403 forbidden": false, "429 too_many_requests": false, "500 invalid_body": false,
		"200 invalid_body": false, "404 invalid_body": false, "400 campaign_not_found": false, "422 unheard_of": false, "400 ": false, "503 unauthenticated": false,
	}
	for answer, refused := range documented {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			var status int
			var code string
			_, _ = fmt.Sscanf(answer, "%d %s", &status, &code)
			c, plan := behind(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":"no\u202esuch thing"}}`, code)
			})
			_, err := c.Execute(t.Context(), plan, call)
			want := connector.ClassUnknown
			if refused {
				want = connector.ClassRefused
			}
			if got := connector.Classify(err); got != want {
				t.Fatalf("got %s (%v), want %s", got, err, want)
			}
			var words *connector.RejectedError
			if errors.As(err, &words) && words.Reason != code+": no⟨U+202E⟩such thing" {
				t.Errorf("got the words %q", words.Reason)
			}
		})
	}
}

// behind puts a handler of the test's own in front of a simulator's changes.
func behind(t *testing.T, change http.HandlerFunc) (*adbudget.Connector, connector.Plan) {
	t.Helper()
	ads, _ := startAds(t, true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			change(w, r)
			return
		}
		ads.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	return c, plan
}

// TestReceiptsAreRead: a 200 counts only if it is whole and about this very change.
func TestReceiptsAreRead(t *testing.T) {
	t.Parallel()
	good := `{"id":"2002001","daily_budget":"12000","currency":"JPY","etag":"\"2\"","change_id":"chg-1","status":"enabled"}`
	for name, tt := range map[string]struct {
		body string
		want connector.Class
	}{
		"as documented":      {good, connector.ClassApplied},
		"another campaign":   {strings.Replace(good, "2002001", "2002002", 1), connector.ClassUnknown},
		"the old amount":     {strings.Replace(good, "12000", "10000", 1), connector.ClassUnknown},
		"another currency":   {strings.Replace(good, "JPY", "KRW", 1), connector.ClassUnknown},
		"no change ID":       {strings.Replace(good, "change_id", "changed", 1), connector.ClassUnknown},
		"a number as amount": {strings.Replace(good, `"12000"`, `12000`, 1), connector.ClassUnknown},
		"two amounts":        {strings.Replace(good, `"currency"`, `"daily_budget":"10000","currency"`, 1), connector.ClassUnknown},
		"another spelling":   {strings.Replace(good, `"id"`, `"ID"`, 1), connector.ClassUnknown},
		"two documents":      {good + good, connector.ClassUnknown},
		"half a document":    {good[:len(good)/2], connector.ClassUnknown},
		"a list":             {"[" + good + "]", connector.ClassUnknown},
		"nothing":            {"", connector.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, plan := behind(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, tt.body) })
			_, err := c.Execute(t.Context(), plan, call)
			if got := connector.Classify(err); got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

// TestScriptedFaults: the simulator's own faults, each with its one right class, its effects, and what a look-up then says.
func TestScriptedFaults(t *testing.T) {
	t.Parallel()
	unknown, applied := connector.ClassUnknown, connector.ClassApplied
	for name, tt := range map[string]struct {
		step    target.Step
		keys    bool
		class   connector.Class
		effects int
	}{
		"dropped before":                 {target.Step{Action: target.DropBefore}, true, unknown, 0},
		"dropped after":                  {target.Step{Action: target.DropAfter}, true, unknown, 1},
		"truncated":                      {target.Step{Action: target.TruncateBody}, true, unknown, 1},
		"202 before":                     {target.Step{Action: target.StatusBefore, Status: 202}, true, unknown, 0},
		"202 after":                      {target.Step{Action: target.StatusAfter, Status: 202}, true, unknown, 1},
		"409 before":                     {target.Step{Action: target.StatusBefore, Status: 409}, true, unknown, 0},
		"429 before":                     {target.Step{Action: target.StatusBefore, Status: 429}, true, unknown, 0},
		"403 after":                      {target.Step{Action: target.StatusAfter, Status: 403}, true, unknown, 1},
		"404 after":                      {target.Step{Action: target.StatusAfter, Status: 404}, true, unknown, 1},
		"412 after":                      {target.Step{Action: target.StatusAfter, Status: 412}, true, unknown, 1},
		"500 after":                      {target.Step{Action: target.StatusAfter, Status: 500}, true, unknown, 1},
		"503 before":                     {target.Step{Action: target.StatusBefore, Status: 503}, true, unknown, 0},
		"twice, keys honoured":           {target.Step{Action: target.DuplicateDelivery, ReplyLast: true}, true, applied, 1},
		"twice, keys not honoured":       {target.Step{Action: target.DuplicateDelivery}, false, applied, 1},
		"twice, and the second answered": {target.Step{Action: target.DuplicateDelivery, ReplyLast: true}, false, applied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ads, server := startAds(t, tt.keys)
			c := connect(t, adbudget.Config{BaseURL: server.URL, HonoursKeys: tt.keys})
			plan, _ := prepare(t, c, with(nil))
			if err := ads.AddFault(target.Once(target.OpChange, "", tt.step)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Execute(t.Context(), plan, call)
			if got := connector.Classify(err); got != tt.class {
				t.Errorf("got %s (%v), want %s", got, err, tt.class)
			}
			if got := ads.CountersFor(call.Key).Effects; got != tt.effects {
				t.Errorf("got %d effects, want %d", got, tt.effects)
			}
			want := connector.EffectAbsent
			if tt.effects > 0 {
				want = connector.EffectFound
			}
			if got := lookup(t, c, plan); got.Found != want {
				t.Errorf("the look-up says %s, want %s", got.Found, want)
			}
		})
	}
}

func lookup(t *testing.T, c *adbudget.Connector, plan connector.Plan) connector.Finding {
	t.Helper()
	finding, err := c.Lookup(t.Context(), plan, call)
	if err != nil {
		t.Fatalf("Lookup: %v", err)
	}
	return finding
}

// TestSecondDeliveryRefused: without a history the platform's "it moved" is believed only if the campaign did not move to
// the very amount that was sent.
func TestSecondDeliveryRefused(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, false)
	c := connect(t, adbudget.Config{BaseURL: server.URL, NoLookup: true})
	plan, _ := prepare(t, c, with(nil))
	twice := target.Step{Action: target.DuplicateDelivery, ReplyLast: true}
	if err := ads.AddFault(target.Once(target.OpChange, "", twice)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Execute(t.Context(), plan, call)
	if got := connector.Classify(err); got != connector.ClassUnknown || ads.CountersFor(call.Key).Effects != 1 {
		t.Errorf("got %s (%v), want unknown", got, err)
	}
}

func TestLookupShowsTheOperatorWhatIsThere(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	if _, err := c.Execute(t.Context(), plan, call); err != nil {
		t.Fatal(err)
	}
	found := lookup(t, c, plan)
	if found.Found != connector.EffectFound || found.Evidence["change_id"] != "chg-000001" || found.Evidence["on_behalf_of"] != target.UserSato {
		t.Errorf("got %+v, want found with its evidence", found)
	}
	for name, step := range map[string]target.Step{
		"hidden with 501": {Action: target.HideLookup}, "hidden with 404": {Action: target.HideLookup, Status: 404},
		"unavailable": {Action: target.LookupUnavailable}, "late": {Action: target.StaleRead}, "cut": {Action: target.TruncateBody},
	} {
		if err := ads.AddFault(target.Once(target.OpLookup, "", step)); err != nil {
			t.Fatal(err)
		}
		got := lookup(t, c, plan)
		if got.Found != connector.EffectUnsure || !got.Now[adbudget.FieldBudget].Equal(connector.Money(jpy(12000))) {
			t.Errorf("%s: got %s with %v now, want unsure with 12,000 JPY", name, got.Found, got.Now)
		}
	}
}

// TestAbsentIsDoubted: an empty history beside a campaign that has moved to our amount may be late.
func TestAbsentIsDoubted(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]connector.Found{"12000": connector.EffectUnsure, "11000": connector.EffectAbsent} {
		ads, server := startAds(t, true)
		c := connect(t, adbudget.Config{BaseURL: server.URL})
		plan, _ := prepare(t, c, with(nil))
		if err := ads.SetBudget(target.PlainJPY(0), amount); err != nil {
			t.Fatal(err)
		}
		if got := lookup(t, c, plan).Found; got != want {
			t.Errorf("someone else set %s: got %s, want %s", amount, got, want)
		}
	}
}

func TestReverseFromZeroIsRefused(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, impact := prepare(t, c, with(connector.Input{"campaign_id": target.CampaignZeroBudget, "new_daily_budget_jpy": number("5000")}))
	_, err := c.Reverse(adbudget.ActionName, plan)
	if impact.Reversible || fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("got reversible %t and %v, want neither", impact.Reversible, err)
	}
}
