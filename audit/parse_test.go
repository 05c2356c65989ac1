package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
)

// A line says each thing once, under its exact name, or it is not read at all.
func TestALineSaysEachThingOnce(t *testing.T) {
	t.Parallel()
	good := file(t, chain(2))
	event := slices.IndexFunc(good, func(l string) bool { return strings.Contains(l, `"record":"event"`) })
	for name, tc := range map[string]struct{ from, to, want string }{
		"untouched":         {"", "", ""},
		"white space":       {`{"record"`, ` { "record"`, ""},
		"two bodies":        {`"body":`, `"body_hex":"7b7d","body":`, "two bodies"},
		"a body twice":      {`"body":`, `"body":"{}","body":`, "duplicate_key"},
		"another case":      {`"body":`, `"BODY":"{}","body":`, `no "BODY"`},
		"an escaped twin":   {`"body":`, `"\u0062ody":"{}","body":`, "duplicate_key"},
		"an unknown member": {`"body":`, `"note":"approved by all","body":`, `no "note"`},
		"another record's":  {`"body":`, `"signature":"00","body":`, `no "signature"`},
		"a null":            {`"kind":`, `"body_hex":null,"kind":`, "null"},
		"two lines in one":  {`{"record"`, `{"record":"end","lines":1}{"record"`, "trailing_data"},
		"no object":         {`{"record"`, `["record"]{"record"`, "trailing_data"},
		"no number":         {`"at_us":`, `"at_us":"1","lines_us":`, `no "lines_us"`},
		"broken text":       {`"kind":"`, "\"kind\":\"\xff", "invalid_utf8"},
	} {
		lines := slices.Clone(good)
		lines[event] = strings.Replace(lines[event], tc.from, tc.to, 1)
		report, err := verifyLines(t, lines)
		switch {
		case tc.want == "" && (err != nil || !report.OK()):
			t.Errorf("%s: got %v, %v, want nothing wrong", name, report.Findings, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), fmt.Sprintf("line %d", event+1))):
			t.Errorf("%s: got %v, want line %d with %q", name, err, event+1, tc.want)
		}
	}
}

func TestAnExportFromTheFuture(t *testing.T) {
	t.Parallel()
	lines := strings.Join(file(t, chain(2)), "\n") // made at 10 microseconds past 1970
	key := testKey(t, "one")
	for now, want := range map[time.Time]bool{{}: true, time.UnixMicro(10): true, time.UnixMicro(10).Add(-2 * time.Hour): false} {
		v := audit.Verifier{Keys: audit.Keys{key.ID(): key.Public()}, Name: hexName, Now: now}
		report, err := v.Verify(strings.NewReader(lines))
		if err != nil || report.OK() != want {
			t.Errorf("at %v: got %v, %v, want it accepted: %v", now, report.Findings, err, want)
		}
	}
}
