package connector_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/money"
)

func secretive() connector.Plan {
	return connector.Plan{Changes: []connector.Change{
		{Field: "state", Before: connector.Text("off"), After: connector.Text("on")},
		{Field: "contact", Before: connector.Text(""), After: connector.Text("pay@agency.example"), Sensitive: true},
		{Field: "salary", Before: connector.Money(money.Amount{Minor: 12345, Currency: "USD"}), Sensitive: true},
	}}
}

// A field that is not sensitive is written as it was before there were such: what was approved then has the same digest now.
func TestOnlyASensitiveFieldIsWrittenOtherwise(t *testing.T) {
	t.Parallel()
	exact, err := canon.FromStruct(secretive())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := canon.Marshal(exact)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"after":{"text":"on"},"before":{"text":"off"},"field":"state"}`,
		`{"after":{"text":"pay@agency.example"},"before":{"text":""},"field":"contact","sensitive":true}`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("got %s, want %s in it", raw, want)
		}
	}
}

func TestWhatATargetSaysIsHeardWithoutSensitiveValues(t *testing.T) {
	t.Parallel()
	p := secretive()
	if diff := cmp.Diff([]string{"contact", "salary"}, p.SensitiveFields()); diff != "" {
		t.Error(diff)
	}
	got := p.Without(map[string]any{
		"said": "mailed pay@agency.example", "state": "on", "list": []string{"pay@agency.example", "other"},
		"nested": map[string]any{"paid": json.Number("123.45"), "count": 2}, "to pay@agency.example": true, "empty": "",
	})
	want := map[string]any{"said": connector.Mask, "state": "on", "empty": "", "list": []any{connector.Mask, "other"}, connector.Mask: true}
	nested, _ := got["nested"].(map[string]any)
	if delete(got, "nested"); nested["paid"] != any(connector.Mask) || nested["count"] == any(connector.Mask) {
		t.Errorf("got %v, want the amount masked and the count kept", nested)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.WithoutText("pay@agency.example is unknown"); got != connector.Mask {
		t.Errorf("got %q, want the mask", got)
	}
	if got := p.WithoutText("the contact is unknown"); got != "the contact is unknown" {
		t.Errorf("got %q, want it as it was", got)
	}
	plain := map[string]any{"said": "anything"}
	if diff := cmp.Diff(plain, (connector.Plan{}).Without(plain)); diff != "" {
		t.Error(diff)
	}
}
