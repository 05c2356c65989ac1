package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// The policy of the examples is asked about changes that another one has allowed.
func TestReplayCountsAndListsWhatWouldChange(t *testing.T) {
	t.Parallel()
	rules, err := policy.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	ruled := func(before, after int64) preview.Preview {
		return preview.Preview{
			Action: "budget_change", Ruling: policy.Ruling{Verdict: policy.Allow, Rule: "anything-goes"},
			Content: preview.Content{Plan: connector.Plan{
				Target: connector.Target{System: "ads.example", Kind: "campaign", ID: "1001\u202e"},
				Changes: []connector.Change{{
					Field:  "daily_budget",
					Before: connector.Money(money.Amount{Minor: before, Currency: "KRW"}), After: connector.Money(money.Amount{Minor: after, Currency: "KRW"}),
				}},
			}},
		}
	}
	report := replayReport{Since: "30d"}
	for _, p := range []preview.Preview{ruled(100, 150), ruled(100, 151), ruled(4_000_000, 5_000_001), ruled(100, 90)} {
		report.add(rules, p)
	}
	var out bytes.Buffer
	report.print(&out)
	const want = "pv_00000000000000000000000000  ads.example|campaign|1001⟨U+202E⟩\n" +
		"  - allow by anything-goes\n  + require by large-raise (1 × ads-approvers)\n" +
		"pv_00000000000000000000000000  ads.example|campaign|1001⟨U+202E⟩\n" +
		"  - allow by anything-goes\n  + deny by ceiling\n" +
		"allow   → allow   2\nallow   → require 1\nallow   → deny    1\n" +
		"policy: 2 of 4 previews since 30d would be ruled otherwise\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReplayReadsTimeSpans(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "1d": 24 * time.Hour, "12h": 12 * time.Hour, "90m": 90 * time.Minute,
		"": 0, "d": 0, "0d": 0, "-1d": 0, "1.5d": 0, "-1h": 0, "0h": 0, "30": 0, "99999999d": 0,
	} {
		if got, err := spanOf(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}
