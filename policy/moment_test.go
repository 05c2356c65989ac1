package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cutonce/cutonce/policy"
)

// timed is a policy in Tokyo, with a calendar, whose one rule allows.
func timed(zone, when string) string {
	return "version: 1\nzone: " + zone + "\ncalendars: {year-end: [{from: 2026-12-28, to: 2027-01-03}, {from: 2027-05-01, to: 2027-05-01}]}\n" +
		"default: {require: [{any_of: [default-people]}]}\nrules:\n" + fmt.Sprintf("  - name: the-rule\n    when: %q\n    then: allow\n", when)
}

func TestRulesAboutTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		zone, when, at string
		want           bool
	}{
		{"Asia/Tokyo", `now.hour == 9 && now.time == "09:30" && now.date == "2026-11-30" && now.weekday == "monday"`, "2026-11-30T00:30:00Z", true},
		{"Asia/Tokyo", `now.within("09:00", "18:00")`, "2026-11-30T00:00:00Z", true},
		{"Asia/Tokyo", `now.within("09:00", "18:00")`, "2026-11-29T23:59:59Z", false},
		{"Asia/Tokyo", `now.within("09:00", "18:00")`, "2026-11-30T08:59:59Z", true},
		{"Asia/Tokyo", `now.within("09:00", "18:00")`, "2026-11-30T09:00:00Z", false},
		{"UTC", `now.within("22:00", "06:00")`, "2026-11-30T22:00:00Z", true},
		{"UTC", `now.within("22:00", "06:00")`, "2026-11-30T05:59:00Z", true},
		{"UTC", `now.within("22:00", "06:00")`, "2026-11-30T06:00:00Z", false},
		{"UTC", `now.within("09:00", "09:00")`, "2026-11-30T09:00:00Z", false},
		// The night in which New York's clocks are set forward has no 02:30.
		{"America/New_York", `now.time == "01:59"`, "2027-03-14T06:59:00Z", true},
		{"America/New_York", `now.time == "03:00"`, "2027-03-14T07:00:00Z", true},
		{"Asia/Tokyo", `now.during("year-end")`, "2026-12-27T14:59:59Z", false},
		{"Asia/Tokyo", `now.during("year-end")`, "2026-12-27T15:00:00Z", true},
		{"Asia/Tokyo", `now.during("year-end")`, "2027-01-03T14:59:59Z", true},
		{"Asia/Tokyo", `now.during("year-end")`, "2027-01-03T15:00:00Z", false},
		{"Asia/Tokyo", `now.during("year-end")`, "2027-05-01T03:00:00Z", true},
		{"Asia/Tokyo", `now.weekday in ["saturday", "sunday"]`, "2026-11-28T15:00:00Z", true},
	} {
		at, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		facts := budget("JPY", 100, 110)
		facts.Now = at
		p := parse(t, timed(tc.zone, tc.when))
		if got := p.Evaluate(facts).Verdict == policy.Allow; got != tc.want {
			t.Errorf("%s, %s, %s: got %t, want %t", tc.zone, tc.when, tc.at, got, tc.want)
		}
		if !p.UsesTime() {
			t.Errorf("%s: got a policy without time", tc.when)
		}
	}
}

// TestWithoutAClockRulesAboutTimeFailClosed gives no time at all.
func TestWithoutAClockRulesAboutTimeFailClosed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		when, then string
		want       policy.Verdict
	}{
		{`now.within("00:00", "23:59") || true`, "allow", policy.Allow}, // the rest decides
		{`now.during("year-end")`, "allow", policy.Require},
		{`now.hour < 25`, "allow", policy.Require},
		{`now.during("year-end")`, "deny", policy.Require},
		{`!now.during("year-end")`, "confirm", policy.Require},
	} {
		text := "version: 1\nzone: UTC\ncalendars: {year-end: [{from: 2026-12-28, to: 2027-01-03}]}\n" + with(fmt.Sprintf("  - name: the-rule\n    when: %q\n    then: %s\n", tc.when, tc.then))[len("version: 1\n"):]
		if got := parse(t, text).Evaluate(budget("JPY", 100, 110)).Verdict; got != tc.want {
			t.Errorf("%s then %s: got %s, want %s", tc.when, tc.then, got, tc.want)
		}
	}
	if parse(t, one("true", "allow")).UsesTime() {
		t.Error("a policy that never looks at the time says that it does")
	}
}

func TestTimeIsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"no zone":           {one(`now.hour == 9`, "allow"), "zone: Asia/Tokyo"},
		"no such zone":      {timed("Asia/Tokio", `now.hour == 9`), `"Asia/Tokio"`},
		"the machine's own": {timed("Local", `now.hour == 9`), `"Local"`},
		"no such calendar":  {timed("UTC", `now.during("year_end")`), `"year_end" is none`},
		"a computed name":   {timed("UTC", `now.during(action)`), "is none"},
		"no time of day":    {timed("UTC", `now.within("9:00", "18:00")`), "times of day"},
		"a computed time":   {timed("UTC", `now.within(now.time, "18:00")`), "times of day"},
		"25 o'clock":        {timed("UTC", `now.within("09:00", "25:00")`), "times of day"},
		"now itself":        {timed("UTC", `now == now`), "name a field of now"},
		"no such field":     {timed("UTC", `now.minute == 1`), "undefined field"},
		"a backward span":   {"version: 1\ncalendars: {a: [{from: 2026-12-28, to: 2026-12-27}]}\n" + one("true", "allow")[len("version: 1\n"):], "before"},
		"no day":            {"version: 1\ncalendars: {a: [{from: 2026-02-30, to: 2026-03-01}]}\n" + one("true", "allow")[len("version: 1\n"):], `"2026-02-30"`},
		"no days":           {"version: 1\ncalendars: {a: []}\n" + one("true", "allow")[len("version: 1\n"):], "has no days"},
		"an unknown key":    {"version: 1\ncalendars: {a: [{from: 2026-02-01, until: 2026-03-01}]}\n" + one("true", "allow")[len("version: 1\n"):], `"until"`},
		"a bad risk":        {with("  - name: a\n    when: true\n    then: allow\n    risk: low\n"), "risk is high"},
		"a bad reject":      {with("  - name: a\n    when: true\n    then: {require: [{any_of: [x]}], reject: never}\n"), "veto or abstain"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refused(t, tc.text, tc.want) })
	}
}

func TestConfirmRejectAndRisk(t *testing.T) {
	t.Parallel()
	rule := func(name, then, more string) string {
		return fmt.Sprintf("  - name: %s\n    when: true\n    then: %s\n%s", name, then, more)
	}
	people := "{require: [{any_of: [finance]}]}"
	for _, tc := range []struct {
		name, rules      string
		verdict          policy.Verdict
		rule             string
		confirm, abstain bool
		risk             string
	}{
		{"confirm is stricter than allow", rule("a", "allow", "") + rule("b", "confirm", ""), policy.Require, "b", true, false, ""},
		{"people are stricter than confirm", rule("a", "confirm", "") + rule("b", people, ""), policy.Require, "b", false, false, ""},
		{"deny is stricter than confirm", rule("a", "confirm", "") + rule("b", "deny", ""), policy.Deny, "b", false, false, ""},
		{"a rejection is a veto", rule("a", people, ""), policy.Require, "a", false, false, ""},
		{"unless the rule says otherwise", rule("a", "{require: [{any_of: [finance]}], reject: abstain}", ""), policy.Require, "a", false, true, ""},
		{"and all the others do", rule("a", "{require: [{any_of: [finance]}], reject: abstain}", "") + rule("b", people, ""), policy.Require, "a", false, false, ""},
		{"any rule can raise the risk", rule("a", people, "") + rule("b", "allow", "    risk: high\n"), policy.Require, "a", false, false, policy.RiskHigh},
	} {
		got := parse(t, with(tc.rules)).Evaluate(budget("JPY", 100, 110))
		if got.Verdict != tc.verdict || got.Rule != tc.rule || got.Confirm != tc.confirm || got.Abstain != tc.abstain || got.Risk != tc.risk {
			t.Errorf("%s: got %+v", tc.name, got)
		}
		if got.Confirm && len(got.Needs) > 0 {
			t.Errorf("%s: a confirmation asks for people: %v", tc.name, got.Needs)
		}
	}
}
