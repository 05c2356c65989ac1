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
	"sync"
	"sync/atomic"

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
	// heard remembers what preferences came to: clients send the same few all the time.
	heard      sync.Map // of string to *Texts
	remembered atomic.Int32
}

// mostHeard bounds how many preferences are remembered, and longestHeard how long each may be: callers choose them.
const (
	mostHeard    = 256
	longestHeard = 64
)

// Texts is the catalogue in one language.
type Texts struct {
	Lang  string
	loc   *i18n.Localizer
	plain plain
}

// New merges the product's texts with those of the connectors. Each extra must hold en.json and ja.json.
func New(extra ...fs.FS) (*Catalog, error) {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	c := &Catalog{texts: map[string]*Texts{}, matcher: language.NewMatcher([]language.Tag{language.English, language.Japanese})}
	for _, lang := range Languages {
		c.texts[lang] = &Texts{Lang: lang, plain: plain{}}
	}
	for _, source := range append([]fs.FS{files}, extra...) {
		for _, lang := range Languages {
			data, err := fs.ReadFile(source, lang+".json")
			if err != nil {
				return nil, fmt.Errorf("reading the %s texts: %w", lang, err)
			}
			if _, err := bundle.ParseMessageFileBytes(data, lang+".json"); err != nil {
				return nil, fmt.Errorf("parsing the %s texts: %w", lang, err)
			}
			if err := c.texts[lang].plain.add(data); err != nil {
				return nil, fmt.Errorf("parsing the %s texts: %w", lang, err)
			}
		}
	}
	for _, lang := range Languages {
		c.texts[lang].loc = i18n.NewLocalizer(bundle, lang)
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
		if texts := c.hear(p); texts != nil {
			return texts
		}
	}
	return c.texts[Languages[0]]
}

// hear is what one preference comes to, nil if we speak none of it.
func (c *Catalog) hear(preference string) *Texts {
	if texts, ok := c.heard.Load(preference); ok {
		return texts.(*Texts)
	}
	texts := c.match(preference)
	if len(preference) <= longestHeard && c.remembered.Add(1) <= mostHeard {
		c.heard.Store(preference, texts)
	}
	return texts
}

func (c *Catalog) match(preference string) *Texts {
	tags, _, err := language.ParseAcceptLanguage(preference)
	if err != nil || len(tags) == 0 {
		return nil
	}
	if _, index, confidence := c.matcher.Match(tags...); confidence > language.No {
		return c.texts[Languages[index]]
	}
	return nil
}

// T renders a text. Placeholders are {{.name}}; an argument that knows how to write itself in a language (money) does so.
func (t *Texts) T(key string, args map[string]any) string {
	if segments, ok := t.plain[key]; ok {
		if text := t.plain.write(t.Lang, segments, args); text != "" {
			return text
		}
		return key
	}
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
