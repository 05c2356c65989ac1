package connectortest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/canon"
)

// testPrepare: reading changes nothing, and the same question has the same answer.
func testPrepare(t *testing.T, s Subject) {
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		before := b.State()
		b.readEverything(t)
		wantEqual(t, "the target's state", b.State(), before)
		wantEqual(t, "requests that are no reads", b.link.Sent(), 0)
	})
	t.Run("deterministic", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		given := maps.Clone(b.Input)
		plan, impact := b.prepare(t)
		again, impactAgain := b.prepare(t)
		wantEqual(t, "the plan's canonical form", canonical(t, again), canonical(t, plan))
		wantEqual(t, "the impact's canonical form", canonical(t, impactAgain), canonical(t, impact))
		wantEqual(t, "the input afterwards", b.Input, given)
	})
	t.Run("the plan stands on its own", func(t *testing.T) {
		t.Parallel()
		testPlan(t, s)
	})
	t.Run("no answer is no preview", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		dead := b.At(t, closedAddress(t))
		if _, _, err := dead.Prepare(t.Context(), b.Actor, b.Action, b.Input); err == nil {
			t.Error("Prepare succeeded without a target")
		}
		if _, err := dead.Read(t.Context(), b.plan.Target); err == nil {
			t.Error("Read succeeded without a target")
		}
		if p, err := dead.Authorize(t.Context(), b.Actor, connector.VerbApply, b.plan.Target); err == nil && p.Allowed && !b.PermissionsElsewhere {
			t.Error("Authorize allowed without a target to ask")
		}
	})
}

// readEverything calls each method that must not change anything.
func (b *bench) readEverything(t *testing.T) {
	t.Helper()
	b.prepare(t)
	if _, err := b.conn.Read(t.Context(), b.plan.Target); err != nil {
		t.Errorf("Read: %v", err)
	}
	for _, verb := range []connector.Verb{connector.VerbPrepare, connector.VerbApply} {
		if p, err := b.conn.Authorize(t.Context(), b.Actor, verb, b.plan.Target); err != nil || !p.Allowed {
			t.Errorf("Authorize(%s): got %+v, %v", verb, p, err)
		}
	}
	for tool, input := range b.Finds {
		if page, err := b.conn.Find(t.Context(), b.Actor, tool, input); err != nil || len(page.Items) == 0 {
			t.Errorf("Find(%s): got %d items, %v", tool, len(page.Items), err)
		}
	}
	if _, err := b.conn.Lookup(t.Context(), b.plan, b.call); err != nil && b.able.Lookup {
		t.Errorf("Lookup: %v", err)
	}
}

func testPlan(t *testing.T, s Subject) {
	b := begin(t, s)
	plan, impact := b.prepare(t)
	wantEqual(t, "the plan after the store", canonical(t, b.plan), canonical(t, plan))
	wantEqual(t, "the impact after the store", canonical(t, stored(t, impact)), canonical(t, impact))
	wantEqual(t, "the target's system", plan.Target.System, b.conn.Describe().System)
	if body, err := canon.Canonical(plan.Request.Body, canon.Limits{}); err != nil || !bytes.Equal(body, plan.Request.Body) {
		t.Errorf("the request's body %s is not in canonical form (%v)", plan.Request.Body, err)
	}
	if b.able.Precondition && plan.Request.Precondition == "" {
		t.Error("the target has preconditions and the plan has none")
	}
	if plan.Target.ID == "" || plan.Target.Kind == "" || len(plan.Changes) == 0 || impact.Summary.Key == "" {
		t.Errorf("the plan lacks its target, changes or summary: %+v", plan)
	}
	if said := fmt.Sprint(canonical(t, impact), canonical(t, plan.Target), plan.Version, plan.Request.Path); plan.WithoutText(said) != said {
		t.Errorf("the impact, the target, the version or the path names a value of %v", plan.SensitiveFields())
	}
	reading, err := b.conn.Read(t.Context(), plan.Target)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	wantEqual(t, "the version read", reading.Version, plan.Version)
	wantEqual(t, "the target read", reading.Target.Key(), plan.Target.Key())
	for _, c := range plan.Changes {
		if !reading.Values[c.Field].Equal(c.Before) {
			t.Errorf("field %s reads %+v, the plan says %+v", c.Field, reading.Values[c.Field], c.Before)
		}
		if c.Before.Equal(c.After) {
			t.Errorf("field %s does not change", c.Field)
		}
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	exact, err := canon.FromStruct(v)
	if err != nil {
		t.Fatalf("the value has no exact form: %v", err)
	}
	out, err := canon.Marshal(exact)
	if err != nil {
		t.Fatalf("the value has no canonical form: %v", err)
	}
	return string(out)
}

// testDescribe: names, schemas and texts are complete.
func testDescribe(t *testing.T, s Subject) {
	b := begin(t, s)
	d := b.conn.Describe()
	if _, err := connector.NewRegistry(b.conn); err != nil {
		t.Errorf("the registry refuses it: %v", err)
	}
	texts := map[string]map[string]any{}
	for _, lang := range []string{"en", "ja"} {
		texts[lang] = readTexts(t, d.Texts, lang)
	}
	keys := []string{}
	for _, a := range d.Actions {
		wantClosed(t, a.Name, a.Input)
		keys = append(keys, "action."+a.Name+".title", "action."+a.Name+".preview", "action."+a.Name+".apply")
	}
	for _, f := range d.Finds {
		wantClosed(t, f.Name, f.Input)
		keys = append(keys, "find."+f.Name+".title", "find."+f.Name+".description")
		if _, covered := b.Finds[f.Name]; !covered {
			t.Errorf("the rig has no call of %s", f.Name)
		}
	}
	plan, impact := b.prepare(t)
	for _, c := range plan.Changes {
		keys = append(keys, "field_name."+c.Field)
	}
	if impact.Summary.Key == "" || impact.Reversal.Key == "" {
		t.Error("the impact lacks its summary, or its reversal: how the change is put back, or why it cannot be")
	}
	keys = append(keys, impact.Summary.Key, impact.Reversal.Key)
	for _, f := range impact.Figures {
		keys = append(keys, "figure."+f.Name)
	}
	for _, w := range impact.Warnings {
		keys = append(keys, "warning."+w.Code)
	}
	for lang, have := range texts {
		for _, key := range keys {
			if key != "" && have[key] == nil {
				t.Errorf("%s.json has no %s", lang, key)
			}
		}
	}
	for key := range texts["en"] {
		if texts["ja"][key] == nil {
			t.Errorf("ja.json has no %s", key)
		}
	}
	wantEqual(t, "number of texts", len(texts["ja"]), len(texts["en"]))
}

func readTexts(t *testing.T, texts fs.FS, lang string) map[string]any {
	t.Helper()
	raw, err := fs.ReadFile(texts, lang+".json")
	if err != nil {
		t.Fatalf("texts: %v", err)
	}
	parsed, err := canon.Parse(raw, canon.Limits{})
	if err != nil {
		t.Fatalf("%s.json: %v", lang, err)
	}
	return parsed.(map[string]any)
}

func wantClosed(t *testing.T, name string, schema json.RawMessage) {
	t.Helper()
	var s struct {
		Type                 string `json:"type"`
		AdditionalProperties any    `json:"additionalProperties"`
		Schema               string `json:"$schema"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatalf("the schema of %s: %v", name, err)
	}
	if s.Type != "object" || s.AdditionalProperties != false || s.Schema != "" && !strings.Contains(s.Schema, "2020-12") {
		t.Errorf("the schema of %s is not a closed object of draft 2020-12", name)
	}
}
