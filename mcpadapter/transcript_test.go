package mcpadapter_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// Each script of testdata/scripts is played in both languages against a service of its own, and what went over the wire is
// compared with testdata/transcripts. A section "request CALLER" is a raw HTTP request; the other sections are what people,
// the ad platform and time do. What differs from run to run is replaced by a name: PREVIEW_1, TIME, HEX.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/scripts/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("got %d scripts, %v", len(scripts), err)
	}
	for _, path := range scripts {
		for _, lang := range []string{"en", "ja"} {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar") + "." + lang
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				script, err := txtar.ParseFile(path)
				if err != nil {
					t.Fatal(err)
				}
				p := player{rig: newRig(t), lang: lang, names: map[string]string{}}
				compare(t, filepath.Join("testdata", "transcripts", name+".txtar"), p.play(script))
			})
		}
	}
}

func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", path, diff)
	}
}

// player plays one script.
type player struct {
	*rig
	lang string
	// names maps PREVIEW_n to the ID that it stands for.
	names map[string]string
}

func (p *player) play(script *txtar.Archive) []byte {
	p.t.Helper()
	out := &txtar.Archive{Comment: script.Comment}
	for _, section := range script.Files {
		words := strings.Fields(section.Name)
		out.Files = append(out.Files, section)
		if words[0] != "request" {
			p.act(p.expand(section.Name))
			continue
		}
		answer := p.send(words[1], p.expand(string(section.Data)))
		out.Files = append(out.Files, txtar.File{Name: "response", Data: []byte(p.stable(answer))})
	}
	return txtar.Format(out)
}

// send makes the request of a section: a first line with method and path if it is no POST, headers, an empty line, JSON.
func (p *player) send(caller, text string) string {
	p.t.Helper()
	head, payload, _ := strings.Cut(text, "\n\n")
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Accept-Language", p.lang)
	if token := p.tokenOf(caller); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, line := range strings.Split(head, "\n") {
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "":
		case "Method":
			req.Method = value
		default:
			req.Header.Set(name, value)
		}
	}
	payload = strings.ReplaceAll(strings.TrimSpace(payload), `"META"`, meta)
	if payload != "" {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(payload)) != nil {
			compact.Reset()
			compact.WriteString(payload) // a script may send what is no JSON
		}
		req.Body, req.ContentLength = http.NoBody, int64(compact.Len())
		req.Body = readCloser{&compact}
	}
	return shown(p.t, p.do(req))
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

func (p *player) tokenOf(caller string) string {
	p.t.Helper()
	switch caller {
	case "agent":
		return p.issuer.token()
	case "reader":
		return p.issuer.token(with("scope", "ads:read"))
	case "stranger":
		return p.issuer.token(with("tenant", "other"))
	case "colleague":
		return p.issuer.token(with("sub", "tanaka@agency.example"))
	case "nobody":
		return ""
	}
	p.t.Fatalf("the script knows no caller %q", caller)
	return ""
}

// act is what happens outside the door.
func (p *player) act(line string) {
	p.t.Helper()
	words := strings.Fields(line)
	var err error
	switch words[0] {
	case "approve", "reject":
		p.decide(words[1], words[0] == "approve", strings.Join(words[2:], " "))
	case "down":
		op, step := target.Op(words[1]), target.Step{Action: target.StatusBefore, Status: 503}
		err = p.ads.AddFault(target.Fault{Match: target.Match{Op: op, Resource: words[2]}, Times: target.Forever, Do: []target.Step{step}})
	case "platform":
		err = p.ads.AddFault(target.Once(target.Op(words[1]), words[2], target.Step{Action: target.Action(words[3])}))
	case "move":
		err = p.ads.SetBudget(words[1], words[2])
	case "settle":
		p.sweepUntil(words[1], commit.Status(words[2]))
	default:
		p.t.Fatalf("the script knows no section %q", line)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) expand(text string) string {
	for name, id := range p.names {
		text = strings.ReplaceAll(text, name, id)
	}
	return text
}

var (
	previewID = regexp.MustCompile(`pv_[0-9a-hjkmnp-tv-z]{26}`)
	volatile  = []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
		{regexp.MustCompile(`[0-9a-f]{64}`), "HEX"},
		{regexp.MustCompile(`rq_[0-9a-z]{26}`), "REQUEST"},
		{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "ISSUER"},
	}
)

// stable gives what differs from run to run a name.
func (p *player) stable(text string) string {
	text = previewID.ReplaceAllStringFunc(text, func(id string) string {
		for name, known := range p.names {
			if known == id {
				return name
			}
		}
		name := fmt.Sprintf("PREVIEW_%d", len(p.names)+1)
		p.names[name] = id
		return name
	})
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.name)
	}
	return text
}

// shown is an answer as people read it: status, the headers that matter, the message indented.
func shown(t testing.TB, x exchange) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d\n", x.status)
	for _, name := range []string{"Allow", "Cache-Control", "Content-Type", "Retry-After", "Www-Authenticate", "X-Accel-Buffering"} {
		if value := x.header.Get(name); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", indented(t, x.json))
	return b.String()
}

func indented(t testing.TB, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return strings.TrimSpace(text)
	}
	elide(t, value)
	oncePerSchema(value)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// oncePerSchema shows an output schema where it first appears, and after that only whose it is.
func oncePerSchema(value any) {
	outer, _ := value.(map[string]any)
	result, _ := outer["result"].(map[string]any)
	tools, _ := result["tools"].([]any)
	first := map[string]any{}
	for _, entry := range tools {
		tool := entry.(map[string]any)
		raw, _ := json.Marshal(tool["outputSchema"])
		if owner, seen := first[string(raw)]; seen {
			tool["outputSchema"] = fmt.Sprintf("(the same as that of %s)", owner)
			continue
		}
		first[string(raw)] = tool["name"]
	}
}

// elide checks that a result's text is a copy of its structured content, and shows it once.
func elide(t testing.TB, value any) {
	t.Helper()
	outer, _ := value.(map[string]any)
	result, _ := outer["result"].(map[string]any)
	content, _ := result["content"].([]any)
	if len(content) == 0 {
		return
	}
	item := content[0].(map[string]any)
	d := json.NewDecoder(strings.NewReader(item["text"].(string)))
	d.UseNumber()
	var copied any
	if err := d.Decode(&copied); err != nil || !reflect.DeepEqual(copied, result["structuredContent"]) {
		t.Errorf("the text is no copy of the structured content: %s", item["text"])
	}
	item["text"] = "(the structured content as JSON)"
}

func TestTranscriptsHaveScripts(t *testing.T) {
	t.Parallel()
	scripts, _ := filepath.Glob("testdata/scripts/*.txtar")
	transcripts, _ := filepath.Glob("testdata/transcripts/*.txtar")
	for _, path := range transcripts {
		name := strings.Split(filepath.Base(path), ".")[0]
		if !slices.Contains(scripts, filepath.Join("testdata", "scripts", name+".txtar")) {
			t.Errorf("%s has no script", path)
		}
	}
}
