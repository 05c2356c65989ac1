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
		Cap: "daily_raise", Per: "tenant", Window: "day", Limit: yen(1000), Used: yen(400), Held: yen(500), Asked: yen(200),
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
			for _, want := range []string{"daily_raise", "1,000 JPY", "400 JPY", "500 JPY", "200 JPY", "2026-12-01T00:00:00+09:00"} {
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
