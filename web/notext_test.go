package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
)

// TestWhatIsNoTextIsRefusedInWords: a database refuses a NUL and bytes that are no UTF-8, and no page may fail on them.
func TestWhatIsNoTextIsRefusedInWords(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	r := newRig(t, func(r *rig) { r.deps.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	id := r.pending(target.PlainJPY(0))
	admin, kim := r.as("admin"), r.as("kim")
	for _, path := range []string{
		"/history?person=%00", "/history?person=%ff", "/history?target=%00", "/history?action=%ff", "/history?target=a%00b&lang=en",
		"/history/export.csv?person=%00", "/history/export.ndjson?action=%ff", "/?action=%00", "/?action=%ff", "/?cursor=%00",
		"/bulk?action=%ff", "/bulk?action=budget_change&item=%00", "/outcomes?cursor=%ff", "/live?of=%00", "/sign-in?next=%00",
		"/changes/" + id.String() + "?%00=x",
	} {
		admin.get(path).want(http.StatusUnprocessableEntity, "characters that are no text")
	}
	digest := r.status(id).Preview.Digest.String()
	for path, form := range map[string][]string{
		"/changes/" + id.String() + "/decision?lang=ja":   {"decision", "reject", "reason", "no\x00", "digest", digest},
		"/changes/" + id.String() + "/resolution?lang=ja": {"reason", "seen\xff", "evidence", "x"},
		"/bulk?lang=ja":   {"action", "budget\x00", "decision", "reject", "reason", "no", "item", id.String() + ":" + digest},
		"/freeze?lang=ja": {"what", "tenant:", "for", "1h", "reason", "\xfe\xff"},
	} {
		kim.post(path, form...).want(http.StatusUnprocessableEntity, "文字として扱えないデータ")
	}
	r.browser().get("/sign-in?next=%ff").want(http.StatusUnprocessableEntity)
	if got := r.status(id).Status; got != commit.StatusPending {
		t.Errorf("status: got %s, want pending", got)
	}
	if got := logged.String(); strings.Contains(got, "level=ERROR") {
		t.Errorf("the log: got %.500q, want no failure", got)
	}
	// What is text and merely odd is searched for.
	admin.get("/history?person=%25_%27%EF%BC%85").want(http.StatusOK)
}

func TestAnUnknownKindIsNotDecided(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	item := id.String() + ":" + r.status(id).Preview.Digest.String()
	for _, action := range []string{"", "no_such", "budget_change.title", "../x"} {
		got := r.as("kim").post("/bulk", "action", action, "decision", "approve", "item", item).want(http.StatusNotFound)
		if strings.Contains(got.body, "action.") {
			t.Errorf("%q: the page holds a text's key", action)
		}
	}
	if got := r.status(id).Status; got != commit.StatusPending {
		t.Errorf("status: got %s, want pending", got)
	}
}
