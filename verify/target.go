package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// target is the counting target of a run: an HTTP server on loopback that holds texts under IDs, each with a version. It
// counts what reaches it and what takes effect by idempotency key, finds an effect by that key, refuses another version than
// the current one, and does what a check scripts.
type target struct {
	url   string
	close func()

	mu       sync.Mutex
	texts    map[string]string
	versions map[string]int
	received map[string]int
	effects  map[string]int
	// next treats the next change of a thing in the plain way's place; do makes the effect and says the status.
	next map[string]func(w http.ResponseWriter, r *http.Request, do func() int)
	// reading is called before a read of a thing is answered.
	reading map[string]func()
	// muted are the things, and the keys, whose reads get no answer, however often they are repeated.
	muted map[string]bool
}

const headersFor = 5 * time.Second

func newTarget() (t *target, err error) {
	t = &target{
		texts: map[string]string{}, versions: map[string]int{}, received: map[string]int{}, effects: map[string]int{},
		next: map[string]func(http.ResponseWriter, *http.Request, func() int){}, reading: map[string]func(){},
		muted: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /notes/{id}", t.read)
	mux.HandleFunc("PUT /notes/{id}", t.change)
	mux.HandleFunc("GET /effects", t.lookup)
	t.url, t.close, err = serve(mux.ServeHTTP)
	return t, err
}

// serve serves a handler on loopback until stop.
func serve(handler http.HandlerFunc) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, cannot("this machine lends no address on loopback: %v", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headersFor, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }() // ends with stop
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// script treats the next change of a thing.
func (t *target) script(id string, f func(w http.ResponseWriter, r *http.Request, do func() int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next[id] = f
}

// onRead is called at the next read of a thing, before its answer.
func (t *target) onRead(id string, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading[id] = f
}

// mute takes a thing's or a key's answers to reads away, or gives them back.
func (t *target) mute(id string, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.muted[id] = on
}

// count is what was counted under a key: requests that arrived, and effects.
func (t *target) count(key string) (received, effects int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.received[key], t.effects[key]
}

// note is a thing as the target shows it.
type note struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Version string `json:"version"`
}

func (t *target) read(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	t.mu.Lock()
	hook, muted := t.reading[id], t.muted[id]
	delete(t.reading, id)
	t.mu.Unlock()
	if muted {
		hangUp()
	}
	if hook != nil {
		hook()
	}
	t.mu.Lock()
	n := note{ID: id, Text: t.texts[id], Version: fmt.Sprintf("v%d", t.versions[id])}
	t.mu.Unlock()
	write(w, http.StatusOK, n)
}

func (t *target) change(w http.ResponseWriter, r *http.Request) {
	id, key := r.PathValue("id"), r.Header.Get("Idempotency-Key")
	var body note
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || key == "" {
		write(w, http.StatusBadRequest, said{Code: "invalid_body"})
		return
	}
	t.mu.Lock()
	t.received[key]++
	hook := t.next[id]
	delete(t.next, id)
	t.mu.Unlock()
	do := func() int { return t.effect(id, key, r.Header.Get("If-Match"), body.Text) }
	if hook != nil {
		hook(w, r, do)
		return
	}
	answer(w, key, do())
}

// effect makes the change unless its precondition is over.
func (t *target) effect(id, key, match, text string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if match != "" && match != fmt.Sprintf("v%d", t.versions[id]) {
		return http.StatusPreconditionFailed
	}
	t.effects[key]++
	t.versions[id]++
	t.texts[id] = text
	return http.StatusOK
}

// said is the target's answer to a change.
type said struct {
	Key  string `json:"key,omitempty"`
	Code string `json:"code,omitempty"`
}

func answer(w http.ResponseWriter, key string, status int) {
	a := said{Key: key}
	if status != http.StatusOK {
		a.Code = "version_moved"
	}
	write(w, status, a)
}

// refuse is a documented refusal without an effect.
func refuse(w http.ResponseWriter, key string) {
	write(w, http.StatusUnprocessableEntity, said{Key: key, Code: "refused"})
}

// hangUp ends the connection without an answer.
func hangUp() { panic(http.ErrAbortHandler) }

func (t *target) lookup(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	t.mu.Lock()
	muted := t.muted[key]
	t.mu.Unlock()
	if muted {
		hangUp()
	}
	_, effects := t.count(key)
	write(w, http.StatusOK, map[string]any{"key": key, "effects": effects})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a caller that hung up gets nothing
}

// await waits for a channel within the check's time.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("what a check waits for has not happened in time")
	}
}
