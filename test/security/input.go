package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/cutonce/cutonce/internal/target"
)

const script = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`" + `{{.}}`

// named is a change of a campaign of that name that waits for approval, with that reason and justification.
func (w *world) named(name, reason string) string {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	_, err = w.f.Ads.EditCampaign(w.ctx, campaign, target.CampaignEdit{Name: name})
	w.must(err)
	agent := w.caller(w.agent())
	r, err := agent.Do(w.ctx, "POST", "/v1/actions/budget_change/previews",
		map[string]any{"campaign_id": campaign, "new_daily_budget_jpy": large, "reason": reason})
	w.must(err)
	want(w, "preparing ("+r.Message+")", r.Status, "needs_approval")
	id := r.PreviewID
	r, err = agent.Do(w.ctx, "POST", "/v1/previews/"+id+"/approval-request", map[string]any{"justification": reason})
	w.must(err)
	want(w, "asking ("+r.Message+")", r.Status, "pending")
	return id
}

// pages are what an approver sees of a change.
func (w *world) pages(b *browser, id string) map[string]string {
	all := map[string]string{}
	for _, path := range []string{"/", "/history", "/changes/" + id, "/changes/" + id + "/review"} {
		r := b.get(path)
		want(w, path, r.status, http.StatusOK)
		all[path] = r.text
	}
	r := b.post("/changes/"+id+"/decision", url.Values{"decision": {"approve"}, "digest": {"x"}, "reason": {script}})
	all["the refused form"] = r.text
	return all
}

// ownScript is the console's one script.
var ownScript = regexp.MustCompile(`<script type="module" src="/assets/console\.[0-9a-f]+\.js"></script>`)

func scriptInNames(w *world) {
	id := w.named(script, script)
	b := w.browser()
	b.signsIn(kimThere().with("name", script))
	shown := false
	w.quiet(func() {
		for path, text := range w.pages(b, id) {
			text = ownScript.ReplaceAllString(text, "")
			if strings.Contains(text, "<script") || strings.Contains(text, "<img src=x") {
				w.fail("%s holds the script: %s", path, text)
			}
			shown = shown || strings.Contains(text, "&lt;script&gt;")
		}
		r := b.get("/changes/" + id + "/document")
		want(w, "the document's media type", r.header.Get("Content-Type"), "application/json")
		want(w, "the document, by nosniff", r.header.Get("X-Content-Type-Options"), "nosniff")
		r = w.send("GET", "/v1/previews/"+id+"?response_format=detailed", "", bearer(w.token(w.agent()))...)
		want(w, "the API's media type", r.header.Get("Content-Type"), "application/json", "application/json; charset=utf-8")
		for _, path := range []string{"/%3Cscript%3Ealert(1)%3C/script%3E", "/changes/%3Cscript%3E", "/?lang=%3Cscript%3E", "/sign-in?next=%22%3E%3Cscript%3E", "/history?cursor=%3Cscript%3E"} {
			if r := b.get(path); strings.Contains(ownScript.ReplaceAllString(r.text, ""), "<script") {
				w.fail("%s reflects the script", path)
			}
		}
	})
	if !shown {
		w.fail("the name was not shown at all")
	}
	b.decides(id, w.digest(id))
}

// hidden are characters that change what is seen without being seen.
var hidden = []string{"\u202e", "\u2066", "\u200b", "\u200f", "\u2060", "\u00ad", "\ufeff"}

func hiddenCharacters(w *world) {
	id := w.named("Brand"+strings.Join(hidden, "x")+"Autumn", "more demand in autumn")
	b := w.browser()
	b.signsIn(kimThere())
	w.unsent(func() {
		for path, text := range w.pages(b, id) {
			for _, r := range hidden {
				if strings.Contains(text, r) {
					w.fail("%s holds %U as it is", path, []rune(r))
				}
			}
		}
		ready := w.prepared(w.agent(), small, "approved")
		for _, r := range hidden {
			a := w.send("POST", "/v1/previews/"+ready.PreviewID+"/cancel", string(asJSON(claims{"reason": "not" + r + "wanted"})), bearer(w.token(w.agent()))...)
			want(w, fmt.Sprintf("%U in a reason (%s)", []rune(r), a.text), a.status, http.StatusBadRequest)
		}
		forged := w.home.sign(w.kim().with("sub", "kim\u200b@agency.example"))
		want(w, "an invisible letter in a person's identity", w.send("GET", "/v1/approvals", "", bearer(forged)...).status, http.StatusUnauthorized)
	})
	b.decides(id, w.digest(id))
}

func logInjection(w *world) {
	line := "\n" + `{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"forged-line"}` + "\n"
	w.unsent(func() {
		escaped := url.PathEscape(line)
		token := w.token(w.agent())
		w.send("GET", "/v1/previews/"+escaped, "", bearer(token)...)
		w.send("GET", "/"+escaped, "", "Host", "cutonce.example")
		w.send("GET", "/changes/"+escaped+"?next="+escaped, "", "Host", "cutonce.example")
		w.send("GET", "/v1/previews?status="+escaped+"&cursor="+escaped, "", bearer(token)...)
		w.send("GET", "/sign-in/done?state="+escaped+"&error="+escaped+"&error_description="+escaped, "")
		w.send("GET", "/v1/previews", "", append(bearer(token), "X-Request-Id", `x","msg":"forged-line`, "User-Agent", `x","msg":"forged-line`)...)
		w.send("GET", "/v1/previews", "", bearer(w.elsewhere.provider.signAs(claims{"alg": "RS256", "kid": line, "typ": "at+jwt"}, w.agent()))...)
		w.send("GET", "/v1/previews", "", bearer(w.home.sign(w.agent().with("aud", line)))...)
		w.mcp(token, "forged-line"+line, map[string]any{line: line})
		w.prepared(w.agent(), small, "approved")
		w.named("name"+" forged-line", line)
	})
	for text := range strings.Lines(w.p.Log()) {
		var entry map[string]any
		if json.Unmarshal([]byte(text), &entry) != nil || entry["msg"] == "forged-line" || entry["level"] == nil {
			w.fail("a line of the log is not the service's own: %s", text)
		}
	}
}

func celInTexts(w *world) {
	w.unsent(func() {
		for _, text := range []string{
			`true || true`, `" || true || "`, `'); allow`, `change.daily_budget <= percent(50)`, "${true}", "{{allow}}", "then: allow", "\x60true\x60 || 1 == 1",
		} {
			campaign, err := w.f.Campaign(w.ctx)
			w.must(err)
			r, err := w.caller(w.agent()).Do(w.ctx, "POST", "/v1/actions/budget_change/previews",
				map[string]any{"campaign_id": campaign, "new_daily_budget_jpy": large, "reason": text})
			w.must(err)
			want(w, "the reason "+text+" ("+r.Message+")", r.Status, "needs_approval")
		}
	})
}

// honestly is what a request to the platform looks like.
var honestly = regexp.MustCompile(`^/v1/(campaigns(/[0-9]+)?|changes|accounts|permissions)(\?[A-Za-z0-9_.~%+=&-]*)?$`)

func towardsTheTarget(w *world) {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	before := len(w.recorder.arrivals())
	token := w.token(w.agent())
	w.quiet(func() {
		for _, id := range []string{
			"../../_sim/reset", "..%2f..%2f_sim%2freset", campaign + "/../../x", campaign + "%2f..", campaign + "\r\nX-Evil: 1", campaign + "\n", campaign + "?x=1",
			campaign + "#x", campaign + "%00", "\uff11\uff12\uff13", "", " " + campaign, "-1", "0x10", "1e3", strings.Repeat("9", 400), "http://evil.example/",
		} {
			body := string(asJSON(claims{"campaign_id": id, "new_daily_budget_jpy": small, "reason": "more demand"}))
			r := w.send("POST", "/v1/actions/budget_change/previews", body, bearer(token)...)
			want(w, "the ID "+id+" ("+r.text+")", r.status, http.StatusBadRequest)
			r = w.mcp(token, "budget_change_preview", map[string]any{"campaign_id": id, "new_daily_budget_jpy": small, "reason": "more demand"})
			if !strings.Contains(r.text, `"isError":true`) {
				w.fail("the ID %q by MCP: %s", id, r.text)
			}
			for _, field := range []string{"query", "name_contains", "account_id", "cursor"} {
				r = w.send("POST", "/v1/finds/campaigns_find", string(asJSON(claims{field: id + "&limit=1/../#"})), bearer(token)...)
				want(w, "finding ("+r.text+")", r.status, http.StatusOK, http.StatusBadRequest)
			}
		}
	})
	ready := w.ready()
	w.applies(ready.PreviewID)
	for _, a := range w.recorder.arrivals()[before:] {
		if !honestly.MatchString(a.URI) || a.Header.Get("X-Evil") != "" {
			w.fail("this arrived at the platform: %s %s %v", a.Method, a.URI, a.Header)
		}
	}
}

func oddIDs(w *world) {
	ready := w.ready()
	b := w.browser()
	b.signsIn(kimThere())
	w.quiet(func() {
		token := w.token(w.agent())
		for _, id := range []string{
			"..", "%2e%2e", "..%2f..%2fhealthz", "%00", ready.PreviewID + "%00", ready.PreviewID + "%2fapply", ready.PreviewID + "%20", strings.ToUpper(ready.PreviewID) + "x",
			"'%20or%201=1%20--", "*", "%25", "null", "00000000-0000-0000-0000-000000000000", strings.Repeat("a", 8000), "%ff%fe", "pv_", ready.PreviewID + ";x=1",
		} {
			for _, method := range []string{"GET", "POST"} {
				path := "/v1/previews/" + id
				if method == "POST" {
					path += "/apply"
				}
				r := w.send(method, path, "", bearer(token)...)
				want(w, method+" "+path, r.status, 301, 307, 308, http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed)
			}
			want(w, "the page of "+id, b.get("/changes/"+id).status, 301, 303, 307, 308, http.StatusNotFound, http.StatusBadRequest)
		}
	})
	w.applies(ready.PreviewID)
}

func oddFilters(w *world) {
	ready := w.ready()
	w.quiet(func() {
		for _, value := range []string{
			"' or '1'='1", "1; drop table previews", "%", "_", "\\", "\x00", "-1", "99999999999999999999", "[]", "{}", "null", strings.Repeat("x", 6000), encode([]byte("{}")),
		} {
			for _, name := range []string{"status", "target_id", "action", "cursor", "limit", "needs_operator", "response_format"} {
				for _, path := range []string{"/v1/previews", "/v1/outcomes", "/v1/approvals"} {
					r := w.send("GET", path+"?"+name+"="+url.QueryEscape(value), "", bearer(w.token(w.otherAgent()))...)
					want(w, path+" "+name+"="+value+" ("+r.text+")", r.status, http.StatusOK, http.StatusBadRequest, http.StatusForbidden)
					if strings.Contains(r.text, ready.PreviewID) {
						w.fail("%s=%s shows another agent's change", name, value)
					}
				}
			}
		}
	})
}

func oddJSON(w *world) {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	honest := fmt.Sprintf(`{"campaign_id":"%s","new_daily_budget_jpy":%d,"reason":"more demand"}`, campaign, small)
	token := w.token(w.agent())
	w.quiet(func() {
		for what, body := range map[string]string{
			"a name twice": honest[:len(honest)-1] + `,"new_daily_budget_jpy":1}`, "a name twice, escaped": honest[:len(honest)-1] + `,"new_daily_budget_jp\u0079":1}`,
			"deep": strings.Repeat("[", 30000) + strings.Repeat("]", 30000), "deep in a field": `{"reason":` + strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000) + "}",
			"a tail": honest + "{}", "a BOM": "\ufeff" + honest, "NaN": `{"campaign_id":"1","new_daily_budget_jpy":NaN,"reason":"x"}`, "a comment": honest + "/* */",
			"single quotes": strings.ReplaceAll(honest, `"`, `'`), "no UTF-8": strings.Replace(honest, "more", "mo\xff\xfere", 1), "half a character": strings.Replace(honest, "more", `\ud800`, 1),
			"a list": "[" + honest + "]", "a text": `"x"`, "null": "null", "nothing closed": honest[:20], "a control character": strings.Replace(honest, "more", "mo\x01re", 1),
		} {
			r := w.send("POST", "/v1/actions/budget_change/previews", body, bearer(token)...)
			want(w, what+" ("+r.text+")", r.status, http.StatusBadRequest)
			message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"budget_change_preview","arguments":` + body + `}}`
			r = w.send("POST", "/mcp", message, append(bearer(token), "Accept", "application/json, text/event-stream")...)
			if r.status == http.StatusOK && !strings.Contains(r.text, `"isError":true`) && !strings.Contains(r.text, `"error":`) {
				w.fail("%s by MCP: %s", what, r.text)
			}
		}
	})
	w.unsent(func() {
		r := w.send("POST", "/v1/actions/budget_change/previews", honest, bearer(token)...)
		want(w, "the honest body", r.status, http.StatusOK, http.StatusCreated)
	})
}

func oddNumbers(w *world) {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	token := w.token(w.agent())
	w.quiet(func() {
		for _, number := range []string{
			"1e999999", "1e400", "-1", "-0", "0.1", "101000.5", `"101000"`, "999999999999999999999999999999", "9007199254740993", "1E-400", "true", "null", "[101000]", "{}",
			"0101000", "+101000", ".5", "1_000", "Infinity", "0x10",
		} {
			body := fmt.Sprintf(`{"campaign_id":"%s","new_daily_budget_jpy":%s,"reason":"more demand"}`, campaign, number)
			r := w.send("POST", "/v1/actions/budget_change/previews", body, bearer(token)...)
			want(w, number+" ("+r.text+")", r.status, http.StatusBadRequest)
		}
		for _, number := range []string{"-1", "1e99", "0.5", `"x"`, "99999999999999999999", "100000"} {
			r := w.send("GET", "/v1/previews?limit="+url.QueryEscape(number), "", bearer(token)...)
			want(w, "limit="+number, r.status, http.StatusBadRequest)
		}
	})
}

func tooMuch(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	at := "/v1/previews/" + ready.PreviewID + "/cancel"
	w.quiet(func() {
		large := `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`
		want(w, "a megabyte", w.send("POST", at, large, bearer(token)...).status, http.StatusRequestEntityTooLarge)
		want(w, "3,000 characters", w.send("POST", at, `{"reason":"`+strings.Repeat("x", 3000)+`"}`, bearer(token)...).status, http.StatusBadRequest)
		want(w, "compressed", w.send("POST", at, "\x1f\x8b", append(bearer(token), "Content-Encoding", "gzip")...).status, http.StatusUnsupportedMediaType, http.StatusBadRequest)
		fields := "{" + strings.Repeat(`"a":1,`, 10000) + `"b":1}`
		want(w, "10,000 fields", w.send("POST", at, fields, bearer(token)...).status, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
		want(w, "chunked", w.chunked(at, token, 1<<20), http.StatusRequestEntityTooLarge)
		r := w.send("POST", "/mcp", callOf("change_cancel", map[string]any{"reason": strings.Repeat("x", 6<<20)}), append(bearer(token), "Accept", "application/json, text/event-stream")...)
		want(w, "six megabytes by MCP", r.status, http.StatusRequestEntityTooLarge)
		languages := strings.Repeat("ja;q=0.5,", 5000)
		want(w, "a long language header", w.send("GET", "/v1/previews", "", append(bearer(token), "Accept-Language", languages)...).status, http.StatusOK, http.StatusBadRequest)
	})
	w.applies(ready.PreviewID)
}

// chunked sends a body of unknown length and returns the answer's status.
func (w *world) chunked(path, token string, size int) int {
	body := struct{ *strings.Reader }{strings.NewReader(`{"reason":"` + strings.Repeat("x", size) + `"}`)}
	request, err := http.NewRequestWithContext(w.ctx, "POST", w.p.URL+path, struct{ reader }{body})
	w.must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := w.client.Do(request)
	w.must(err)
	_ = response.Body.Close()
	return response.StatusCode
}

type reader interface{ Read([]byte) (int, error) }

func oddMediaTypes(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	w.quiet(func() {
		for _, media := range []string{
			"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "text/json", "application/jsonp", "",
			"application/json, text/plain", "application/xml",
		} {
			headers := []string{"Authorization", "Bearer " + token}
			if media != "" {
				headers = append(headers, "Content-Type", media)
			}
			r := w.send("POST", "/v1/previews/"+ready.PreviewID+"/cancel", `{"reason":"not wanted"}`, headers...)
			want(w, media+" ("+r.text+")", r.status, http.StatusUnsupportedMediaType)
		}
	})
	w.applies(ready.PreviewID)
}

func foreignKeys(w *world) {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	agent, other := w.caller(w.agent()), w.caller(w.otherAgent())
	first, err := agent.Prepare(w.ctx, campaign, small, "a-key")
	w.must(err)
	w.unsent(func() {
		theirs, err := other.Prepare(w.ctx, campaign, small, "a-key")
		w.must(err)
		if theirs.PreviewID == first.PreviewID {
			w.fail("another agent got the change by its key")
		}
		stranger, err := w.caller(w.stranger()).Prepare(w.ctx, campaign, small, "a-key")
		w.must(err)
		if stranger.PreviewID == first.PreviewID {
			w.fail("another tenant got the change by its key")
		}
	})
	w.quiet(func() {
		r, err := agent.Prepare(w.ctx, campaign, small+1, "a-key")
		w.must(err)
		want(w, "another body under the key", r.Code, "idempotency_conflict")
		for _, key := range []string{"with space", "tab\tx", "\u00e9", strings.Repeat("k", 300)} {
			r, err := agent.Prepare(w.ctx, campaign, small, key)
			w.must(err)
			want(w, "the key "+key, r.HTTP, http.StatusBadRequest)
		}
		again, err := agent.Prepare(w.ctx, campaign, small, "a-key")
		w.must(err)
		want(w, "the same again", again.PreviewID, first.PreviewID)
	})
}
