package web_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// stream is an open page's connection.
type stream struct {
	t      testing.TB
	status int
	lines  chan string
	close  context.CancelFunc
	// last is the newest place that the stream has told.
	last string
}

func (b *browser) listen(path string, headers ...string) *stream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &stream{t: b.t, status: resp.StatusCode, lines: make(chan string, 1000), close: cancel}
	go func() {
		defer close(s.lines)
		defer resp.Body.Close()
		for scanner := bufio.NewScanner(resp.Body); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	b.t.Cleanup(cancel)
	return s
}

// next is the next line that begins so, and whether there was one before the stream ended.
func (s *stream) next(prefix string) (string, bool) {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				return "", false
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				s.last = id
			}
			if strings.HasPrefix(line, prefix) {
				return line, true
			}
		case <-deadline:
			s.t.Fatalf("nothing that begins with %q came", prefix)
		}
	}
}

// want reads up to an event of this name.
func (s *stream) want(event string) {
	s.t.Helper()
	if got, _ := s.next("event: "); got != "event: "+event {
		s.t.Fatalf("got %q, want the event %s", got, event)
	}
}

// silent reads two signs of life and wants no event before them.
func (s *stream) silent() {
	s.t.Helper()
	for range 2 {
		line, open := "", true
		for !strings.HasPrefix(line, "id: ") && open {
			if line, open = s.next(""); strings.HasPrefix(line, "event: ") {
				s.t.Fatalf("got %s, want silence", line)
			}
		}
		if !open {
			s.t.Fatal("the stream has ended, want it open and silent")
		}
	}
}

// ended reads to the stream's end.
func (s *stream) ended() {
	s.t.Helper()
	if line, open := s.next("never"); open {
		s.t.Fatalf("got %q, want the end", line)
	}
}

func streamOf(p *page) string {
	p.t.Helper()
	return p.wantOne("main[data-live]").AttrOr("data-live", "")
}

func lively(r *rig) { r.deps.LiveEvery, r.deps.BeatEvery = 10*time.Millisecond, 50*time.Millisecond }

func TestAnOpenPageHearsOfNews(t *testing.T) {
	t.Parallel()
	r := newRig(t, lively)
	kim := r.as("kim")
	page := kim.get("/")
	early := r.pending(target.PlainJPY(0)) // after the page was made, before it listens
	s := kim.listen(streamOf(page))
	if s.status != http.StatusOK {
		t.Fatalf("got status %d, want 200", s.status)
	}
	s.want("changed")
	s.silent()
	r.pending(target.PlainJPY(1))
	s.want("changed")
	review := kim.get("/changes/" + early.String() + "/review")
	one := kim.listen(streamOf(review))
	one.silent()
	r.pending(target.PlainJPY(2))
	s.want("changed")
	one.silent() // it is of another change
	kim.submit(review, "form.decide", "decision", "approve")
	one.want("changed")
}

func TestAStreamGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, lively)
	kim := r.as("kim")
	path := streamOf(kim.get("/"))
	first := kim.listen(path)
	first.silent()
	first.close()
	again := kim.listen(path, "Last-Event-ID", first.last)
	again.silent() // nothing has happened meanwhile
	again.close()
	r.pending(target.PlainJPY(0))
	kim.listen(path, "Last-Event-ID", again.last).want("changed")
	kim.listen(path, "Last-Event-ID", "nonsense").silent()
}

func TestAStreamIsOfOneTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t, lively)
	rival, kim := r.as("rival"), r.as("kim")
	theirs, ours := rival.listen(streamOf(rival.get("/"))), kim.listen(streamOf(kim.get("/")))
	id := r.pending(target.PlainJPY(0))
	ours.want("changed")
	theirs.silent()
	if got := rival.listen("/live?of=" + id.String()).status; got != http.StatusNotFound {
		t.Errorf("another tenant's change: got status %d, want 404", got)
	}
	if got := kim.listen("/live?of=pv_nonsense").status; got != http.StatusNotFound {
		t.Errorf("no change: got status %d, want 404", got)
	}
}

func TestAStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, lively)
	kim := r.as("kim")
	home := kim.get("/")
	s := kim.listen(streamOf(home))
	s.silent()
	kim.submit(home, "footer form")
	s.want("ended")
	s.ended()
	late := kim.listen(streamOf(home))
	late.want("ended")
	late.ended()
}

func TestAPersonHasSoManyStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, lively)
	kim, path := r.as("kim"), "/live"
	var all []*stream
	for len(all) < 6 {
		s := kim.listen(path)
		s.silent()
		all = append(all, s)
	}
	if got := kim.listen(path).status; got != http.StatusNoContent {
		t.Errorf("one too many: got status %d, want 204, which browsers do not repeat", got)
	}
	r.as("tanaka").listen(path).silent()
	all[0].close()
	r.until(func() bool { s := kim.listen(path); defer s.close(); return s.status == http.StatusOK })
}

func TestStreamsEndBeforeTheProcessDoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, lively)
	kim := r.as("kim")
	s := kim.listen("/live")
	s.silent()
	r.console.EndWaits()
	s.ended()
	kim.listen("/live").ended()
}

// midway is a feed whose reader has come into the middle of a transaction of another tenant's.
type midway struct {
	preview.Feed
	at preview.Place
}

func (f midway) TailEnd(context.Context) (preview.Place, error) { return f.at, nil }

func (f midway) Tail(context.Context, preview.Place, int) ([]preview.Moved, preview.Place, error) {
	return nil, f.at, nil
}

func TestAPlaceNamesNoChange(t *testing.T) {
	t.Parallel()
	theirs := preview.NewID()
	r := newRig(t, lively, func(r *rig) { r.deps.Feed = midway{at: preview.Place{Transaction: 7, ID: theirs, Seq: 3}} })
	kim := r.as("kim")
	path := streamOf(kim.get("/"))
	s := kim.listen(path)
	s.silent()
	if named := path + " " + s.last; strings.Contains(named, theirs.String()) {
		t.Errorf("got %s, which names another tenant's change", named)
	}
	if s.last == "" || !strings.Contains(path, "after=") {
		t.Errorf("got %q and %q, want places", path, s.last)
	}
}

// flaky is a feed that can be broken.
type flaky struct {
	preview.Feed
	broken atomic.Bool
}

func (f *flaky) Tail(ctx context.Context, after preview.Place, limit int) ([]preview.Moved, preview.Place, error) {
	if f.broken.Load() {
		return nil, after, errors.New("pq: the secret of the feed")
	}
	return f.Feed.Tail(ctx, after, limit)
}

func TestABrokenFeedEndsItsStreamsAndLosesNothing(t *testing.T) {
	t.Parallel()
	f := &flaky{}
	r := newRig(t, lively, func(r *rig) { r.deps.Feed = f })
	kim := r.as("kim")
	page := kim.get("/")
	s := kim.listen(streamOf(page))
	s.silent()
	f.broken.Store(true)
	s.ended()
	r.pending(target.PlainJPY(0))
	f.broken.Store(false)
	kim.listen(streamOf(page), "Last-Event-ID", s.last).want("changed")
}

// TestSigningOutEndsTheStreamsAtOnce: the beat of this rig is an hour, so that nothing else could end them.
func TestSigningOutEndsTheStreamsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.LiveEvery, r.deps.BeatEvery = 10*time.Millisecond, time.Hour })
	here, there, other := r.as("kim"), r.as("kim"), r.as("tanaka")
	open := func(b *browser) *stream {
		s := b.listen(streamOf(b.get("/")))
		s.next("id: ")
		return s
	}
	mine, elsewhere, others := open(here), open(there), open(other)
	here.post("/sign-out").want(http.StatusOK)
	mine.want("ended")
	mine.ended()
	r.pending(target.PlainJPY(0))
	elsewhere.want("changed") // another session of the same person goes on
	there.post("/sign-out-everywhere").want(http.StatusOK)
	elsewhere.want("ended")
	elsewhere.ended()
	others.want("changed")
	r.pending(target.PlainJPY(1))
	others.want("changed")
}
