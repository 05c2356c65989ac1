package answer_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func writers(t *testing.T) map[string]answer.Writer {
	t.Helper()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]answer.Writer{"en": {Texts: texts.In("en")}, "ja": {Texts: texts.In("ja")}}
}

func TestGroupsAreNamedInTheReadersWords(t *testing.T) {
	t.Parallel()
	w := writers(t)
	ads := policy.Seats{AnyOf: []string{"ads-approvers"}, Count: 1}
	for name, c := range map[string]struct {
		needs  policy.Requirement
		en, ja string
	}{
		"nobody":  {nil, "", ""},
		"one":     {policy.Requirement{ads}, "one member of ads-approvers", "ads-approvers 1 名"},
		"two":     {policy.Requirement{{AnyOf: []string{"finance", "legal"}, Count: 2}}, "2 members of finance or legal", "finance または legal 2 名"},
		"several": {policy.Requirement{ads, {AnyOf: []string{"legal"}, Count: 2}}, "one member of ads-approvers and 2 members of legal", "ads-approvers 1 名と legal 2 名"},
		"hidden":  {policy.Requirement{{AnyOf: []string{"a\u202eb"}, Count: 1}}, "one member of a⟨U+202E⟩b", "a⟨U+202E⟩b 1 名"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for lang, want := range map[string]string{"en": c.en, "ja": c.ja} {
				if got := w[lang].Groups(c.needs); got != want {
					t.Errorf("%s: got %q, want %q", lang, got, want)
				}
			}
		})
	}
}

func TestWhatAgentsReadNamesThePeople(t *testing.T) {
	t.Parallel()
	needs := policy.Requirement{{AnyOf: []string{"ads-approvers"}, Count: 1}}
	c := commit.Change{Status: commit.StatusPending, Preview: preview.Preview{Action: "budget_change", Ruling: preview.Ruling{Rule: "large-raise", Needs: needs}}}
	why := commit.Why{Change: c, Text: connector.Say("why.pending", connector.Args{"groups": commit.Groups(c.Preview.Ruling), "rule": "large-raise"})}
	w := writers(t)["en"]
	if got, want := w.Of(answer.OpStatus, c, false, nil).Message, "The change waits for approval by one member of ads-approvers. Nothing has been sent."; got != want {
		t.Errorf("the status: got %q, want %q", got, want)
	}
	if got, want := w.Explain(why).Message, "The change waits for one member of ads-approvers (rule large-raise)."; got != want {
		t.Errorf("the explanation: got %q, want %q", got, want)
	}
	if got, want := why.Text.Args["groups"], commit.Groups(c.Preview.Ruling); got != want {
		t.Errorf("the message that was explained: got %q, want it as it was, %q", got, want)
	}
}

func TestDifferencesCarryTheirSign(t *testing.T) {
	t.Parallel()
	w := writers(t)["en"]
	amount := func(minor int64) *money.Amount { return &money.Amount{Minor: minor, Currency: "JPY"} }
	for want, f := range map[string]connector.Figure{
		"+140%":       {Name: "delta_percent", Percent: "140"},
		"-66.67%":     {Name: "delta_percent", Percent: "-66.67"},
		"≈ +100.02%":  {Name: "delta_percent", Percent: "100.02", Rounded: true},
		"30%":         {Name: "share", Percent: "30"},
		"+20,000 JPY": {Name: "daily_delta", Amount: amount(20000)},
		"-1 JPY":      {Name: "daily_delta", Amount: amount(-1)},
		"20,000 JPY":  {Name: "daily_before", Amount: amount(20000)},
		"unknown":     {Name: "delta_percent"},
	} {
		if got := w.Figures(connector.Impact{Figures: []connector.Figure{f}})[0].Shown; got != want {
			t.Errorf("%+v: got %q, want %q", f, got, want)
		}
	}
}

// TestARefusalNamesAStatusInWords: a code of ours is no word of the reader's.
func TestARefusalNamesAStatusInWords(t *testing.T) {
	t.Parallel()
	for _, status := range commit.Statuses() {
		for lang, w := range writers(t) {
			refusal := fault.New(fault.Conflict, fault.Args{"status": string(status)}).WithKey("fault.conflict.decided")
			if got := w.Fault(refusal).Message; strings.Contains(got, "_") || strings.Contains(got, string(status)) && lang == "ja" {
				t.Errorf("%s: %s: got %q, want the status in words", lang, status, got)
			}
		}
	}
	if got, want := writers(t)["ja"].Fault(fault.New(fault.Conflict, fault.Args{"status": "applied"}).WithKey("fault.conflict.decided")).Message, "この変更はすでに適用済みです。"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAmountsAreShownByTheirExponentWithTheirCode: what a currency calls a minor unit decides where the point goes, in either language, in
// a page as in a table that a spreadsheet adds up.
func TestAmountsAreShownByTheirExponentWithTheirCode(t *testing.T) {
	t.Parallel()
	for currency, want := range map[money.Currency]struct{ shown, plain string }{
		"KRW": {"1,234,567 KRW", "1234567"}, "JPY": {"1,234,567 JPY", "1234567"}, "USD": {"12,345.67 USD", "12345.67"},
		"EUR": {"12,345.67 EUR", "12345.67"}, "KWD": {"1,234.567 KWD", "1234.567"},
	} {
		value := connector.Value{Amount: &money.Amount{Minor: 1234567, Currency: currency}}
		for lang, w := range writers(t) {
			if got := w.Value(value); got.Shown != want.shown || got.Amount != want.plain || got.Currency != string(currency) {
				t.Errorf("%s: got %+v, want %s", lang, got, want.shown)
			}
		}
		var b bytes.Buffer
		table := answer.NewTable(&b, answer.CSV, writers(t)["ja"], time.UTC, func(id string) string { return id })
		c := commit.Change{Status: commit.StatusPending, Preview: preview.Preview{Content: preview.Content{Plan: connector.Plan{
			Changes: []connector.Change{{Field: "daily_budget", Before: value, After: value}},
		}}}}
		if err := errors.Join(table.Write(c), table.End(true)); err != nil {
			t.Fatal(err)
		}
		if got, want := b.String(), ",daily_budget,"+want.plain+","+want.plain+","+string(currency)+","; !strings.Contains(got, want) || !strings.Contains(got, "1 件で打ち切りました") {
			t.Errorf("got %s, want it to hold %s and that it was cut", got, want)
		}
	}
}
