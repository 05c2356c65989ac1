package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// How pages are kept fresh. A stream ends by itself now and then, and the browser comes back to another replica, perhaps.
const (
	tailEvery    = 500 * time.Millisecond
	beatEvery    = 15 * time.Second
	streamFor    = 15 * time.Minute
	writeFor     = 10 * time.Second
	tailLimit    = 200
	catchUps     = 10
	perPerson    = 6
	perProcess   = 2000
	comeBackInMS = 2000
)

// live tells open pages that there is news, never what the news is: they read it through the services, as anybody does. One reader of
// the feed serves every page of the process, and runs only while somebody listens.
type live struct {
	feed        preview.Feed
	log         *slog.Logger
	every, beat time.Duration

	mu        sync.Mutex
	listeners map[*listener]bool
	people    map[string]int
	// place is how far the reader has come; stop ends it, and is nil while nobody reads.
	place preview.Place
	stop  context.CancelFunc
	// left ends every stream, when the process is about to end.
	left chan struct{}
	once sync.Once
}

// listener is one open page.
type listener struct {
	tenant, person string
	// of restricts to one change.
	of   *preview.ID
	wake chan struct{}
	// The rest is guarded by live.mu: what has not been told yet, how far that goes, that the reader has failed, and that the person
	// has signed out somewhere.
	news, over, doubt bool
	place             preview.Place
}

func newLive(d Deps) *live {
	l := &live{
		feed: d.Feed, log: d.Log, every: tailEvery, beat: beatEvery, listeners: map[*listener]bool{}, people: map[string]int{},
		left: make(chan struct{}),
	}
	if d.LiveEvery > 0 {
		l.every = d.LiveEvery
	}
	if d.BeatEvery > 0 {
		l.beat = d.BeatEvery
	}
	return l
}

// close ends every stream, now and from now on.
func (l *live) close() { l.once.Do(func() { close(l.left) }) }

// now is a place of the feed from which nothing that happens after this call is missed, empty if there is no feed to read.
func (l *live) now(ctx context.Context) string {
	if l.feed == nil {
		return ""
	}
	l.mu.Lock()
	place, reading := l.place, l.stop != nil
	l.mu.Unlock()
	if !reading {
		var err error
		if place, err = l.feed.TailEnd(ctx); err != nil {
			return ""
		}
	}
	return writePlace(place)
}

// errCrowd refuses a stream more than a person, or the process, may have.
var errCrowd = errors.New("too many open streams")

// join adds a page, and starts the reader with the first one. What happens from now on is told to it.
func (l *live) join(ctx context.Context, w *listener) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.people[w.person] >= perPerson || len(l.listeners) >= perProcess {
		return errCrowd
	}
	if l.stop == nil {
		place, err := l.feed.TailEnd(ctx)
		if err != nil {
			return err
		}
		reading, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.place, l.stop = place, stop
		go l.read(reading, place)
	}
	w.place = l.place
	l.listeners[w] = true
	l.people[w.person]++
	return nil
}

func (l *live) leave(w *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.listeners[w] {
		return
	}
	delete(l.listeners, w)
	if l.people[w.person]--; l.people[w.person] == 0 {
		delete(l.people, w.person)
	}
	if len(l.listeners) == 0 {
		l.stop()
		l.stop = nil
	}
}

// read follows the feed until the last page has left. When the feed cannot be read the pages are told so by the end of their streams:
// they then ask by themselves.
func (l *live) read(ctx context.Context, place preview.Place) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		moved, next, err := l.feed.Tail(ctx, place, tailLimit)
		if ctx.Err() != nil {
			return
		}
		l.tell(ctx, moved, next, err)
		if place = next; len(moved) == tailLimit {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (l *live) tell(ctx context.Context, moved []preview.Moved, place preview.Place, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return // another reader has taken over
	}
	if err != nil {
		l.log.Warn("the feed of live pages cannot be read", "error", err)
	} else {
		l.place = place
	}
	for w := range l.listeners {
		w.over = w.over || err != nil
		w.news = w.news || w.concerned(moved)
		w.place = l.place
		if w.news || w.over {
			w.rouse()
		}
	}
}

func (w *listener) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// doubt makes every stream of a person ask now whether its own session is still there. Other replicas' streams ask with their next beat.
func (l *live) doubt(person string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.listeners {
		if w.person == person {
			w.doubt = true
			w.rouse()
		}
	}
}

// listening is the name under which a person's streams are kept.
func listening(who actor.Actor) string { return who.Tenant + " " + who.Person() }

// silent are events that no list and no waiting page shows any otherwise.
var silent = map[string]bool{"prepared": true, "probed": true}

func (w *listener) concerned(moved []preview.Moved) bool {
	for _, m := range moved {
		if m.Tenant == w.tenant && (w.of == nil && !silent[m.Kind] || w.of != nil && m.ID == *w.of) {
			return true
		}
	}
	return false
}

// take is what has not been told yet, and the place up to which the page then knows everything.
func (l *live) take(w *listener) (news, over, doubt bool, place preview.Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news, doubt = w.news, w.doubt
	w.news, w.doubt = false, false
	return news, w.over, doubt, w.place
}

// catchUp looks whether anything has happened to a page's changes after a place, which an earlier stream or the page itself had
// reached. Where there is too much to look through, something has.
func (l *live) catchUp(ctx context.Context, w *listener, after preview.Place) (bool, error) {
	for range catchUps {
		moved, next, err := l.feed.Tail(ctx, after, tailLimit)
		if err != nil || w.concerned(moved) {
			return true, err
		}
		if len(moved) < tailLimit {
			return false, nil
		}
		after = next
	}
	return true, nil
}

// stream is the live part of a page: server-sent events, for as long as the person is signed in.
func (c *console) stream(v *visit) error {
	if c.live.feed == nil {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	who, err := c.Sessions.Peek(v.r)
	switch {
	case fault.CodeOf(err) == fault.Unauthenticated && err != nil:
		return v.lastEvent("ended")
	case err != nil:
		return err
	}
	w := &listener{tenant: who.Tenant, person: listening(who), wake: make(chan struct{}, 1)}
	if of := v.r.URL.Query().Get("of"); of != "" {
		id, ok := preview.ParseID(of)
		if !ok {
			return fault.New(fault.NotFound, nil)
		}
		if _, err := c.Commits.Why(v.r.Context(), who, id); err != nil {
			return err
		}
		w.of = &id
	}
	err = c.live.join(v.r.Context(), w)
	switch {
	case errors.Is(err, errCrowd):
		v.w.WriteHeader(http.StatusNoContent) // which tells a browser not to come back: the page asks by itself
		return nil
	case err != nil:
		return err
	}
	defer c.live.leave(w)
	return c.follow(v, w, who)
}

// follow writes until the page or the session ends. The response has begun, so that its errors are the stream's end.
func (c *console) follow(v *visit, w *listener, who actor.Actor) error {
	s := newStream(v.w)
	news := false
	if after, ok := readPlace(v.lastPlace()); ok {
		var err error
		if news, err = c.live.catchUp(v.r.Context(), w, after); err != nil {
			return err
		}
	}
	s.begin()
	beat, end := time.NewTicker(c.live.beat), time.NewTimer(streamFor)
	defer beat.Stop()
	defer end.Stop()
	for beaten := false; ; {
		more, over, doubt, place := c.live.take(w)
		if (doubt || beaten) && !c.still(v, who) {
			s.event("ended")
			return nil
		}
		if s.write(news || more, place) != nil || over {
			return nil
		}
		news, beaten = false, false
		select {
		case <-v.r.Context().Done():
			return nil
		case <-c.live.left:
			return nil
		case <-end.C:
			return nil
		case <-w.wake:
		case <-beat.C:
			beaten = true
		}
	}
}

// still reports whether the session of a stream is there, and is that person's.
func (c *console) still(v *visit, who actor.Actor) bool {
	now, err := c.Sessions.Peek(v.r)
	return err == nil && now.ID() == who.ID()
}

// lastPlace is what the browser has seen: of an earlier stream, or when its page was made.
func (v *visit) lastPlace() string {
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		return last
	}
	return v.r.URL.Query().Get("after")
}

func (v *visit) lastEvent(name string) error {
	s := newStream(v.w)
	s.begin()
	s.event(name)
	return nil
}

// eventStream writes server-sent events.
type eventStream struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

func newStream(w http.ResponseWriter) eventStream {
	return eventStream{w, http.NewResponseController(w)}
}

func (s eventStream) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // a proxy that collects would hold back the news
	s.w.WriteHeader(http.StatusOK)
	_ = s.send(fmt.Sprintf("retry: %d\n\n", comeBackInMS))
}

// write tells how far the page knows everything, and that there is news if there is. Without news it is a sign of life.
func (s eventStream) write(news bool, place preview.Place) error {
	text := "id: " + writePlace(place) + "\n"
	if news {
		text += "event: changed\ndata: 1\n"
	}
	return s.send(text + "\n")
}

func (s eventStream) event(name string) { _ = s.send("event: " + name + "\ndata: 1\n\n") }

func (s eventStream) send(text string) error {
	// A reader that takes nothing is let go of: a deadline that has passed ends the write. A writer without deadlines waits.
	late := time.AfterFunc(writeFor, func() { _ = s.to.SetWriteDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.to.Flush()
}

// writePlace names a transaction only. The event in it that was read last may be another tenant's, whose changes no page names; so a page
// that comes back may be told once more of what it knows.
func writePlace(p preview.Place) string { return strconv.FormatUint(p.Transaction, 10) }

func readPlace(text string) (p preview.Place, ok bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return preview.Place{Transaction: n}, err == nil
}

// liveHere is where a page listens, to all changes of the tenant or to one; nil where it answers a post, which has no address to be read
// from again.
func (v *visit) liveHere(of string) *liveSpec {
	if v.r.Method != http.MethodGet {
		return nil
	}
	if v.place == "" {
		return &liveSpec{}
	}
	path := withQuery("/live", "after", v.place)
	if of != "" {
		path = withQuery(path, "of", of)
	}
	return &liveSpec{Stream: path}
}

// liveSpec makes a page read itself anew when there is news. Stream is empty where it has to ask by the clock.
type liveSpec struct{ Stream string }
