package web_test

import (
	"regexp"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

const wantCSP = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types cutonce"

// checkMarkup holds for every page that any test sees: nothing active, nothing inline, every field labelled, one heading, no ID
// twice, every text translated.
func (p *page) checkMarkup() {
	p.t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": wantCSP, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := p.header.Get(name); got != want {
			p.t.Errorf("%s: %s: got %q, want %q", p.url, name, got, want)
		}
	}
	p.wantNone("style, iframe, object, embed, base, meta[http-equiv], [style]")
	p.wantOne("script")
	if script := p.wantOne("head script[type=module][src]"); script.Text() != "" {
		p.t.Errorf("%s: an inline script: %s", p.url, script.Text())
	}
	p.wantOne("h1")
	p.wantOne("main#main")
	if title := p.Find("title").Text(); !strings.HasSuffix(title, " · cutonce") || strings.HasPrefix(title, " ") {
		p.t.Errorf("%s: title %q", p.url, title)
	}
	if lang := p.Find("html").AttrOr("lang", ""); lang != "en" && lang != "ja" {
		p.t.Errorf("%s: html lang %q", p.url, lang)
	}
	p.checkLabels()
	p.checkAttributes()
	if strings.Contains(p.body, "<no value>") || strings.Contains(p.body, "%!") || strings.Contains(p.body, "ZgotmplZ") {
		p.t.Errorf("%s: a template wrote a hole: %s", p.url, p.body)
	}
	if i := strings.IndexAny(p.body, "\u202E\u200B\u2066\x00"); i >= 0 {
		p.t.Errorf("%s: it holds a hidden character, after %q", p.url, p.body[max(0, i-80):i])
	}
	if key := missingText.FindString(p.Find("body").Text()); key != "" {
		p.t.Errorf("%s: a text is missing: %s", p.url, key)
	}
}

// missingText is what a catalogue shows in the place of a text that it lacks. The canonical JSON names keys in quotes.
var missingText = regexp.MustCompile(`(?m)(^|[^"\w.])(web|why|status|fault|figure|field|field_name|warning|adbudget)\.[a-z_]\w*`)

func (p *page) checkLabels() {
	p.t.Helper()
	p.Find("input:not([type=hidden]), textarea, select").Each(func(_ int, s *goquery.Selection) {
		id := s.AttrOr("id", "")
		if s.ParentsFiltered("label").Length() == 0 && p.Find("label[for='"+id+"']").Length() != 1 {
			name := s.AttrOr("name", id)
			p.t.Errorf("%s: the field %s has no label", p.url, name)
		}
	})
	p.Find("form").Each(func(_ int, s *goquery.Selection) {
		if !strings.HasPrefix(s.AttrOr("action", ""), "/") {
			p.t.Errorf("%s: a form goes to %q", p.url, s.AttrOr("action", ""))
		}
	})
}

func (p *page) checkAttributes() {
	p.t.Helper()
	ids := map[string]bool{}
	p.Find("*").Each(func(_ int, s *goquery.Selection) {
		for _, a := range s.Get(0).Attr {
			p.checkAttribute(s, a, ids)
		}
	})
	p.Find("[aria-labelledby], [aria-describedby], label[for]").Each(func(_ int, s *goquery.Selection) {
		for _, name := range []string{"aria-labelledby", "aria-describedby", "for"} {
			if id, ok := s.Attr(name); ok && !ids[id] {
				p.t.Errorf("%s: %s names %q, which is not there", p.url, name, id)
			}
		}
	})
}

func (p *page) checkAttribute(s *goquery.Selection, a html.Attribute, ids map[string]bool) {
	p.t.Helper()
	switch {
	case strings.HasPrefix(a.Key, "on"):
		p.t.Errorf("%s: <%s %s>", p.url, goquery.NodeName(s), a.Key)
	case a.Key == "id" && ids[a.Val]:
		p.t.Errorf("%s: the ID %q is there twice", p.url, a.Val)
	case a.Key == "id":
		ids[a.Val] = true
	case (a.Key == "href" || a.Key == "src") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#"):
		p.t.Errorf("%s: it links to %q", p.url, a.Val)
	}
}
