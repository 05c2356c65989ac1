package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/visible"
)

// functions are what templates may call. A template only asks for texts and for ways of showing; it computes nothing.
func functions(in tongue, texts *catalog.Texts, a assets) template.FuncMap {
	return template.FuncMap{
		"t":      func(key string, args ...any) (string, error) { return say(texts, key, args) },
		"lead":   func(key string) string { return lead(texts.T(key, nil)) },
		"word":   func(family, name string) string { return word(texts, family, name) },
		"link":   in.link,
		"chosen": in.choice,
		"asset":  a.url,
		"iso":    func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"exact":  func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") },
		"marks":  visible.Marks,
		"stamp":  func(at time.Time) string { return stampIn(at, in.zone) },
		"zoned":  in.zoneChoice,
		"lines":  visibleLines,
		"json":   visibleJSON,
		"who":    func(id string) string { return actorName(texts, id) },
	}
}

// say is a text with its arguments, names and values in turn. What comes from outside has its hidden characters made visible.
func say(texts *catalog.Texts, key string, args []any) (string, error) {
	if len(args)%2 != 0 {
		return "", fmt.Errorf("%s: arguments come in pairs", key)
	}
	named := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		name, ok := args[i].(string)
		if !ok {
			return "", fmt.Errorf("%s: argument %d is no name", key, i)
		}
		named[name] = args[i+1]
		if text, ok := args[i+1].(string); ok {
			named[name] = visible.Text(text)
		}
	}
	return texts.T(key, named), nil
}

// lead is a text that stands before another one. A space parts the two, unless the text ends with a wide colon or stop, which has one in it.
func lead(text string) string {
	if strings.HasSuffix(text, "：") || strings.HasSuffix(text, "。") {
		return text
	}
	return text + " "
}

// word is a name of the services in the reader's language, or the bare name where the catalogue does not know it (an event
// kind of a later build, say).
func word(texts *catalog.Texts, family, name string) string {
	if name == "" {
		name = "none"
	}
	if text := texts.T(family+name, nil); text != family+name {
		return text
	}
	return visible.Text(name)
}

// link carries a chosen language, and a chosen time zone, along.
func (in tongue) link(path string) string {
	if in.chosen {
		path = withQuery(path, "lang", in.lang)
	}
	if in.zoned {
		path = withQuery(path, "zone", in.zone.String())
	}
	return path
}

// zoneChoice is the time zone to carry along, empty if none was chosen.
func (in tongue) zoneChoice() string {
	if in.zoned {
		return in.zone.String()
	}
	return ""
}

// choice is the language to carry along, empty if none was chosen.
func (in tongue) choice() string {
	if in.chosen {
		return in.lang
	}
	return ""
}

func withQuery(path, name, value string) string {
	u, err := url.Parse(path)
	if err != nil {
		return "/"
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// visibleLines shows outside text of several lines: the lines stay, everything else hidden becomes visible.
func visibleLines(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	out := strings.Split(text, "\n")
	for i, line := range out {
		out[i] = visible.Text(line)
	}
	return strings.Join(out, "\n")
}

func visibleJSON(value any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return visibleLines(strings.TrimSpace(b.String())), nil
}

// actorName turns an audit event's actor ("agent:ISSUER#bot/for:sato") into words. The event's own page keeps the whole.
func actorName(texts *catalog.Texts, id string) string {
	_, rest, _ := strings.Cut(id, ":")
	if id == "service:cutonce" {
		return texts.T("web.actor.service", nil)
	}
	if _, subject, ok := strings.Cut(rest, "#"); ok {
		rest = subject
	}
	name, behind, delegated := strings.Cut(rest, "/for:")
	if delegated {
		return texts.T("web.actor.for", map[string]any{"name": visible.Text(name), "for": visible.Text(behind)})
	}
	return visible.Text(name)
}
