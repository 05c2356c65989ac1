package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/cutonce/cutonce/internal/target"
)

// tour is one walk past every screen with one look. What is found wrong is told by the points that it is about, so that each page is
// opened once for all of them.
type tour struct {
	name  string
	looks []look
	// long says that only the command goes on it.
	long        bool
	inspections []inspection

	once     sync.Once
	problems map[int][]string
	broken   string
}

// inspection looks at one screen for one point and says what is wrong there.
type inspection struct {
	point int
	look  func(*tab, screen) []string
}

// screen is a page as somebody sees it.
type screen struct {
	name, who, path string
	// opens is what to press before looking, "" for nothing: it opens a dialog.
	opens string
	// tenant is whose page it is, where that is not the tour's.
	tenant string
	// status is what the page answers with, if it is not 200.
	status int64
}

// tours are the walks, each with what is looked at on its way.
func tours() []*tour {
	everywhere := func(more ...inspection) []inspection {
		return append([]inspection{{21, axeFinds}, {22, marksLack}, {22, movesOrBlinks}, {24, namesLack}, {25, inlineOrForeign}, {30, timesLack}}, more...)
	}
	return []*tour{
		{name: "wide, light, in English", looks: []look{inEnglish}, inspections: everywhere(inspection{25, headersLack}, inspection{29, notWholeIn("en")})},
		{name: "phone, dark, in Japanese", looks: []look{phone, dark, inJapanese}, inspections: everywhere(
			inspection{21, tooSmall}, inspection{23, tooWide}, inspection{23, coveredAtTheEnd}, inspection{29, notWholeIn("ja")})},
		{name: "phone, light, in English", looks: []look{phone, inEnglish}, long: true, inspections: everywhere(
			inspection{21, tooSmall}, inspection{23, tooWide}, inspection{23, coveredAtTheEnd})},
		{name: "wide, dark, in Japanese", looks: []look{dark, inJapanese}, long: true, inspections: everywhere(inspection{29, notWholeIn("ja")})},
		{name: "low, with the Tab key", looks: []look{sized(1280, 500), inEnglish}, long: true, inspections: []inspection{{21, focusLost}}},
		{name: "phone, with the Tab key", looks: []look{phone, inEnglish}, long: true, inspections: []inspection{{21, focusLost}}},
	}
}

// toured is the check of a point by what was found about it on all tours of its length.
func toured(number int, long bool) func(*scene) {
	return func(w *scene) {
		looked := 0
		for _, t := range w.tours {
			if t.long != long {
				continue
			}
			t.once.Do(func() { t.walk(w.stage, w.whole) })
			if t.broken != "" {
				w.fail("the tour (%s) ended early: %s", t.name, t.broken)
			}
			for _, i := range t.inspections {
				if i.point == number {
					looked++
				}
			}
			if found := t.problems[number]; len(found) > 0 {
				w.fail("%s:\n        %s", t.name, strings.Join(found, "\n        "))
			}
		}
		if looked == 0 {
			w.fail("no tour looks at point %d", number)
		}
	}
}

// walk opens every screen and makes the inspections.
func (t *tour) walk(s *stage, ctx context.Context) {
	t.problems = map[int][]string{}
	titles := map[string]string{}
	t.broken = s.play(ctx, func(w *scene) {
		w.tenant = tourTenant
		tabs := map[string]*tab{}
		for _, page := range w.screens() {
			at := tabs[page.who]
			if at == nil {
				at = w.as(page.who, t.looks...)
				tabs[page.who] = at
			}
			if page.status != 0 {
				at.watch.expect(fmt.Sprintf("HTTP %d|status of %d", page.status, page.status))
			}
			at.open(page.path)
			if page.opens != "" {
				at.press(page.opens)
				at.until("the dialog", `!!document.querySelector('dialog[open]')`)
			}
			t.inspect(at, page, titles)
		}
	})
}

func (t *tour) inspect(at *tab, page screen, titles map[string]string) {
	for _, i := range t.inspections {
		for _, problem := range i.look(at, page) {
			t.problems[i.point] = append(t.problems[i.point], page.name+": "+problem)
		}
	}
	if title := eval[string](at, `document.title`); page.opens == "" {
		if other, taken := titles[title]; taken {
			t.problems[24] = append(t.problems[24], fmt.Sprintf("%s and %s have the same title %q", page.name, other, title))
		}
		titles[title] = page.name
	}
}

// tourTenant owns what is on the screens.
const tourTenant = "the-tour"

// screens are the pages of the console with something on each. They are made once.
func (w *scene) screens() []screen {
	w.stage.furnish.Do(func() { w.stage.screens = w.furnished() })
	if w.stage.screens == nil {
		w.fail("there are no screens to look at")
	}
	return w.stage.screens
}

// moved is a change whose target is no longer as it was.
func (w *scene) moved() change {
	c := w.pending(large)
	_, err := w.f.Ads.EditCampaign(w.ctx, c.campaign, target.CampaignEdit{DailyBudget: "123456"})
	w.must(err)
	return c
}

func (w *scene) furnished() []screen {
	plain, two, careful := w.pending(large), w.pending(vast), w.pending(enormous)
	w.decides("tanaka", two, "approve")
	done, ready := w.pending(large), w.pending(large)
	w.decides("kim", done, "approve")
	w.decides("kim", ready, "approve")
	w.applies(done, "applied")
	unknown := w.unknown()
	return []screen{
		{name: "queue", who: "kim", path: "/"},
		{name: "review", who: "kim", path: plain.review()},
		{name: "review of two", who: "kim", path: two.review()},
		{name: "review, high risk", who: "kim", path: careful.review()},
		{name: "the form of a decision", who: "kim", path: plain.review(), opens: "[data-open=approve]"},
		{name: "the form at high risk", who: "kim", path: careful.review(), opens: "[data-open=approve]"},
		{name: "a moved target", who: "kim", path: w.moved().review()},
		{name: "the keys", who: "kim", path: "/?show=all", opens: "#keys-open"},
		{name: "bulk, choosing", who: "kim", path: "/bulk?action=budget_change"},
		{name: "bulk, chosen", who: "kim", path: "/bulk?action=budget_change&item=" + plain.id + "&item=" + two.id},
		{name: "own change, approved", who: "sato", path: ready.whole()},
		{name: "change", who: "auditor", path: done.whole()},
		{name: "history", who: "auditor", path: "/history"},
		{name: "unknown outcomes", who: "oper", path: "/outcomes"},
		{name: "settling", who: "oper", path: unknown.whole()},
		{name: "freeze", who: "admin", path: "/freeze"},
		{name: "nothing here", who: "kim", path: "/nowhere", status: 404},
	}
}
