package adbudget

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/internal/target"
)

func connected(t *testing.T) (*Connector, *target.Ads) {
	t.Helper()
	ads := target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: "t"}, Seed: 1})
	server := httptest.NewServer(ads)
	t.Cleanup(func() { _ = ads.Close(); server.Close() })
	c, err := New(Config{BaseURL: server.URL, Token: "t", System: "ads.example/agency"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, ads
}

// spellings are the ways in which a client may write an amount of cents, those with doubles included.
func spellings(cents int) []string {
	whole, rest := cents/100, cents%100
	return []string{
		fmt.Sprintf("%d.%02d", whole, rest),
		strconv.FormatFloat(float64(cents)/100, 'f', -1, 64),
		fmt.Sprintf("%de-2", cents),
	}
}

// TestEveryCent: from 0.01 to 100.00 dollars, each cent goes from the caller's text into the request, to the target and
// back into the next read without a difference in minor units.
func TestEveryCent(t *testing.T) {
	t.Parallel()
	c, ads := connected(t)
	now, err := c.platform.campaign(t.Context(), target.CampaignDollars)
	if err != nil {
		t.Fatal(err)
	}
	for cents := 1; cents <= 100_00; cents++ {
		written := fmt.Sprintf("%d.%02d", cents/100, cents%100)
		plan := planFor(t, c, now, cents)
		if got, want := string(plan.Request.Body), `{"currency":"USD","daily_budget":"`+written+`"}`; got != want {
			t.Fatalf("%d cents: got the body %s, want %s", cents, got, want)
		}
		receipt, err := c.Execute(t.Context(), plan, connector.Call{Key: fmt.Sprintf("cent-%d", cents)})
		if err != nil {
			t.Fatalf("%d cents: %v", cents, err)
		}
		if got, _ := ads.Campaign(now.ID); got.DailyBudget != written {
			t.Fatalf("%d cents: the target has %s", cents, got.DailyBudget)
		}
		now.ETag = receipt.Version
		if cents%10 != 0 {
			continue
		}
		reading, err := c.Read(t.Context(), plan.Target)
		if err != nil || reading.Values[FieldBudget].Amount.Minor != int64(cents) {
			t.Fatalf("%d cents: read back as %+v, %v", cents, reading.Values[FieldBudget].Amount, err)
		}
	}
}

// planFor reads each spelling of an amount and wants one and the same plan.
func planFor(t *testing.T, c *Connector, now campaign, cents int) connector.Plan {
	t.Helper()
	var plan connector.Plan
	for _, text := range spellings(cents) {
		want, err := readAsk(connector.Input{
			"campaign_id": now.ID, "new_daily_budget_usd": json.Number(text), "expect_campaign_name": now.Name, "reason": "r",
		})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want.budget != (money.Amount{Minor: int64(cents), Currency: "USD"}) {
			t.Fatalf("%s: got %v", text, want.budget)
		}
		if plan, err = c.plan(now, want.budget); err != nil {
			t.Fatal(err)
		}
	}
	return plan
}

// TestNoDecimalsAreInvented: 5,000 yen and won stay 5,000 at the target.
func TestNoDecimalsAreInvented(t *testing.T) {
	t.Parallel()
	c, ads := connected(t)
	for id, field := range map[string]string{target.PlainJPY(1): "new_daily_budget_jpy", target.PlainKRW(1): "new_daily_budget_krw"} {
		for i, text := range []string{"5000", "5e3", "5001", "1"} {
			now, err := c.platform.campaign(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			want, err := readAsk(connector.Input{"campaign_id": id, field: json.Number(text), "reason": "r"})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := c.plan(now, want.budget)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Execute(t.Context(), plan, connector.Call{Key: id + "-" + strconv.Itoa(i)}); err != nil {
				t.Fatal(err)
			}
			plain, err := canon.Marshal(json.Number(text))
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := ads.Campaign(id); got.DailyBudget != string(plain) {
				t.Errorf("%s %s: the target has %s", field, text, got.DailyBudget)
			}
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		delta, base int64
		text        string
		rounded     bool
		signed      string
	}{
		{6000, 10000, "60", false, "+60"},
		{-10000, 10000, "-100", false, "-100"},
		{1, 8, "12.5", false, "+12.5"},
		{1, 3, "33.33", true, "≈ +33.33"},
		{2, 3, "66.67", true, "≈ +66.67"},
		{-2, 3, "-66.67", true, "≈ -66.67"},
		{1, 80000, "0", true, "≈ +0"},
		{1, 20000, "0.01", true, "≈ +0.01"},
		{0, 5, "0", false, "0"},
		{1_000_000_000, 1, "100000000000", false, "+100000000000"},
		{1<<62 - 1, 1 << 62, "100", true, "≈ +100"},
	} {
		text, rounded := percentOf(tt.delta, tt.base)
		if text != tt.text || rounded != tt.rounded || signed(tt.delta, tt.base) != tt.signed {
			t.Errorf("%d of %d: got %s (rounded %t), %q; want %s (%t), %q",
				tt.delta, tt.base, text, rounded, signed(tt.delta, tt.base), tt.text, tt.rounded, tt.signed)
		}
	}
}

func TestMonthly(t *testing.T) {
	t.Parallel()
	for minor, want := range map[int64]string{20000: "608000", 33333: "~1013323", 1: "~30", 5: "152", 100_000_000: "3040000000"} {
		month, rounded := monthly(money.Amount{Minor: minor, Currency: "JPY"})
		got := month.Decimal()
		if rounded {
			got = "~" + got
		}
		if got != want {
			t.Errorf("%d a day: got %s, want %s", minor, got, want)
		}
	}
	if month, _ := monthly(money.Amount{Minor: 1 << 62, Currency: "JPY"}); month != nil {
		t.Errorf("what does not fit: got %v, want none", month)
	}
}

// TestSchemaLimitsAreTheConnectors: the same numbers in both places.
func TestSchemaLimitsAreTheConnectors(t *testing.T) {
	t.Parallel()
	schema := schemaProperties(t, "schema/budget_change.json")
	for _, f := range budgetFields {
		for bound, minor := range map[string]int64{"minimum": 1, "maximum": f.most} {
			text := fmt.Sprint(schema[f.name][bound])
			got, err := money.Parse(text, f.currency)
			if err != nil || got.Minor != minor {
				t.Errorf("%s: %s is %s (%v), the connector's is %d minor units", f.name, bound, text, err, minor)
			}
		}
	}
	for name, most := range map[string]int{"expect_campaign_name": mostName, "reason": mostReason} {
		if got := fmt.Sprint(schema[name]["maxLength"]); got != strconv.Itoa(most) {
			t.Errorf("%s: maxLength is %s, the connector's is %d", name, got, most)
		}
	}
}

func schemaProperties(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	raw, err := files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := canon.Parse(raw, canon.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for property, s := range parsed.(map[string]any)["properties"].(map[string]any) {
		out[property] = s.(map[string]any)
		if out[property]["description"] == nil {
			t.Errorf("%s: %s says nothing about itself", name, property)
		}
	}
	return out
}

// TestEveryTextIsThereAndUsed: each key in the code has a text, and each text of our own is in the code.
func TestEveryTextIsThereAndUsed(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`"(adbudget\.[a-z_.]+)"`)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(raw), -1) {
			keys[m[1]] = true
		}
	}
	for _, lang := range []string{"en", "ja"} {
		texts := readTexts(t, lang)
		for key := range keys {
			if texts[key] == nil {
				t.Errorf("%s.json has no %s", lang, key)
			}
		}
		for key := range texts {
			if strings.HasPrefix(key, "adbudget.") && !keys[key] {
				t.Errorf("%s.json has %s, which nothing uses", lang, key)
			}
		}
	}
}

// TestPlaceholdersAgree: both languages say the same things about a change.
func TestPlaceholdersAgree(t *testing.T) {
	t.Parallel()
	placeholder := regexp.MustCompile(`\{\{\.[a-z_]+\}\}`)
	en, ja := readTexts(t, "en"), readTexts(t, "ja")
	for key, text := range en {
		in := map[string]bool{}
		for _, p := range placeholder.FindAllString(text.(string), -1) {
			in[p] = true
		}
		for _, p := range placeholder.FindAllString(ja[key].(string), -1) {
			if !in[p] {
				t.Errorf("%s: %s is in ja.json alone", key, p)
			}
			delete(in, p)
		}
		if len(in) > 0 {
			t.Errorf("%s: %v is in en.json alone", key, in)
		}
	}
}

func readTexts(t *testing.T, lang string) map[string]any {
	t.Helper()
	raw, err := fs.ReadFile(files, "texts/"+lang+".json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := canon.Parse(raw, canon.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(map[string]any)
}
