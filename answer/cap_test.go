package answer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// What a cap has refused says its limit, what is used and held, what was asked and when it begins anew: in a sentence of both
// languages, and in data.
func TestARefusalByACapSaysItsNumbers(t *testing.T) {
	t.Parallel()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	yen := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "JPY"} }
	e := &preview.Exceeded{
		Cap: "daily_raise", Per: "tenant", Window: "day", Limit: yen(1000), Used: yen(400), Held: yen(500), Unknown: yen(150), Asked: yen(200),
		ResetsAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.FixedZone("JST", 9*60*60)),
	}
	denied := commit.Change{Status: commit.StatusDenied, Preview: preview.Preview{
		Action: "budget_change", State: preview.Denied, Ruling: e.Ruling(policy.Ruling{Verdict: policy.Allow}),
	}}
	for _, lang := range []string{"en", "ja"} {
		w := answer.Writer{Texts: texts.In(lang)}
		for name, body := range map[string]answer.Body{
			"a prepare": w.Of(answer.OpPrepare, denied, false, nil), "an apply": w.Of(answer.OpApply, denied, false, nil),
			"a status": w.Of(answer.OpStatus, denied, false, nil), "a vote": w.Fault(preview.NoRoom(e)),
		} {
			for _, want := range []string{"daily_raise", "1,000 JPY", "400 JPY", "350 JPY", "150 JPY", "200 JPY", "2026-12-01T00:00:00+09:00"} {
				if !strings.Contains(body.Message, want) {
					t.Errorf("%s in %s: got %q, want it to say %s", name, lang, body.Message, want)
				}
			}
			if name == "a status" {
				continue
			}
			raw, err := json.Marshal(body.Data)
			if err != nil {
				t.Fatal(err)
			}
			const want = `"limit":{"amount":"1000","currency":"JPY"}`
			if body.Code != "exposure_exceeded" || !strings.Contains(string(raw), want) || !strings.Contains(string(raw), `"resets_at":"2026-12-01T00:00:00+09:00"`) {
				t.Errorf("%s in %s: got %s, %s, want exposure_exceeded with %s", name, lang, body.Code, raw, want)
			}
		}
	}
}

// What an approver is shown of a cap: what is left, what is taken by which state, and what others wait for.
func TestAnOpenChangeShowsWhatItsCapsComeTo(t *testing.T) {
	t.Parallel()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	yen := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "JPY"} }
	e := preview.Exposure{
		Cap: "daily_raise", Per: "tenant", Window: "day", Limit: yen(1000), Applied: yen(400), Reserved: yen(120), Unknown: yen(80), Pending: yen(250), Asked: yen(400),
	}
	for _, lang := range []string{"en", "ja"} {
		w := answer.Writer{Texts: texts.In(lang)}
		got := w.Exposures([]preview.Exposure{e})[0]
		if got.Left.Amount != "400" || !got.Fits || got.Pending.Amount != "250" || got.Unknown.Currency != "JPY" {
			t.Errorf("%s: got %+v, want 400 left, which fits", lang, got)
		}
		for _, want := range []string{"daily_raise", got.Left.Shown, got.Limit.Shown, got.Applied.Shown, got.Reserved.Shown, got.Unknown.Shown, got.Pending.Shown} {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: got %q, want it to say %s", lang, got.Message, want)
			}
		}
	}
	e.Asked = yen(401)
	if got := (answer.Writer{Texts: texts.In("en")}).Exposures([]preview.Exposure{e})[0]; got.Fits {
		t.Errorf("got %+v, want no room for 401", got)
	}
}
