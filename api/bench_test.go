package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkGetPreview is a read of a change without the network: routing, token (from the cache), one query, the answer.
func BenchmarkGetPreview(b *testing.B) {
	r := newRig(b)
	made := r.post("agent", previewsPath, raise(0, 12000))
	made.want(b, http.StatusCreated, "")
	req := r.request(ask{method: "GET", path: of(made.text("preview_id"), ""), as: "agent"})
	req.RequestURI = req.URL.RequestURI()
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		r.api.ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			b.Fatalf("got %d: %s", w.Code, w.Body)
		}
	}
}
