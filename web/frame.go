package web

import (
	"net/http"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/visible"
)

// frame is what every page has around it.
type frame struct {
	// Title is unique to the page; the layout adds the product's name.
	Title string
	Lang  string
	Langs []langLink
	// Zones are the time zones to choose among, none where there is but one.
	Zones []langLink
	Who   string
	Nav   []navItem
	// Frozen is what is frozen, at the top of every page.
	Frozen  []answer.Freeze
	Version string
	// Live is how the page keeps itself fresh, nil if it does not; Now is the database's time of what it shows.
	Live *liveSpec
	Now  time.Time
}

type langLink struct {
	Lang, Name, Href string
	Current          bool
}

// navItem is one of the lists. Badge is how much waits there, as text ("25+"), empty if nothing does.
type navItem struct {
	Href, Label, Badge string
	Current            bool
}

// langNames are in their own languages, so they are in no catalogue.
var langNames = map[string]string{"en": "English", "ja": "日本語"}

// badgeCap bounds what is counted for a badge.
const badgeCap = 25

// frameOf starts a page. section is the path of the list that the page belongs to.
func (c *console) frameOf(v *visit, title, section string) frame {
	f := frame{Title: title, Lang: v.in.lang, Version: c.Version}
	for _, lang := range []string{"en", "ja"} {
		f.Langs = append(f.Langs, langLink{Lang: lang, Name: langNames[lang], Href: v.hereIn(lang), Current: lang == v.in.lang})
	}
	if v.who.Subject == "" {
		return f
	}
	if len(c.places) > 1 {
		f.Zones = c.zoneLinks(v)
	}
	f.Who = visible.Text(v.who.Name)
	if f.Who == "" {
		f.Who = visible.Text(v.who.Subject)
	}
	waiting, unknown := c.badges(v)
	f.Frozen = c.banner(v)
	items := []navItem{
		{Href: "/", Label: v.t("web.nav.queue"), Badge: waiting},
		{Href: "/outcomes", Label: v.t("web.nav.outcomes"), Badge: unknown},
		{Href: "/history", Label: v.t("web.nav.history")},
	}
	if may, _ := commit.MayFreeze(v.who); may && c.Freezes != nil {
		items = append(items, navItem{Href: "/freeze", Label: v.t("web.nav.freeze")})
	}
	for _, item := range items {
		item.Current = item.Href == section
		f.Nav = append(f.Nav, item)
	}
	return f
}

// astray is the frame of a page that is not there: its choices lead to the first list and do not repeat the address, so that one change
// that cannot be seen reads like any other.
func (f frame) astray() frame {
	for i, l := range f.Langs {
		f.Langs[i].Href = withQuery("/", "lang", l.Lang)
	}
	for i, z := range f.Zones {
		f.Zones[i].Href = withQuery("/", "zone", z.Name)
	}
	return f
}

// hereIn is this page in another language.
func (v *visit) hereIn(lang string) string { return v.hereWith("lang", lang) }

// hereWith is this page with something chosen. The answer to a post has no address to link to, so its change is linked.
func (v *visit) hereWith(name, value string) string {
	path := v.r.URL.RequestURI()
	if v.r.Method == http.MethodPost {
		path = "/"
		if id := v.r.PathValue("id"); id != "" {
			path = "/changes/" + id
		}
	}
	return withQuery(local(path), name, value)
}

// badges counts what this person may decide and what is unknown. A count that cannot be had leaves the page without it.
func (c *console) badges(v *visit) (waiting, unknown string) {
	ctx := v.r.Context()
	items, more, _, err := c.Approvals.Queue(ctx, v.who, approvals.Page{Limit: badgeCap})
	if err != nil {
		c.Log.WarnContext(ctx, "counting the queue", "request_id", v.requestID, "error", err)
		return "", ""
	}
	mine := 0
	for _, item := range items {
		if item.WhyNot == nil && v.votedIn(item) == nil {
			mine++
		}
	}
	changes, further, err := c.Commits.List(ctx, v.who, commit.Filter{Status: commit.StatusUnknown, Limit: badgeCap})
	if err != nil {
		c.Log.WarnContext(ctx, "counting unknown outcomes", "request_id", v.requestID, "error", err)
		return v.badge(mine, more), ""
	}
	return v.badge(mine, more), v.badge(len(changes), further)
}

func (v *visit) badge(n int, more string) string {
	switch {
	case n == 0:
		return ""
	case more != "":
		return v.t("web.badge.more", "count", n)
	}
	return v.t("web.badge", "count", n)
}
