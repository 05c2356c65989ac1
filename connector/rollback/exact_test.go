package rollback

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/canon"
)

// TestSchemaLimitsAreTheConnectors: the same forms and numbers in both places.
func TestSchemaLimitsAreTheConnectors(t *testing.T) {
	t.Parallel()
	action, find := schemaProperties(t, "schema/deployment_rollback.json"), schemaProperties(t, "schema/deployments_find.json")
	for name, want := range map[string]string{
		"service": nameForm.String(), "to_deployment_id": idForm.String(), "expect_current_deployment_id": idForm.String(),
	} {
		if got := action[name]["pattern"]; got != want {
			t.Errorf("%s: the schema's pattern is %v, the connector's is %s", name, got, want)
		}
	}
	if got := find["service"]["pattern"]; got != nameForm.String() {
		t.Errorf("service: the find's pattern is %v, the connector's is %s", got, nameForm)
	}
	if got, want := fmt.Sprint(action["reason"]["maxLength"]), strconv.Itoa(mostReason); got != want {
		t.Errorf("reason: maxLength is %s, the connector's is %s", got, want)
	}
	for tool, properties := range map[string]map[string]map[string]any{ActionName: action, FindName: find} {
		if got, want := fmt.Sprint(properties["environment"]["enum"]), fmt.Sprint(environments); got != want {
			t.Errorf("%s: the environments are %s, the connector's are %s", tool, got, want)
		}
	}
}

func schemaProperties(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	raw, err := files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := canon.Parse(raw, canon.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for property, s := range parsed.(map[string]any)["properties"].(map[string]any) {
		out[property] = s.(map[string]any)
		if out[property]["description"] == nil {
			t.Errorf("%s: %s says nothing about itself", name, property)
		}
	}
	return out
}

// TestEveryTextIsThereAndUsed: each key in the code has a text, and each text of our own is in the code.
func TestEveryTextIsThereAndUsed(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`"(rollback\.[a-z_.]+)"`)
	warned := regexp.MustCompile(`add\(.*, "([a-z_]+)", `)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(raw), -1) {
			keys[m[1]] = true
		}
		for _, m := range warned.FindAllStringSubmatch(string(raw), -1) {
			keys["warning."+m[1]] = true
		}
	}
	if !keys["warning.migration_between"] || len(keys) < 20 {
		t.Fatalf("the sources were not understood: %v", keys)
	}
	for _, lang := range []string{"en", "ja"} {
		texts := readTexts(t, lang)
		for key := range keys {
			if texts[key] == nil {
				t.Errorf("%s.json has no %s", lang, key)
			}
		}
		for key := range texts {
			if ours := strings.HasPrefix(key, "rollback.") || strings.HasPrefix(key, "warning."); ours && !keys[key] {
				t.Errorf("%s.json has %s, which nothing uses", lang, key)
			}
		}
	}
}

// TestPlaceholdersAgree: both languages say the same things about a change.
func TestPlaceholdersAgree(t *testing.T) {
	t.Parallel()
	placeholder := regexp.MustCompile(`\{\{\.[a-z_]+\}\}`)
	in := func(text any) []string {
		found := placeholder.FindAllString(text.(string), -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	en, ja := readTexts(t, "en"), readTexts(t, "ja")
	for key, text := range en {
		if got, want := in(ja[key]), in(text); !slices.Equal(got, want) {
			t.Errorf("%s: the placeholders are %v in Japanese and %v in English", key, got, want)
		}
	}
}

func readTexts(t *testing.T, lang string) map[string]any {
	t.Helper()
	raw, err := fs.ReadFile(files, "texts/"+lang+".json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := canon.Parse(raw, canon.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(map[string]any)
}

// TestPlaces: a target's ID has one spelling.
func TestPlaces(t *testing.T) {
	t.Parallel()
	at := place{"checkout-api", "production"}
	if got, ok := placeOf(at.id()); !ok || got != at {
		t.Errorf("got %v, %t, want %v", got, ok, at)
	}
	for _, id := range []string{"", "checkout-api", "/production", "checkout-api/", "checkout-api/production/x", "Checkout-api/production", "../production", "a b/c"} {
		if got, ok := placeOf(id); ok {
			t.Errorf("%q was taken for %v", id, got)
		}
	}
}

// TestListsSayWhatWasCut: a sentence names ten deployments and counts the rest.
func TestListsSayWhatWasCut(t *testing.T) {
	t.Parallel()
	var all []deployment
	for n := range 12 {
		all = append(all, deployment{ID: fmt.Sprint("d", n), Version: fmt.Sprint("v", n), Author: "a"})
	}
	if got, want := named(all[:2]), "v0 (d0, a), v1 (d1, a)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := named(all); !strings.HasSuffix(got, "v9 (d9, a) … (+2)") || strings.Contains(got, "v10") {
		t.Errorf("got %q, want ten and the rest counted", got)
	}
}
