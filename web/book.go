package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/template/parse"
	"time"

	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/visible"
)

// tongue is the language of a page, and whether it was chosen and must be carried in the links.
type tongue struct {
	lang   string
	chosen bool
}

// book is every page in one tongue.
type book struct {
	texts *catalog.Texts
	pages map[string]*template.Template
}

// openBooks parses everything once, and shows each page with nothing on it, so that a page that cannot be shown stops the
// start rather than a reader.
func openBooks(c *catalog.Catalog, a assets) (map[tongue]*book, error) {
	books := map[tongue]*book{}
	if err := checkFiles(); err != nil {
		return nil, err
	}
	for _, lang := range catalog.Languages {
		for _, chosen := range []bool{false, true} {
			in := tongue{lang, chosen}
			b, err := openBook(in, c.In(lang), a)
			if err != nil {
				return nil, err
			}
			books[in] = b
		}
	}
	return books, nil
}

func openBook(in tongue, texts *catalog.Texts, a assets) (*book, error) {
	b := &book{texts: texts, pages: map[string]*template.Template{}}
	for name, spec := range pages {
		page, err := template.New("layout").Funcs(functions(in, texts, a)).ParseFS(files, sources(name, spec)...)
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		page = page.Lookup("layout.html")
		if err := checkPage(page, spec, texts); err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		if err := page.Execute(io.Discard, spec.zero); err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		b.pages[name] = page
	}
	return b, nil
}

func sources(name string, spec pageSpec) []string {
	paths := []string{"templates/layout.html", "templates/" + name + ".html"}
	for _, partial := range spec.partials {
		paths = append(paths, "templates/_"+partial+".html")
	}
	return paths
}

// checkFiles refuses a template file that no page names.
func checkFiles() error {
	wanted := map[string]bool{}
	for name, spec := range pages {
		for _, path := range sources(name, spec) {
			wanted[path] = true
		}
	}
	found, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return err
	}
	for _, path := range found {
		if !wanted[path] {
			return fmt.Errorf("no page uses %s", path)
		}
	}
	return nil
}

// checkPage compares the partials that a page uses with those it declares, and looks up every text it names.
func checkPage(page *template.Template, spec pageSpec, texts *catalog.Texts) error {
	used := map[string]bool{}
	for _, part := range page.Templates() {
		if part.Tree == nil {
			continue
		}
		for _, node := range nodes(part.Tree.Root) {
			if err := checkNode(node, used, texts); err != nil {
				return fmt.Errorf("%s: %w", part.Name(), err)
			}
		}
	}
	got, want := slices.Sorted(maps.Keys(used)), slices.Sorted(slices.Values(spec.partials))
	if !slices.Equal(got, want) {
		return fmt.Errorf("it uses the partials %v but declares %v", got, want)
	}
	return nil
}

func checkNode(node parse.Node, used map[string]bool, texts *catalog.Texts) error {
	switch n := node.(type) {
	case *parse.TemplateNode:
		if partial, ok := strings.CutPrefix(n.Name, "_"); ok {
			used[strings.TrimSuffix(partial, ".html")] = true
		}
	case *parse.CommandNode:
		if len(n.Args) < 2 || n.Args[0].String() != "t" {
			return nil
		}
		if key, ok := n.Args[1].(*parse.StringNode); ok && !has(texts, key.Text) {
			return fmt.Errorf("the catalogue has no %s in %s", key.Text, texts.Lang)
		}
	}
	return nil
}

// has reports whether there is a text, with or without a count.
func has(texts *catalog.Texts, key string) bool {
	return texts.T(key, nil) != key || texts.T(key, map[string]any{"n": 1}) != key
}

// nodes lists a tree's templates and commands, at any depth.
func nodes(node parse.Node) []parse.Node {
	switch n := node.(type) {
	case *parse.ListNode:
		var all []parse.Node
		if n != nil {
			for _, child := range n.Nodes {
				all = append(all, nodes(child)...)
			}
		}
		return all
	case *parse.ActionNode:
		return nodes(n.Pipe)
	case *parse.PipeNode:
		var all []parse.Node
		if n != nil {
			for _, command := range n.Cmds {
				all = append(all, nodes(command)...)
			}
		}
		return all
	case *parse.CommandNode:
		all := []parse.Node{n}
		for _, arg := range n.Args {
			all = append(all, nodes(arg)...)
		}
		return all
	case *parse.TemplateNode:
		return append([]parse.Node{n}, nodes(n.Pipe)...)
	case *parse.IfNode:
		return branches(n.BranchNode)
	case *parse.RangeNode:
		return branches(n.BranchNode)
	case *parse.WithNode:
		return branches(n.BranchNode)
	}
	return nil
}

func branches(b parse.BranchNode) []parse.Node {
	return slices.Concat(nodes(b.Pipe), nodes(b.List), nodes(b.ElseList))
}

// functions are what templates may call. A template only asks for texts and for ways of showing; it computes nothing.
func functions(in tongue, texts *catalog.Texts, a assets) template.FuncMap {
	return template.FuncMap{
		"t":      func(key string, args ...any) (string, error) { return say(texts, key, args) },
		"word":   func(family, name string) string { return word(texts, family, name) },
		"link":   in.link,
		"chosen": in.choice,
		"asset":  a.url,
		"iso":    func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"stamp":  stamp,
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

// link carries a chosen language along.
func (in tongue) link(path string) string {
	if !in.chosen {
		return path
	}
	return withQuery(path, "lang", in.lang)
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

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

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
