package adbudget_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
	"github.com/cutonce/cutonce/internal/target"
)

func number(s string) json.Number { return json.Number(s) }

// with is a good input for the plain JPY campaign with members replaced; a nil value removes one.
func with(changes connector.Input) connector.Input {
	in := connector.Input{
		"campaign_id": target.PlainJPY(0), "new_daily_budget_jpy": number("12000"), "reason": "more demand in autumn",
	}
	maps.Copy(in, changes)
	maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	return in
}

// usd is a good input for the dollar campaign, with this amount.
func usd(amount any) connector.Input {
	return with(connector.Input{
		"campaign_id": target.CampaignDollarsPaused, "new_daily_budget_jpy": nil, "new_daily_budget_usd": amount,
	})
}

type refusedInput struct {
	in    connector.Input
	code  fault.Code
	path  string
	field string
}

func badInputs() map[string]refusedInput {
	jpy, krw, dollars := "/new_daily_budget_jpy", "/new_daily_budget_krw", "/new_daily_budget_usd"
	amount := func(v any) connector.Input { return with(connector.Input{"new_daily_budget_jpy": v}) }
	number_, input := fault.InvalidNumber, fault.InvalidInput
	return map[string]refusedInput{
		"a raise in percent":        {amount("+20%"), number_, jpy, "adbudget.field.relative"},
		"a full-width percent":      {amount("20％"), number_, jpy, "adbudget.field.relative"},
		"a difference":              {amount("+2000"), number_, jpy, "adbudget.field.relative"},
		"a factor":                  {amount("x2"), number_, jpy, "adbudget.field.relative"},
		"a factor in Japanese":      {amount("2倍"), number_, jpy, "adbudget.field.relative"},
		"a word":                    {amount("double"), number_, jpy, "adbudget.field.number_in_quotes"},
		"a number in quotes":        {amount("12000"), number_, jpy, "adbudget.field.number_in_quotes"},
		"a grouped number":          {amount("12,000"), number_, jpy, "adbudget.field.number_in_quotes"},
		"a sign and a number":       {amount("¥12000"), number_, jpy, "adbudget.field.number_in_quotes"},
		"null":                      {connector.Input{"campaign_id": target.PlainJPY(0), "new_daily_budget_jpy": nil, "reason": "r"}, number_, jpy, "adbudget.field.not_a_number"},
		"true":                      {amount(true), number_, jpy, "adbudget.field.not_a_number"},
		"an object":                 {amount(map[string]any{"amount": "1"}), number_, jpy, "adbudget.field.not_a_number"},
		"a float":                   {amount(12000.0), number_, jpy, "adbudget.field.not_a_number"},
		"zero":                      {amount(number("0")), number_, jpy, "adbudget.field.above_zero"},
		"minus zero":                {amount(number("-0")), number_, jpy, "adbudget.field.above_zero"},
		"negative":                  {amount(number("-5000")), number_, jpy, "adbudget.field.above_zero"},
		"decimals in yen":           {amount(number("5000.5")), number_, jpy, "adbudget.field.whole_units"},
		"over the limit in yen":     {amount(number("100000001")), number_, jpy, "adbudget.field.at_most"},
		"2^53-1":                    {amount(number("9007199254740991")), number_, jpy, "adbudget.field.at_most"},
		"2^53+1":                    {amount(number("9007199254740993")), number_, jpy, "adbudget.field.unusable"},
		"1e400":                     {amount(number("1e400")), number_, jpy, "adbudget.field.unusable"},
		"1e999999999":               {amount(number("1e999999999")), number_, jpy, "adbudget.field.unusable"},
		"NaN":                       {amount(number("NaN")), number_, jpy, "adbudget.field.unusable"},
		"hexadecimal":               {amount(number("0x10")), number_, jpy, "adbudget.field.unusable"},
		"three decimals in dollars": {usd(number("19.999")), number_, dollars, "adbudget.field.two_decimals"},
		"a computed double":         {usd(number("0.30000000000000004")), number_, dollars, "adbudget.field.two_decimals"},
		"dollars in quotes":         {usd("19.99"), number_, dollars, "adbudget.field.number_in_quotes"},
		"no dollars":                {usd(number("0.00")), number_, dollars, "adbudget.field.above_zero"},
		"over the limit in dollars": {usd(number("1000000.01")), number_, dollars, "adbudget.field.at_most"},
		"over the limit in won": {with(connector.Input{"campaign_id": target.PlainKRW(0), "new_daily_budget_jpy": nil,
			"new_daily_budget_krw": number("1000000001")}), number_, krw, "adbudget.field.at_most"},

		"no amount":            {with(connector.Input{"new_daily_budget_jpy": nil}), input, "", "adbudget.field.no_budget"},
		"two amounts":          {with(connector.Input{"new_daily_budget_usd": number("1")}), input, jpy, "adbudget.field.one_budget_only"},
		"no campaign":          {with(connector.Input{"campaign_id": nil}), input, "/campaign_id", "adbudget.field.campaign_id"},
		"an ID as a number":    {with(connector.Input{"campaign_id": number("2002001")}), input, "/campaign_id", "adbudget.field.campaign_id"},
		"a path in the ID":     {with(connector.Input{"campaign_id": "2002001/../2002002"}), input, "/campaign_id", "adbudget.field.campaign_id"},
		"full-width digits":    {with(connector.Input{"campaign_id": "２００２００１"}), input, "/campaign_id", "adbudget.field.campaign_id"},
		"too long an ID":       {with(connector.Input{"campaign_id": strings.Repeat("1", 21)}), input, "/campaign_id", "adbudget.field.campaign_id"},
		"no reason":            {with(connector.Input{"reason": nil}), input, "/reason", "adbudget.field.reason"},
		"a blank reason":       {with(connector.Input{"reason": " \n\t　"}), input, "/reason", "adbudget.field.reason"},
		"a novel of a reason":  {with(connector.Input{"reason": strings.Repeat("な", 501)}), input, "/reason", "adbudget.field.reason"},
		"an empty name":        {with(connector.Input{"expect_campaign_name": ""}), input, "/expect_campaign_name", "adbudget.field.expect_name"},
		"a name that is none":  {with(connector.Input{"expect_campaign_name": true}), input, "/expect_campaign_name", "adbudget.field.expect_name"},
		"the value it has":     {amount(number("10000")), input, jpy, "adbudget.field.no_change"},
		"the value, spelt new": {amount(number("1e4")), input, jpy, "adbudget.field.no_change"},
		"a removed campaign": {with(connector.Input{"campaign_id": target.CampaignRemoved}), input,
			"/campaign_id", "adbudget.field.campaign_removed"},
		"an unknown campaign": {with(connector.Input{"campaign_id": "9999999"}), fault.NotFound,
			"/campaign_id", "adbudget.field.unknown_campaign"},
		"won for a yen campaign": {with(connector.Input{"new_daily_budget_jpy": nil, "new_daily_budget_krw": number("12000")}),
			fault.CurrencyMismatch, krw, "adbudget.field.currency"},
		"yen for a dollar campaign": {with(connector.Input{"campaign_id": target.CampaignDollarsPaused}),
			fault.CurrencyMismatch, jpy, "adbudget.field.currency"},
		"a near name": {with(connector.Input{"expect_campaign_name": "北海道メロン予約販売 "}), fault.ExpectMismatch,
			"/expect_campaign_name", "adbudget.field.expect_mismatch"},
		"the neighbour's name": {with(connector.Input{"campaign_id": target.CampaignAutumnRetargeting, "expect_campaign_name": "秋の特価_検索"}),
			fault.ExpectMismatch, "/campaign_id", "adbudget.field.expect_other_id"},
		"no name where one is needed": {with(connector.Input{"campaign_id": target.CampaignAutumnSearch}), input,
			"/expect_campaign_name", "adbudget.field.name_needed"},
	}
}

// TestBadInputs: each is refused with the place and the way out, in both languages, and nothing reaches the target.
func TestBadInputs(t *testing.T) {
	t.Parallel()
	ads, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	texts, err := catalog.New(c.Describe().Texts)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range badInputs() {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, tt.in)
			var f *fault.Fault
			if !errors.As(err, &f) {
				t.Fatalf("got %v, want a fault", err)
			}
			if f.Code != tt.code || f.Retryable {
				t.Errorf("got %s (retryable %t), want %s", f.Code, f.Retryable, tt.code)
			}
			if len(f.Fields) == 0 || f.Fields[0].Path != tt.path || f.Fields[0].Key != tt.field {
				t.Errorf("got fields %+v, want %s at %s", f.Fields, tt.field, tt.path)
			}
			for _, lang := range catalog.Languages {
				wantText(t, texts.In(lang), f.Key, f.Args)
				for _, field := range f.Fields {
					wantText(t, texts.In(lang), field.Key, field.Args)
				}
			}
		})
	}
	if got := ads.Counters().Total; got.Received != 0 {
		t.Errorf("the target received %d changes", got.Received)
	}
}

func wantText(t *testing.T, texts *catalog.Texts, key string, args map[string]any) {
	t.Helper()
	got := texts.T(key, args)
	if got == key || strings.Contains(got, "<no value>") || strings.Contains(got, "{{") {
		t.Errorf("%s in %s reads %q", key, texts.Lang, got)
	}
}

func TestWrongCurrencyNamesTheRightField(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	in := with(connector.Input{"new_daily_budget_jpy": nil, "new_daily_budget_usd": number("100.00")})
	_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, in)
	f := fault.From(err)
	if f.Code != fault.CurrencyMismatch || f.Args["field"] != "new_daily_budget_jpy" || f.Args["currency"] != "JPY" {
		t.Errorf("got %s %v, want currency_mismatch naming new_daily_budget_jpy", f.Code, f.Args)
	}
}

// TestAllComplaintsAtOnce: an agent should not have to find its mistakes one by one.
func TestAllComplaintsAtOnce(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	in := connector.Input{"campaign_id": "x", "new_daily_budget_jpy": "12000", "new_daily_budget_krw": number("1")}
	_, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, in)
	paths := []string{}
	for _, f := range fault.From(err).Fields {
		paths = append(paths, f.Path)
	}
	want := "/campaign_id /new_daily_budget_krw /new_daily_budget_jpy /reason"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("got complaints at %s, want %s", got, want)
	}
}

// TestSchemaAgrees: what the schema lets through in the way of shape and range is what the connector lets through.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	schema, err := intake.Compile("budget_change", c.Describe().Actions[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	// These only the service can see: they depend on the campaign, or on fields together.
	service := map[string]bool{
		"no amount": true, "two amounts": true, "the value it has": true, "the value, spelt new": true, "a removed campaign": true,
		"an unknown campaign": true, "won for a yen campaign": true, "yen for a dollar campaign": true, "a near name": true,
		"the neighbour's name": true, "no name where one is needed": true, "a blank reason": true,
		"three decimals in dollars": true, "a computed double": true,
	}
	for name, tt := range badInputs() {
		if tt.in["new_daily_budget_jpy"] == 12000.0 || name == "NaN" || name == "hexadecimal" || strings.HasPrefix(name, "1e") {
			continue // no reader of JSON gives the schema such a value
		}
		err := schema.Check(map[string]any(tt.in))
		if got := err == nil; got != service[name] {
			t.Errorf("%s: the schema accepts: %t, want %t (%v)", name, got, service[name], err)
		}
	}
	for name, in := range map[string]connector.Input{
		"least yen": with(connector.Input{"new_daily_budget_jpy": number("1")}), "most yen": with(connector.Input{"new_daily_budget_jpy": number("100000000")}),
		"least dollars": usd(number("0.01")), "most dollars": usd(number("1000000")), "one decimal": usd(number("19.9")),
	} {
		if err := schema.Check(map[string]any(in)); err != nil {
			t.Errorf("%s: the schema refuses: %v", name, err)
		}
		if _, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, in); err != nil {
			t.Errorf("%s: the connector refuses: %v", name, err)
		}
	}
	unknown := with(connector.Input{"daily_budget": number("1")})
	if err := schema.Check(map[string]any(unknown)); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("an unknown member: got %v, want invalid_input", err)
	}
}
