package archtest

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/fault"
)

func texts(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	var mixed map[string]any
	if err := json.Unmarshal(raw, &mixed); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out := map[string]string{}
	for key, value := range mixed {
		switch v := value.(type) {
		case string:
			out[key] = v
		case map[string]any:
			for _, form := range v {
				out[key] += form.(string)
			}
		}
	}
	return out
}

// catalogues are the folders that hold an en.json and a ja.json.
func catalogues(t *testing.T) []string {
	t.Helper()
	var dirs []string
	walk(t, func(path string) {
		if filepath.Base(path) == "en.json" {
			dirs = append(dirs, filepath.Dir(path))
		}
	})
	if len(dirs) < 2 {
		t.Fatalf("got %d catalogues, want the product's and the connectors'", len(dirs))
	}
	return dirs
}

var placeholder = regexp.MustCompile(`\{\{\s*\.([a-z_]+)\s*\}\}`)

func TestBothLanguagesSayTheSame(t *testing.T) {
	t.Parallel()
	for _, dir := range catalogues(t) {
		en, ja := texts(t, dir+"/en.json"), texts(t, dir+"/ja.json")
		for key := range en {
			if _, ok := ja[key]; !ok {
				t.Errorf("%s: %s has no Japanese text", dir, key)
			}
		}
		for key, text := range ja {
			if en[key] == "" {
				t.Errorf("%s: %s has no English text", dir, key)
				continue
			}
			if got, want := placeholders(text), placeholders(en[key]); !slices.Equal(got, want) {
				t.Errorf("%s: %s has the placeholders %v in Japanese and %v in English", dir, key, got, want)
			}
		}
	}
}

// TestPluralsAreWhole: a text that counts has each form that its language asks for, and every form the same names; only the form for
// one thing may leave out the number.
func TestPluralsAreWhole(t *testing.T) {
	t.Parallel()
	counted := 0
	for _, dir := range catalogues(t) {
		for lang, want := range map[string][]string{"en": {"one", "other"}, "ja": {"other"}} {
			raw, err := os.ReadFile(filepath.Join(root, dir, lang+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var mixed map[string]any
			if err := json.Unmarshal(raw, &mixed); err != nil {
				t.Fatal(err)
			}
			for key, value := range mixed {
				forms, ok := value.(map[string]any)
				if !ok {
					continue
				}
				counted++
				if got := slices.Sorted(maps.Keys(forms)); !slices.Equal(got, want) {
					t.Errorf("%s/%s.json: %s has the forms %v, want %v", dir, lang, key, got, want)
					continue
				}
				all := placeholders(forms["other"].(string))
				if !slices.Contains(all, "n") {
					t.Errorf("%s/%s.json: %s counts nothing", dir, lang, key)
				}
				if one, ok := forms["one"].(string); ok && !slices.Equal(without(placeholders(one), "n"), without(all, "n")) {
					t.Errorf("%s/%s.json: %s names %v for one thing and %v for several", dir, lang, key, placeholders(one), all)
				}
			}
		}
	}
	if counted < 10 {
		t.Errorf("got %d texts that count: are they found at all?", counted)
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(one string) bool { return one == name })
}

func placeholders(text string) []string {
	names := map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		// A rule's own words are given in both languages: text_en and text_ja are one placeholder.
		names[strings.TrimSuffix(strings.TrimSuffix(m[1], "_en"), "_ja")] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func TestEveryCodeHasItsSentence(t *testing.T) {
	t.Parallel()
	en := texts(t, "internal/catalog/en.json")
	for code := range fault.Codes() {
		if en["fault."+string(code)] == "" {
			t.Errorf("the code %s has no sentence", code)
		}
	}
}

// keyLike are the literals in our code that name a text.
var keyLike = regexp.MustCompile(`^(fault|field|status|why|warning|figure|web|tool|action|find|bridge)\.[a-z0-9_.]+[a-z0-9_]$`)

func TestEveryKeyInTheCodeExists(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	for _, dir := range catalogues(t) {
		maps.Copy(all, texts(t, dir+"/en.json"))
	}
	sources(t, func(path string, set *token.FileSet, file *ast.File) {
		if strings.HasPrefix(path, "internal/target") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err == nil && keyLike.MatchString(text) && all[text] == "" {
				t.Errorf("%s: the text %s does not exist", set.Position(lit.Pos()), text)
			}
			return true
		})
	})
}
