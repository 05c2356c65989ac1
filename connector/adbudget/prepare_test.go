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
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/internal/target"
)

func prepare(t *testing.T, c *adbudget.Connector, in connector.Input) (connector.Plan, connector.Impact) {
	t.Helper()
	plan, impact, err := c.Prepare(t.Context(), sato, adbudget.ActionName, in)
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	return plan, impact
}

func TestPlanIsTheExactRequest(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL + "/"})
	plan, _ := prepare(t, c, with(connector.Input{"expect_campaign_name": "北海道メロン予約販売"}))
	now, _ := ads.Campaign(target.PlainJPY(0))
	want := connector.Plan{
		Target:  connector.Target{System: "ads.example/agency", Kind: "campaign", ID: now.ID, Name: "北海道メロン予約販売"},
		Version: now.ETag,
		Request: connector.Request{
			Method: "PATCH", Path: "/v1/campaigns/" + now.ID, Precondition: now.ETag,
			Body: []byte(`{"currency":"JPY","daily_budget":"12000"}`),
		},
		Changes: []connector.Change{{
			Field: "daily_budget", Before: connector.Money(jpy(10000)), After: connector.Money(jpy(12000)),
		}},
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func jpy(n int64) money.Amount { return money.Amount{Minor: n, Currency: "JPY"} }

// figuresOf writes an impact's figures as a reader sees them.
func figuresOf(i connector.Impact) map[string]string {
	out := map[string]string{}
	for _, f := range i.Figures {
		text := "unknown"
		switch {
		case f.Amount != nil:
			text = f.Amount.String()
		case f.Percent != "":
			text = f.Percent + "%"
		case f.Count != nil:
			text = fmt.Sprint(*f.Count)
		}
		if f.Rounded {
			text = "~" + text
		}
		out[f.Name] = text
	}
	return out
}

func codesOf(i connector.Impact) []string {
	codes := []string{}
	for _, w := range i.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestImpact(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	tests := map[string]struct {
		in         connector.Input
		figures    map[string]string
		warnings   []string
		summary    string
		reversible bool
	}{
		"a raise": {
			with(connector.Input{"new_daily_budget_jpy": number("16000")}),
			map[string]string{
				"daily_before": "10,000 JPY", "daily_after": "16,000 JPY", "daily_delta": "6,000 JPY", "delta_percent": "60%",
				"projected_monthly_before": "304,000 JPY", "projected_monthly_after": "486,400 JPY", "projected_monthly_delta": "182,400 JPY",
				"lookalikes": "0",
			}, []string{}, "Raise the daily budget of “北海道メロン予約販売” (2002001) from 10,000 JPY to 16,000 JPY (+60%).", true,
		},
		"a cut that rounds": {
			with(connector.Input{"new_daily_budget_jpy": number("3333")}),
			map[string]string{
				"daily_before": "10,000 JPY", "daily_after": "3,333 JPY", "daily_delta": "-6,667 JPY", "delta_percent": "-66.67%",
				"projected_monthly_before": "304,000 JPY", "projected_monthly_after": "~101,323 JPY", "projected_monthly_delta": "~-202,677 JPY",
				"lookalikes": "0",
			}, []string{}, "Lower the daily budget of “北海道メロン予約販売” (2002001) from 10,000 JPY to 3,333 JPY (-66.67%).", true,
		},
		"from zero": {
			with(connector.Input{"campaign_id": target.CampaignZeroBudget, "new_daily_budget_jpy": number("5000")}),
			map[string]string{
				"daily_before": "0 JPY", "daily_after": "5,000 JPY", "daily_delta": "5,000 JPY", "delta_percent": "unknown",
				"projected_monthly_before": "0 JPY", "projected_monthly_after": "152,000 JPY", "projected_monthly_delta": "152,000 JPY",
				"lookalikes": "0",
			}, []string{"from_zero"}, "Set the daily budget of “休眠顧客の掘り起こし” (2001010) from 0 JPY to 5,000 JPY.", false,
		},
		"paused, in dollars, more than double": {
			usd(number("90.01")),
			map[string]string{
				"daily_before": "45.00 USD", "daily_after": "90.01 USD", "daily_delta": "45.01 USD", "delta_percent": "~100.02%",
				"projected_monthly_before": "1,368.00 USD", "projected_monthly_after": "~2,736.30 USD", "projected_monthly_delta": "~1,368.30 USD",
				"lookalikes": "0",
			}, []string{"paused_campaign", "large_raise"},
			"Raise the daily budget of “Cherry Blossom Preorders” (3001011) from 45.00 USD to 90.01 USD (≈ +100.02%).", true,
		},
		"with a look-alike": {
			with(connector.Input{"campaign_id": target.CampaignAutumnSearch, "expect_campaign_name": "秋の特価_検索", "new_daily_budget_jpy": number("30000")}),
			map[string]string{
				"daily_before": "20,000 JPY", "daily_after": "30,000 JPY", "daily_delta": "10,000 JPY", "delta_percent": "50%",
				"projected_monthly_before": "608,000 JPY", "projected_monthly_after": "912,000 JPY", "projected_monthly_delta": "304,000 JPY",
				"lookalikes": "1",
			}, []string{"lookalike"}, "Raise the daily budget of “秋の特価_検索” (2001001) from 20,000 JPY to 30,000 JPY (+50%).", true,
		},
	}
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, impact := prepare(t, c, tt.in)
			if diff := cmp.Diff(tt.figures, figuresOf(impact)); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, codesOf(impact)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got := texts.In("en").T(impact.Summary.Key, impact.Summary.Args); got != tt.summary {
				t.Errorf("summary: got %q, want %q", got, tt.summary)
			}
			if impact.Reversible != tt.reversible {
				t.Errorf("reversible: got %t, want %t", impact.Reversible, tt.reversible)
			}
			for _, lang := range catalog.Languages {
				wantText(t, texts.In(lang), impact.Summary.Key, impact.Summary.Args)
				wantText(t, texts.In(lang), impact.Reversal.Key, impact.Reversal.Args)
				for _, w := range impact.Warnings {
					wantText(t, texts.In(lang), "warning."+w.Code, w.Args)
				}
			}
		})
	}
}

// TestLookalikes: which pairs need the name, and that the name in full is enough.
func TestLookalikes(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	pairs := [][2]string{
		{target.CampaignAutumnSearch, target.CampaignAutumnRetargeting},
		{target.CampaignNewLife, target.CampaignNewLifeWide},
		{target.CampaignSneakers, target.CampaignSneakersConfusing},
		{target.CampaignKoreanAutumnSearch, target.CampaignKoreanAutumnRetargeting},
		{target.CampaignKoreanGifts, target.CampaignKoreanGiftsNew},
		{target.CampaignDollars, target.CampaignDollarsRetargeting},
	}
	for _, p := range pairs {
		for i, id := range p {
			one, _ := ads.Campaign(id)
			other, _ := ads.Campaign(p[1-i])
			in := connector.Input{"campaign_id": id, "reason": "r", fieldOf(one.Currency): number("777")}
			_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, in)
			f := fault.From(err)
			if f.Code != fault.InvalidInput || f.Key != "adbudget.name_needed" || !strings.Contains(fmt.Sprint(f.Fields[0].Args), other.Name) {
				t.Errorf("%s without its name: got %v, want a question naming %s", one.Name, err, other.Name)
			}
			in["expect_campaign_name"] = other.Name
			if _, _, err = c.Prepare(t.Context(), sato, adbudget.ActionName, in); fault.CodeOf(err) != fault.ExpectMismatch {
				t.Errorf("%s under the name %s: got %v, want expect_mismatch", one.Name, other.Name, err)
			}
			in["expect_campaign_name"] = one.Name
			_, impact := prepare(t, c, in)
			if got := codesOf(impact); !cmp.Equal(got[0], "lookalike") {
				t.Errorf("%s: got warnings %v, want lookalike first", one.Name, got)
			}
		}
	}
}

func fieldOf(currency string) string { return "new_daily_budget_" + strings.ToLower(currency) }

// TestOnlyLiveLookalikesCount: a removed neighbour cannot be hit by mistake.
func TestOnlyLiveLookalikesCount(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	_, impact := prepare(t, c, with(connector.Input{"campaign_id": target.CampaignMothersDay, "new_daily_budget_jpy": number("26000")}))
	if got := codesOf(impact); len(got) != 0 {
		t.Errorf("got warnings %v, want none", got)
	}
}

// TestTooManyToCompare: where not all names were compared, the preview says so and the name is required.
func TestTooManyToCompare(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	for i := range 100 {
		added := target.Campaign{
			ID: fmt.Sprintf("99%05d", i), AccountID: "acc-jp-01", Name: fmt.Sprintf("filler %c%c", 'a'+i/10, 'k'+i%10), Owner: target.UserKim,
			Status: target.StatusEnabled, Currency: "JPY", DailyBudget: "1000",
		}
		if err := ads.Add(added); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, adbudget.Config{BaseURL: server.URL, CompareUpTo: 100})
	_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, with(nil))
	if f := fault.From(err); f.Key != "adbudget.name_needed" || f.Fields[0].Key != "adbudget.field.name_needed_unchecked" {
		t.Errorf("got %v, want a question for the name", err)
	}
	_, impact := prepare(t, c, with(connector.Input{"expect_campaign_name": "北海道メロン予約販売"}))
	if got := codesOf(impact); len(got) != 1 || got[0] != "lookalikes_unchecked" || figuresOf(impact)["lookalikes"] != "unknown" {
		t.Errorf("got warnings %v and %s look-alikes, want lookalikes_unchecked and unknown", got, figuresOf(impact)["lookalikes"])
	}
	all := connect(t, adbudget.Config{BaseURL: server.URL})
	if _, impact = prepare(t, all, with(nil)); len(impact.Warnings) != 0 {
		t.Errorf("with room for all: got warnings %v", codesOf(impact))
	}
}

// TestNamesStayAsTheyAre: hidden characters are warned of, and never cleaned out of the data.
func TestNamesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	name := "北海道\u202eメロン\u200b予約販売"
	if _, err := ads.Edit(target.PlainJPY(0), target.CampaignEdit{Name: name}); err != nil {
		t.Fatal(err)
	}
	plan, impact := prepare(t, c, with(nil))
	if plan.Target.Name != name || impact.Summary.Args["campaign"] != name {
		t.Errorf("got the name %q, want it untouched", plan.Target.Name)
	}
	if got := codesOf(impact); len(got) != 1 || got[0] != "confusable_name" {
		t.Errorf("got warnings %v, want confusable_name", got)
	}
}

// TestCanonicalID: two spellings of one ID meet at one target, the one that the platform returned.
func TestCanonicalID(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := `{"id":"123","name":"n","status":"enabled","owner":"o","currency":"JPY","daily_budget":"5","etag":"\"1\""}`
		if strings.HasSuffix(r.URL.Path, "/campaigns") {
			one = `{"campaigns":[` + one + `],"total":1}`
		}
		if strings.HasSuffix(r.URL.Path, "/999") {
			one = strings.Replace(one, `"123"`, `"124"`, 1)
		}
		_, _ = fmt.Fprint(w, one)
	}))
	t.Cleanup(server.Close)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plain, _ := prepare(t, c, with(connector.Input{"campaign_id": "123"}))
	padded, _ := prepare(t, c, with(connector.Input{"campaign_id": "0123"}))
	if plain.Target.Key() != padded.Target.Key() || padded.Request.Path != "/v1/campaigns/123" {
		t.Errorf("got targets %s and %s, path %s", plain.Target.Key(), padded.Target.Key(), padded.Request.Path)
	}
	_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, with(connector.Input{"campaign_id": "999"}))
	if fault.CodeOf(err) != fault.TargetUnavailable {
		t.Errorf("an answer about another campaign: got %v, want target_unavailable", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	page, err := c.Find(t.Context(), sato, adbudget.FindName, connector.Input{"query": "秋の特価"})
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	if page.Total != 2 || len(page.Items) != 2 || page.NextCursor != "" || len(page.Warnings) != 1 {
		t.Fatalf("got %+v, want both campaigns and one warning", page)
	}
	want := map[string]any{"name": "秋の特価_検索", "id": "2001001", "daily_budget": "20000", "currency": "JPY", "status": "enabled"}
	got := page.Items[0]
	delete(got, "owner")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range catalog.Languages {
		wantText(t, texts.In(lang), page.Warnings[0].Key, page.Warnings[0].Args)
	}
}

func TestFindPages(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	seen := map[string]bool{}
	in := connector.Input{}
	for {
		page, err := c.Find(t.Context(), sato, adbudget.FindName, in)
		if err != nil {
			t.Fatalf("Find: %v", err)
		}
		if page.Total != len(ads.Campaigns()) {
			t.Fatalf("got total %d, want %d", page.Total, len(ads.Campaigns()))
		}
		for _, item := range page.Items {
			seen[item["id"].(string)] = true
		}
		if page.NextCursor == "" {
			break
		}
		in["cursor"] = page.NextCursor
	}
	if len(seen) != len(ads.Campaigns()) {
		t.Errorf("got %d campaigns over all pages, want %d", len(seen), len(ads.Campaigns()))
	}
	in["status"] = "paused" // a cursor of another search
	_, err := c.Find(t.Context(), sato, adbudget.FindName, in)
	if f := fault.From(err); f.Code != fault.InvalidInput || f.Fields[0].Path != "/cursor" {
		t.Errorf("a foreign cursor: got %v, want invalid_input at /cursor", err)
	}
}

// TestAuthorize: the platform's own permissions decide, at prepare and at apply, for the human and not for the agent.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	plan, _ := prepare(t, c, with(nil))
	ask := func(who actor.Actor) connector.Permission {
		t.Helper()
		p, err := c.Authorize(t.Context(), who, connector.VerbApply, plan.Target)
		if err != nil {
			t.Fatalf("Authorize: %v", err)
		}
		return p
	}
	guest := sato
	guest.For = target.UserGuest
	nobody := actor.Actor{Tenant: "t1", Kind: actor.Agent, Issuer: "i", Subject: target.UserSato}
	stranger := actor.Actor{Tenant: "t1", Kind: actor.Human, Issuer: "i", Subject: "stranger@agency.example"}
	for name, tt := range map[string]struct {
		who  actor.Actor
		want connector.Permission
	}{
		"a person who may, through an agent":       {sato, connector.Permission{Allowed: true, Reason: "granted"}},
		"a person who may only read":               {guest, connector.Permission{Reason: "not_granted"}},
		"a person whom the platform does not know": {stranger, connector.Permission{Reason: "unknown_user"}},
		"an agent called like a person":            {nobody, connector.Permission{Reason: "no_human_known"}},
	} {
		if got := ask(tt.who); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
	ads.SetPermission(target.Permission{User: target.UserSato, Verb: "write", Resource: plan.Target.ID})
	if got := ask(sato); got.Allowed || got.Reason != "withdrawn" {
		t.Errorf("after the permission was withdrawn: got %+v", got)
	}
	if err := ads.AddFault(target.Once(target.OpPermission, "", target.Step{Action: target.StatusBefore, Status: 503})); err != nil {
		t.Fatal(err)
	}
	p, err := c.Authorize(t.Context(), sato, connector.VerbApply, plan.Target)
	if err == nil || p.Allowed {
		t.Errorf("no answer: got %+v, %v, want an error", p, err)
	}
}

// TestReadFailures: what the platform does not answer is unavailable and may be asked again; nothing of ours was sent.
func TestReadFailures(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	for _, step := range []target.Step{
		{Action: target.StatusBefore, Status: 429, RetryAfterS: 7}, {Action: target.StatusBefore, Status: 500}, {Action: target.StatusBefore, Status: 404},
		{Action: target.StatusBefore, Status: 200}, {Action: target.TruncateBody}, {Action: target.DropBefore},
	} {
		for _, op := range []target.Op{target.OpRead, target.OpFind} {
			times := 1
			if step.Action == target.DropBefore {
				times = 2 // net/http may ask once more by itself
			}
			if err := ads.AddFault(target.Fault{Match: target.Match{Op: op}, Times: times, Do: []target.Step{step}}); err != nil {
				t.Fatal(err)
			}
			_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, with(nil))
			ads.ClearFaults()
			var f *fault.Fault
			if !errors.As(err, &f) || f.Code != fault.TargetUnavailable || !f.Retryable {
				t.Errorf("%s %d on %s: got %v, want a retryable target_unavailable", step.Action, step.Status, op, err)
			} else if got := f.RetryAfter.Seconds(); got != float64(step.RetryAfterS) {
				t.Errorf("%s %d on %s: retry after %vs, want %ds", step.Action, step.Status, op, got, step.RetryAfterS)
			}
		}
	}
	wrong := connect(t, adbudget.Config{BaseURL: server.URL, Token: "wrong"})
	if _, _, err := wrong.Prepare(t.Context(), sato, adbudget.ActionName, with(nil)); fault.CodeOf(err) != fault.TargetUnavailable {
		t.Errorf("a wrong credential: got %v, want target_unavailable", err)
	} else if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error %q holds the credential", err)
	}
}
