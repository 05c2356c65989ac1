package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestChangesAreTakenOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.prepared(raise(0, 11000)), r.prepared(raise(1, 90000))
	auditor := r.token("auditor")
	got := r.do(ask{method: "GET", path: "/v1/previews/export", token: auditor})
	got.want(t, 200, "")
	lines := bytes.Split(bytes.TrimSpace(got.raw), []byte("\n"))
	var ids []string
	for _, line := range lines {
		var change struct {
			ID   string `json:"preview_id"`
			End  bool   `json:"end"`
			Rows int    `json:"rows"`
		}
		if err := json.Unmarshal(line, &change); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if change.End && change.Rows != 2 {
			t.Errorf("the end: got %s, want two rows", line)
		}
		ids = append(ids, change.ID)
	}
	if len(ids) != 3 || ids[0] != second || ids[1] != first || ids[2] != "" {
		t.Errorf("got %v, want the newer, the older and the end", ids)
	}
	table := r.do(ask{method: "GET", path: "/v1/previews/export?format=csv&target_id=" + url.QueryEscape("2002001") + "&since=2020-01-01T00:00:00Z", token: auditor})
	table.want(t, 200, "")
	rows, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(table.raw, []byte("\ufeff")))).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][0] != first {
		t.Errorf("got %v, %v, want a header and %s", rows, err, first)
	}
	r.do(ask{method: "GET", path: "/v1/previews/export?format=xlsx", token: auditor}).want(t, 400, "invalid_input")
	r.do(ask{method: "GET", path: "/v1/previews/export?since=yesterday", token: auditor}).want(t, 400, "invalid_input")
	r.do(ask{method: "GET", path: "/v1/previews/export", token: r.token("kim")}).want(t, 403, "forbidden")
	// A HEAD would be on record as an export, and nothing would have left.
	head, err := http.DefaultClient.Do(r.request(ask{method: "HEAD", path: "/v1/previews/export", token: auditor}))
	r.must(err)
	_ = head.Body.Close()
	if head.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(head.Header.Get("Allow"), "GET") {
		t.Errorf("HEAD: got status %d, Allow %q, want 405 and GET", head.StatusCode, head.Header.Get("Allow"))
	}
}

func TestChangesAreSearched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 11000))
	auditor := r.token("auditor")
	for query, want := range map[string]int{
		"person=SATO": 1, "person=kim": 0, "contradicted=true": 0, "since=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339)): 0,
		"until=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339)): 1,
	} {
		got := r.do(ask{method: "GET", path: "/v1/previews?" + query, token: auditor})
		got.want(t, 200, "")
		var page struct {
			Items []struct {
				ID string `json:"preview_id"`
			} `json:"items"`
		}
		if err := json.Unmarshal(got.raw, &page); err != nil || len(page.Items) != want || want == 1 && page.Items[0].ID != id {
			t.Errorf("%s: got %s, %v, want %d", query, got.raw, err, want)
		}
	}
}

// TestARepeatedApplySaysSo: the first answer is of the call that applied, each further one of the same execution.
func TestARepeatedApplySaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 11000))
	for n, want := range []any{nil, true, true} {
		got := r.post("agent", of(id, "/apply"), object{})
		got.want(t, 200, "")
		if got.at("replayed") != want || got.text("status") != "applied" {
			t.Errorf("apply %d: got %s, replayed %v, want applied, replayed %v", n+1, got.text("status"), got.at("replayed"), want)
		}
	}
}
