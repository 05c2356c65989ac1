package metrics

import (
	"net/http"
	"strconv"
	"time"
)

// Requests measures every request that next serves. route gives the template of a served request; anything that it does not
// know must be one constant, so that callers cannot invent label values.
func (m *Metrics) Requests(next http.Handler, route func(*http.Request) string, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := now()
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			m.requests.WithLabelValues(method(r.Method), route(r), strconv.Itoa(seen.status)).Observe(now().Sub(began).Seconds())
		}()
		next.ServeHTTP(seen, r)
	})
}

func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return name
	}
	return "other"
}

// statusWriter remembers the status. Unwrap lets http.ResponseController flush and set deadlines through it.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

// WriteHeader remembers the first final status.
func (w *statusWriter) WriteHeader(status int) {
	if !w.wrote && status >= http.StatusOK {
		w.status, w.wrote = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes the body.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(p)
}

// Flush passes a flush on, for those who ask the writer itself and not a controller.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap gives the writer beneath.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
