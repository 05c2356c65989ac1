package web_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/target"
)

var update = flag.Bool("update", false, "rewrite the golden pages")

// volatile is what differs from run to run.
var volatile = []struct {
	pattern *regexp.Regexp
	becomes string
}{
	{regexp.MustCompile(`pv_[0-9a-z]{26}`), "pv_ID"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)`), "TIME"},
	{regexp.MustCompile(` – <time datetime="TIME">TIME</time>`), ""},
	{regexp.MustCompile(`\d+ (hours|minutes) left|残り \d+ (時間|分)`), "LEFT"},
	{regexp.MustCompile(`(less than a minute|\d+ minutes?) before this page|表示の(直前、1 分以内| \d+ 分前)`), "AGO"},
	{regexp.MustCompile(`\n\s*\n+`), "\n"},
}

func TestGoldenPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepare(target.CampaignAutumnSearch, "40000", "週末のセール", "秋の特価_検索")
	r.ask(id, "金曜の朝までに")
	kim := r.as("kim")
	path := "/changes/" + id.String()
	golden(t, "queue.en", kim.get("/?lang=en"))
	golden(t, "review.en", kim.get(path+"/review?lang=en"))
	golden(t, "review.ja", kim.get(path+"/review?lang=ja"))
	kim.submit(kim.get(path+"/review"), "form.decide", "decision", "approve", "reason", "fine")
	r.apply(id, "applied")
	golden(t, "change.en", kim.get(path+"?lang=en"))
}

func golden(t *testing.T, name string, p *page) {
	t.Helper()
	got, err := p.Find("main").Html()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volatile {
		got = v.pattern.ReplaceAllString(got, v.becomes)
	}
	got = strings.TrimSpace(got) + "\n"
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
