package httpserve

import (
	"io"
	"net/http"
	"time"
)

// boundBody gives every request body its time. Server.ReadTimeout would do so too, but it goes on counting while the
// answer is made, and would end a long wait.
func boundBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			control := http.NewResponseController(w)
			if control.SetReadDeadline(time.Now().Add(bodyFor)) == nil {
				r.Body = &boundedBody{ReadCloser: r.Body, control: control}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// boundedBody lifts the deadline once the body is read: from then on, reading only watches for the client's leaving.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads the body.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
