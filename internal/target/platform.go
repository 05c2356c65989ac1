package target

import (
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Op names what a request asks of a platform, whatever its path.
type Op string

// The operations that every simulated platform has.
const (
	OpFind       Op = "find"       // list or search
	OpRead       Op = "read"       // one resource
	OpChange     Op = "change"     // the only one with an effect
	OpLookup     Op = "lookup"     // what did this request key change?
	OpPermission Op = "permission" // may this user do this?
	OpLog        Op = "log"        // the platform's own log
)

func (o Op) known() bool {
	switch o {
	case OpFind, OpRead, OpChange, OpLookup, OpPermission, OpLog:
		return true
	}
	return false
}

// PlatformConfig is what every simulated platform is made from.
type PlatformConfig struct {
	// Token is the bearer credential of the one service that may call. Empty refuses every call.
	Token string
	// HonourKeys makes a change's Idempotency-Key count; it is recorded either way.
	HonourKeys bool
	// KeyTTL is how long an answer is kept for its key; 24 hours if zero.
	KeyTTL time.Duration
	// Clock dates log entries and ages keys. Nil is a logical clock: the first reading is 2026-01-01T00:00:00Z (for
	// [Deploys] 2026-12-01, after its seeded history), each later one a millisecond more.
	Clock func() time.Time
	// Log gets one line per effect and per fault used. Nil discards them.
	Log *slog.Logger
}

// Platform is the part that simulated platforms share: the door, the scripted faults, gates, idempotency keys,
// counters, log and permissions. Its methods are safe for concurrent use and do what the control API does.
type Platform struct {
	token  string
	keyTTL time.Duration
	clock  func() time.Time
	logger *slog.Logger
	// reseed puts the platform's own data and permissions back; it is called with mu held.
	reseed func()

	mu         sync.Mutex
	honourKeys bool
	ended      chan struct{} // closed by Reset and Close: whoever is held or delayed is cut
	closed     bool
	faults     []Fault
	gates      map[string]chan struct{}
	keys       map[string]*keyedAnswer
	counts     tallies
	happened   map[Event]int
	news       chan struct{} // closed and replaced at every event
	history    []Entry
	byKey      map[string][]int // indexes into history
	grants     map[grant]bool
	users      map[string]bool
}

func newPlatform(cfg PlatformConfig) *Platform {
	p := &Platform{
		token: cfg.Token, keyTTL: cfg.KeyTTL, clock: cfg.Clock, logger: cfg.Log,
		honourKeys: cfg.HonourKeys,
		news:       make(chan struct{}),
	}
	if p.keyTTL == 0 {
		p.keyTTL = 24 * time.Hour
	}
	if p.clock == nil {
		p.clock = logicalClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	p.clear()
	return p
}

// logicalClock makes two runs of the same requests alike to the byte. The caller serialises the readings.
func logicalClock(at time.Time) func() time.Time {
	return func() time.Time {
		now := at
		at = at.Add(time.Millisecond)
		return now
	}
}

// clear forgets everything scripted, counted and remembered. The caller holds mu, or is alone.
func (p *Platform) clear() {
	p.ended = make(chan struct{})
	p.faults = nil
	p.gates = map[string]chan struct{}{}
	p.keys = map[string]*keyedAnswer{}
	p.counts = newTallies()
	p.happened = map[Event]int{}
	p.history = nil
	p.byKey = map[string][]int{}
	p.grants = map[grant]bool{}
	p.users = map[string]bool{}
}

// Reset goes back to the seed. Requests that are held or delayed are cut without a further effect. The setting of
// honour_keys and the clock stay.
func (p *Platform) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	close(p.ended)
	p.clear()
	p.reseed()
	p.announce()
}

// Close cuts every request that is held or delayed, now and later, so that a server can shut down. The state stays
// readable. It never fails; the error is io.Closer's.
func (p *Platform) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.ended)
	}
	return nil
}

// SetHonourKeys turns idempotency keys on or off for requests that arrive from now on.
func (p *Platform) SetHonourKeys(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.honourKeys = on
}

// front completes a platform's own routes: the control API, what is not found, and the door before all of it.
func (p *Platform) front(own *http.ServeMux) http.Handler {
	p.controlRoutes(own)
	own.HandleFunc("/", serveNotFound)
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", serveHealth)
	open.Handle("/", p.door(own))
	return open
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	reply(http.StatusOK, map[string]string{"status": "ok"}).write(w)
}

func serveNotFound(w http.ResponseWriter, _ *http.Request) {
	refuse(http.StatusNotFound, "not_found", "there is nothing at this method and path").write(w)
}

// door lets only the configured credential through. Refused requests are neither counted nor matched with faults.
func (p *Platform) door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.admits(r.Header.Get("Authorization")) {
			a := refuse(http.StatusUnauthorized, "unauthenticated", "a valid bearer credential is required")
			a.header.Set("WWW-Authenticate", `Bearer realm="simulator"`)
			a.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *Platform) admits(authorization string) bool {
	scheme, credential, _ := strings.Cut(authorization, " ")
	same := subtle.ConstantTimeCompare([]byte(credential), []byte(p.token)) == 1
	return strings.EqualFold(scheme, "Bearer") && same && p.token != ""
}
