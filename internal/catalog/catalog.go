// Package catalog holds every text that a person or an agent reads, in Japanese and English.
//
// The files en.json and ja.json are go-i18n message files; a connector brings its own beside its code and they are merged
// at start. A missing key is a defect that a test finds; at run time the key itself is shown rather than nothing.
// Start at New and Catalog.In.
package catalog

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed *.json
var files embed.FS

// Languages that the product speaks, the first being the fallback.
var Languages = []string{"en", "ja"}

// Catalog is the merged set of texts. It is safe for concurrent use after New.
type Catalog struct {
	texts   map[string]*Texts
	matcher language.Matcher
}

// Texts is the catalogue in one language.
type Texts struct {
	Lang string
	loc  *i18n.Localizer
}

// New merges the product's texts with those of the connectors. Each extra must hold en.json and ja.json.
func New(extra ...fs.FS) (*Catalog, error) {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	for _, source := range append([]fs.FS{files}, extra...) {
		for _, lang := range Languages {
			data, err := fs.ReadFile(source, lang+".json")
			if err != nil {
				return nil, fmt.Errorf("reading the %s texts: %w", lang, err)
			}
			if _, err := bundle.ParseMessageFileBytes(data, lang+".json"); err != nil {
				return nil, fmt.Errorf("parsing the %s texts: %w", lang, err)
			}
		}
	}
	c := &Catalog{texts: map[string]*Texts{}, matcher: language.NewMatcher([]language.Tag{language.English, language.Japanese})}
	for _, lang := range Languages {
		c.texts[lang] = &Texts{Lang: lang, loc: i18n.NewLocalizer(bundle, lang)}
	}
	return c, nil
}

// In returns the texts for the first preference that the product speaks. A preference is a language tag or a whole
// Accept-Language header; empty ones are passed over.
func (c *Catalog) In(preferences ...string) *Texts {
	for _, p := range preferences {
		if p == "" {
			continue
		}
		tags, _, err := language.ParseAcceptLanguage(p)
		if err != nil || len(tags) == 0 {
			continue
		}
		if _, index, confidence := c.matcher.Match(tags...); confidence > language.No {
			return c.texts[Languages[index]]
		}
	}
	return c.texts[Languages[0]]
}

// T renders a text. Placeholders are {{.name}}; an argument that knows how to write itself in a language (money) does so.
func (t *Texts) T(key string, args map[string]any) string {
	text, err := t.loc.Localize(&i18n.LocalizeConfig{MessageID: key, TemplateData: t.localized(args), PluralCount: args["n"]})
	if err != nil || text == "" {
		return key
	}
	return text
}

// Formatter is an argument that writes itself in a language.
type Formatter interface{ Format(lang string) string }

func (t *Texts) localized(args map[string]any) map[string]any {
	out := make(map[string]any, len(args))
	for name, value := range args {
		if f, ok := value.(Formatter); ok {
			value = f.Format(t.Lang)
		}
		out[name] = value
	}
	return out
}
