package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

func foreignOrigin(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	args := map[string]any{"preview_id": ready.PreviewID}
	w.quiet(func() {
		for _, headers := range [][]string{
			{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:3000"}, {"Origin", "https://cutonce.example.evil.example"},
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"},
		} {
			r := w.mcp(token, "budget_change_apply", args, headers...)
			want(w, fmt.Sprintf("%v (%s)", headers, r.text), r.status, http.StatusForbidden)
		}
		r := w.send("GET", "/mcp", "", append(bearer(token), "Origin", "https://evil.example", "Accept", "text/event-stream")...)
		want(w, "a stream from elsewhere", r.status, http.StatusForbidden)
	})
	r := w.mcp(token, "budget_change_apply", args)
	if !strings.Contains(r.text, `"applied"`) {
		w.fail("the honest call: %s", r.text)
	}
}

func oddProtocol(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	apply := callOf("budget_change_apply", map[string]any{"preview_id": ready.PreviewID})
	post := func(body string, headers ...string) reply {
		return w.send("POST", "/mcp", body, append(append(bearer(token), "Accept", "application/json, text/event-stream"), headers...)...)
	}
	w.quiet(func() {
		for what, r := range map[string]reply{
			"an unknown version": post(apply, "Mcp-Protocol-Version", "1999-01-01"), "no version at all": post(apply, "Mcp-Protocol-Version", "x\ty"),
			"a batch":               post("["+apply+","+apply+"]", "Mcp-Protocol-Version", "2025-06-18"),
			"another method":        post(strings.Replace(apply, "tools/call", "tools/CALL", 1), "Mcp-Protocol-Version", "2025-06-18"),
			"a method of ours":      post(strings.Replace(apply, "tools/call", "approvals/decide", 1), "Mcp-Protocol-Version", "2025-06-18"),
			"a method given twice":  post(strings.Replace(apply, `"method":`, `"method":"ping","method":`, 1), "Mcp-Protocol-Version", "2025-06-18"),
			"arguments given twice": post(strings.Replace(apply, `"arguments":`, `"arguments":{},"arguments":`, 1), "Mcp-Protocol-Version", "2025-06-18"),
			"garbage":               post("\x00\x01\x02", "Mcp-Protocol-Version", "2025-06-18"), "half a message": post(apply[:30], "Mcp-Protocol-Version", "2025-06-18"),
			"an old JSON-RPC": post(strings.Replace(apply, `"2.0"`, `"1.0"`, 1), "Mcp-Protocol-Version", "2025-06-18"),
		} {
			if strings.Contains(r.text, `"applied"`) || r.status >= http.StatusInternalServerError {
				w.fail("%s: got %d %s", what, r.status, r.text)
			}
		}
		for _, method := range []string{"PUT", "DELETE", "PATCH", "TRACE"} {
			r := w.send(method, "/mcp", apply, append(bearer(token), "Mcp-Session-Id", "x")...)
			want(w, method+" ("+r.text+")", r.status/100, 4)
		}
	})
	w.applies(ready.PreviewID)
}

func moreArguments(w *world) {
	ready, pending := w.ready(), w.pending()
	token := w.token(w.agent())
	w.quiet(func() {
		for _, args := range []map[string]any{
			{"preview_id": ready.PreviewID, "force": true}, {"preview_id": ready.PreviewID, "new_daily_budget_jpy": 400000}, {"preview_id": ready.PreviewID, "approved_by": "kim"},
			{"preview_id": []string{ready.PreviewID}}, {"preview_id": map[string]any{"$ne": ""}}, {"preview_id": nil}, {"preview_id": 1}, {}, {"id": ready.PreviewID},
			{"preview_id": ready.PreviewID + " "}, {"preview_id": ready.PreviewID, "preview_Id": pending.PreviewID}, {"preview_id": "*"}, {"Preview_ID": ready.PreviewID},
		} {
			r := w.mcp(token, "budget_change_apply", args)
			if !strings.Contains(r.text, `"isError":true`) && !strings.Contains(r.text, `"error":`) {
				w.fail("%v: got %s", args, r.text)
			}
		}
		for _, tool := range []string{"budget_change_preview", "campaigns_find", "Budget_Change_Apply", "budget_change_apply ", "budget_change_apply\x00", "../budget_change_apply"} {
			r := w.mcp(token, tool, map[string]any{"preview_id": ready.PreviewID})
			if strings.Contains(r.text, `"applied"`) {
				w.fail("the tool %q applies", tool)
			}
		}
	})
	w.applies(ready.PreviewID)
}

// passedOn looks at everything that the platform has seen.
func passedOn(w *world) {
	ready := w.ready()
	token := w.token(w.agent())
	before := len(w.recorder.arrivals())
	headers := append(bearer(token), "Cookie", "a=caller's-cookie", "X-Caller", "caller's-header", "Proxy-Authorization", "Basic caller's-proxy", "Baggage", "caller=baggage",
		"Forwarded", "for=caller", "X-Forwarded-For", "192.0.2.77", "User-Agent", "caller's-agent")
	r := w.send("POST", "/v1/previews/"+ready.PreviewID+"/apply", "", headers...)
	want(w, "applying ("+r.text+")", r.status, http.StatusOK)
	if len(w.recorder.arrivals()) == before {
		w.fail("nothing arrived at the platform")
	}
	w.quiet(func() {
		for _, a := range w.recorder.arrivals() {
			all := a.URI + fmt.Sprint(a.Header)
			for _, token := range w.tokens {
				if strings.Contains(all, token) || strings.Contains(all, strings.Split(token, ".")[1]) {
					w.fail("a caller's token arrived at the platform: %s", a.URI)
				}
			}
			for _, mark := range []string{"caller's", "caller=", "192.0.2.77"} {
				if strings.Contains(all, mark) {
					w.fail("the caller's %s arrived at the platform: %s", mark, all)
				}
			}
			want(w, "the credential at the platform", a.Header.Get("Authorization"), "Bearer "+w.f.Ads.Token)
		}
	})
}

// secretsSaid searches everything that the service has said.
func secretsSaid(w *world) {
	at, err := url.Parse(w.database)
	w.must(err)
	password, _ := at.User.Password()
	secrets := map[string]string{
		"the deployment's secret": w.f.Secret, "the platform's credential": w.f.Ads.Token, "the console's secret": consoleSecret, "the database's URL": w.database,
	}
	if len(password) > 4 {
		secrets["the database's password"] = password
	}
	token := w.token(w.agent())
	secrets["a token"] = token
	signature := strings.Split(token, ".")
	secrets["a token's signature"] = signature[2]
	b := w.browser()
	b.signsIn(kimThere())
	secrets["a session"] = b.cookie
	w.quiet(func() {
		w.send("GET", "/v1/previews", "", bearer(token)...)
		w.send("GET", "/v1/previews?cursor="+token, "", bearer(token)...)
		w.send("GET", "/v1/previews", "", bearer(token+"x")...)
		w.send("GET", "/v1/previews", "", "Authorization", "Basic "+token)
		response, err := http.Get(w.p.Metrics)
		w.must(err)
		metrics, err := io.ReadAll(response.Body)
		w.must(err)
		_ = response.Body.Close()
		for place, text := range map[string]string{"the log": w.p.Log(), "the metrics": string(metrics), "an answer": strings.Join(w.said, "\n")} {
			for what, secret := range secrets {
				if strings.Contains(text, secret) {
					w.fail("%s holds %s", place, what)
				}
			}
			for _, inner := range []string{"goroutine ", "panic:", "SQLSTATE", "pgx/", "pgconn", "/cutonce/store", ".go:"} {
				if place == "an answer" && strings.Contains(text, inner) {
					w.fail("an answer speaks of the inside: %s", inner)
				}
			}
		}
		log := w.p.Log()
		for _, token := range w.tokens {
			if strings.Contains(log, token) {
				w.fail("the log holds somebody's token")
			}
		}
	})
}
