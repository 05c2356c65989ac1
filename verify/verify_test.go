package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func testConfig() Config {
	return Config{Now: func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }}
}

func TestHowACheckEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		run    func() (Proof, error)
		want   Status
		reason string
	}{
		"shown":           {func() (Proof, error) { return Proof{"a", "b"}, nil }, Pass, ""},
		"does not hold":   {func() (Proof, error) { return Proof{}, fail("got %d, want 1", 2) }, Fail, "got 2, want 1"},
		"not shown":       {func() (Proof, error) { return Proof{}, notApplicable("no %s", "keys") }, NotApplicable, "no keys"},
		"another error":   {func() (Proof, error) { return Proof{}, errors.New("connection reset") }, Fail, "unexpected: connection reset"},
		"a wrapped end":   {func() (Proof, error) { return Proof{}, errors.Join(fail("worse")) }, Fail, "worse"},
		"a broken check":  {func() (Proof, error) { panic("index out of range") }, Fail, "the check panicked: index out of range"},
		"a refused error": {func() (Proof, error) { return Proof{}, context.DeadlineExceeded }, Fail, "unexpected: context deadline exceeded"},
	} {
		got := one(t.Context(), testConfig(), nil, Check{ID: "x", Run: func(context.Context, *bench) (Proof, error) { return tt.run() }})
		if got.Status != tt.want || got.Reason != tt.reason {
			t.Errorf("%s: got %s (%q), want %s (%q)", name, got.Status, got.Reason, tt.want, tt.reason)
		}
	}
}

// What could not be shown is neither a pass nor a failure.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ends []Status
		want int
	}{
		"all pass": {[]Status{Pass, Pass}, 0}, "one fails": {[]Status{Pass, Fail, NotApplicable}, 1},
		"some not shown": {[]Status{NotApplicable, Pass}, 0}, "nothing shown": {[]Status{NotApplicable, NotApplicable}, 3}, "nothing run": {nil, 3},
	} {
		var r Report
		for _, s := range tt.ends {
			r.Results = append(r.Results, Result{Status: s})
		}
		if got := r.Code(); got != tt.want {
			t.Errorf("%s: got exit code %d, want %d", name, got, tt.want)
		}
	}
}

func TestChecksAreNamedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range Checks() {
		if seen[c.ID] || c.ID == "" || c.Promise == "" || c.Run == nil {
			t.Errorf("the check %q is named twice, or lacks its promise", c.ID)
		}
		seen[c.ID] = true
	}
	if _, err := Pick([]string{"claim-guard", "nope"}); err == nil || !strings.Contains(err.Error(), "target-lock") {
		t.Errorf("got %v for an unknown check, want the known ones listed", err)
	}
	if got, err := Pick([]string{"unknown", "claim-guard"}); err != nil || len(got) != 2 || got[0].ID != "claim-guard" {
		t.Errorf("got %d checks (%v), want two in their order", len(got), err)
	}
}

func TestWithinASchema(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p@h:5432/d?sslmode=disable": "postgres://u:p@h:5432/d?search_path=s%2Cpg_catalog&sslmode=disable",
		"postgresql://u@h/d?search_path=other":    "postgresql://u@h/d?search_path=s%2Cpg_catalog",
		"host=h dbname=d":                         "host=h dbname=d search_path='s,pg_catalog'",
	} {
		if got, err := within(address, "s,pg_catalog"); err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", address, got, err, want)
		}
	}
	if _, err := within("nonsense", "s"); err == nil {
		t.Error("an unreadable address was accepted")
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	r := Report{Results: []Result{{ID: "a", Status: Pass}, {ID: "b", Status: Fail, Reason: `got "<2>"`}, {ID: "c", Status: NotApplicable, Reason: "no keys"}}}
	if err := r.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`tests="3" failures="1" skipped="1"`, `<failure message="got &#34;&lt;2&gt;&#34;">`, `<skipped message="no keys">`, `name="a"`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %s: %s", want, b.String())
		}
	}
}
