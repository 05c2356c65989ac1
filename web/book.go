package web

import (
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
	"time"

	"github.com/cutonce/cutonce/internal/catalog"
)

// tongue is the language and the time zone of a page, and whether they were chosen and must be carried in the links.
type tongue struct {
	lang   string
	chosen bool
	zone   *time.Location
	zoned  bool
}

// book is every page in one tongue.
type book struct {
	texts *catalog.Texts
	pages map[string]*template.Template
}

// openBooks parses everything once, and shows each page with nothing on it, so that a page that cannot be shown stops the
// start rather than a reader.
func openBooks(c *catalog.Catalog, a assets, zone *time.Location) (map[tongue]*book, error) {
	books := map[tongue]*book{}
	if err := checkFiles(); err != nil {
		return nil, err
	}
	for _, lang := range catalog.Languages {
		for _, chosen := range []bool{false, true} {
			in := tongue{lang: lang, chosen: chosen, zone: zone}
			b, err := openBook(in, c.In(lang), a)
			if err != nil {
				return nil, err
			}
			books[in] = b
		}
	}
	return books, nil
}

// bookIn is every page in a tongue. Those in a zone that somebody chose are opened when they are first asked for.
func (c *console) bookIn(in tongue) (*book, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if b, ok := c.pages[in]; ok {
		return b, nil
	}
	b, err := openBook(in, c.Catalog.In(in.lang), c.assets)
	if err == nil {
		c.pages[in] = b
	}
	return b, err
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
		if len(n.Args) < 2 || n.Args[0].String() != "t" && n.Args[0].String() != "lead" {
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
