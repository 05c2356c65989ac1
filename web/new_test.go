package web

import (
	"encoding/json"
	"html/template"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
)

func TestEveryPageOpensInEveryTongue(t *testing.T) {
	t.Parallel()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	books, err := openBooks(texts, loadAssets(), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(books), 2*len(catalog.Languages); got != want {
		t.Errorf("books: got %d, want %d", got, want)
	}
}

func TestEveryCodeHasAStatusAndWords(t *testing.T) {
	t.Parallel()
	texts := textsIn(t)
	for code, rule := range fault.Codes() {
		if statuses[code] < 400 {
			t.Errorf("%s: got status %d", code, statuses[code])
		}
		wantText(t, texts, "web.failure.title."+string(rule.Kind))
		wantText(t, texts, "web.next."+string(rule.Next))
	}
	for code := range statuses {
		if _, ok := fault.Codes()[code]; !ok {
			t.Errorf("%s is no code", code)
		}
	}
}

func TestEveryWordOfTheServicesIsKnown(t *testing.T) {
	t.Parallel()
	texts := textsIn(t)
	for _, s := range commit.Statuses() {
		wantText(t, texts, "web.status."+string(s))
	}
	for _, s := range commit.States() {
		wantText(t, texts, "web.effect."+string(s))
	}
	for _, e := range []commit.Evidence{commit.ByReceipt, commit.ByLookup, commit.ByReplay, commit.ByStatement, commit.NoneNeeded} {
		wantText(t, texts, "web.evidence."+string(e))
	}
	for _, k := range []commit.AttemptKind{commit.Send, commit.Lookup, commit.Replay} {
		wantText(t, texts, "web.attempt."+string(k))
	}
	for _, v := range []policy.Verdict{policy.Allow, policy.Require, policy.Deny} {
		wantText(t, texts, "web.verdict."+string(v))
	}
	for _, kind := range []string{
		"prepared", "approval_requested", "vote", "approved", "rejected", "canceled", "expired", "sent_back", "claimed", "applied",
		"not_applied", "not_sent", "unknown", "lease_lapsed", "probed", "handed_over", "resolved", "proposed", "contradicted", "confirmed", "abstained", "effect_found", "cleared",
	} {
		wantText(t, texts, "web.event."+kind)
	}
	for _, result := range []string{"applied", "not_sent", "refused", "drifted", "unknown", "found", "absent", "unsure", "none"} {
		wantText(t, texts, "web.result."+result)
	}
}

func textsIn(t *testing.T) []*catalog.Texts {
	t.Helper()
	c, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	var all []*catalog.Texts
	for _, lang := range catalog.Languages {
		all = append(all, c.In(lang))
	}
	return all
}

func wantText(t *testing.T, texts []*catalog.Texts, key string) {
	t.Helper()
	for _, in := range texts {
		if !has(in, key) {
			t.Errorf("%s has no text in %s", key, in.Lang)
		}
	}
}

func TestRoughTimes(t *testing.T) {
	t.Parallel()
	v := &visit{texts: textsIn(t)[0]}
	for d, want := range map[time.Duration]string{
		-time.Second: "time is up", 59 * time.Second: "less than a minute left", time.Minute: "1 minute left",
		119 * time.Minute: "119 minutes left", 2 * time.Hour: "2 hours left", 47 * time.Hour: "47 hours left", 72 * time.Hour: "3 days left",
	} {
		if got := v.left(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

func TestActorsInWords(t *testing.T) {
	t.Parallel()
	en := textsIn(t)[0]
	for id, want := range map[string]string{
		"service:cutonce": "cutonce",
		"human:https://id.example#kim@agency.example":     "kim@agency.example",
		"agent:https://id.example#bot/for:sato@a.example": "bot for sato@a.example",
		"human:https://id.example#a#b":                    "a#b",
		"odd":                                             "",
	} {
		if got := actorName(en, id); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestPagesThatMustNotStart(t *testing.T) {
	t.Parallel()
	en := textsIn(t)[0]
	for name, source := range map[string]string{
		"an undeclared partial": `{{template "_badge.html" .}}`,
		"a missing text":        `{{t "web.no_such_text"}}`,
		"a missing text deep":   `{{range .}}{{with .}}{{print (t "web.no_such_text")}}{{end}}{{end}}`,
	} {
		page := template.Must(template.New("layout.html").Funcs(functions(tongue{lang: "en"}, en, loadAssets())).Parse(source))
		if err := checkPage(page, pageSpec{}, en); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	page := template.Must(template.New("layout.html").Parse("hello"))
	if err := checkPage(page, pageSpec{partials: []string{"badge"}}, en); err == nil {
		t.Error("a partial that is not used: got no error")
	}
}

// TestExactJSONReadsBack: what a reader would not see stands there by its number, and reads back as itself.
func TestExactJSONReadsBack(t *testing.T) {
	t.Parallel()
	given := map[string]any{"name": "Sale\u202Eelas\u200B 秋 😀\U000E0041", "n": json.Number("12000.50")}
	text, err := exactJSON(given)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text, "\u202E\u200B\U000E0041") || !strings.Contains(text, "秋 😀") || !strings.Contains(text, "12000.50") {
		t.Errorf("got %s, want the hidden characters by their numbers and the rest as it is", text)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || got["name"] != given["name"] {
		t.Errorf("got %q, %v, want %q", got["name"], err, given["name"])
	}
}
