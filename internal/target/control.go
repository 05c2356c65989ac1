package target

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// controlRoutes mounts what every simulated platform's control API has.
func (p *Platform) controlRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /_sim/faults", p.controlAddFaults)
	mux.HandleFunc("GET /_sim/faults", p.controlFaults)
	mux.HandleFunc("DELETE /_sim/faults", p.controlClearFaults)
	mux.HandleFunc("GET /_sim/counters", p.controlCounters)
	mux.HandleFunc("POST /_sim/release", p.controlRelease)
	mux.HandleFunc("GET /_sim/wait", p.controlWait)
	mux.HandleFunc("POST /_sim/permissions", p.controlPermission)
	mux.HandleFunc("POST /_sim/settings", p.controlSettings)
	mux.HandleFunc("POST /_sim/reset", p.controlReset)
}

// settings is the body of POST /_sim/settings.
type settings struct {
	HonourKeys bool `json:"honour_keys"`
}

// gateName is the body of POST /_sim/release.
type gateName struct {
	Gate string `json:"gate"`
}

// control reads a body strictly, does what it says and answers the result; {} if there is none.
func control(w http.ResponseWriter, r *http.Request, body any, do func() (any, error)) {
	if err := decodeControl(w, r, body); err != nil {
		refuse(http.StatusBadRequest, "invalid_script", err.Error()).write(w)
		return
	}
	result, err := do()
	if err != nil {
		refuse(http.StatusBadRequest, "invalid_script", err.Error()).write(w)
		return
	}
	if result == nil {
		result = struct{}{}
	}
	reply(http.StatusOK, result).write(w)
}

func (p *Platform) controlAddFaults(w http.ResponseWriter, r *http.Request) {
	var faults []Fault
	control(w, r, &faults, func() (any, error) { return nil, p.AddFault(faults...) })
}

func (p *Platform) controlFaults(w http.ResponseWriter, _ *http.Request) {
	reply(http.StatusOK, p.Faults()).write(w)
}

func (p *Platform) controlClearFaults(w http.ResponseWriter, _ *http.Request) {
	p.ClearFaults()
	reply(http.StatusOK, struct{}{}).write(w)
}

func (p *Platform) controlCounters(w http.ResponseWriter, r *http.Request) {
	if key := r.URL.Query().Get("key"); key != "" {
		reply(http.StatusOK, p.CountersFor(key)).write(w)
		return
	}
	reply(http.StatusOK, p.Counters()).write(w)
}

func (p *Platform) controlRelease(w http.ResponseWriter, r *http.Request) {
	var body gateName
	control(w, r, &body, func() (any, error) {
		p.Release(body.Gate)
		return nil, nil
	})
}

func (p *Platform) controlPermission(w http.ResponseWriter, r *http.Request) {
	var change Permission
	control(w, r, &change, func() (any, error) {
		if change.User == "" || change.Verb == "" {
			return nil, errNoUser
		}
		p.SetPermission(change)
		return nil, nil
	})
}

func (p *Platform) controlSettings(w http.ResponseWriter, r *http.Request) {
	var body settings
	control(w, r, &body, func() (any, error) {
		p.SetHonourKeys(body.HonourKeys)
		return nil, nil
	})
}

func (p *Platform) controlReset(w http.ResponseWriter, _ *http.Request) {
	p.Reset()
	reply(http.StatusOK, struct{}{}).write(w)
}

const (
	defaultWait = 10 * time.Second
	longestWait = time.Minute
)

func (p *Platform) controlWait(w http.ResponseWriter, r *http.Request) {
	e, n, timeout, refusal := readWait(r)
	if refusal != nil {
		refusal.write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if err := p.Wait(ctx, e, n); err != nil {
		refuse(http.StatusGatewayTimeout, "not_in_time", "it has not happened in time").write(w)
		return
	}
	reply(http.StatusOK, struct{}{}).write(w)
}

func readWait(r *http.Request) (e Event, n int, timeout time.Duration, refusal *answer) {
	if refusal = onlyParameters(r, "stage", "op", "resource", "key", "n", "timeout_ms"); refusal != nil {
		return e, 0, 0, refusal
	}
	q := r.URL.Query()
	e = Event{Stage: Stage(q.Get("stage")), Match: Match{Op: Op(q.Get("op")), Resource: q.Get("resource"), Key: q.Get("key")}}
	if e.Stage == "" {
		e.Stage = StageArrived
	}
	if !e.Stage.known() || (e.Op != "" && !e.Op.known()) {
		return e, 0, 0, badParameter("stage or op is unknown")
	}
	n, timeout = 1, defaultWait
	var errN, errTimeout error
	if text := q.Get("n"); text != "" {
		n, errN = strconv.Atoi(text)
	}
	if text := q.Get("timeout_ms"); text != "" {
		var ms int
		ms, errTimeout = strconv.Atoi(text)
		timeout = time.Duration(ms) * time.Millisecond
	}
	if errN != nil || errTimeout != nil || n < 1 || timeout < 0 || timeout > longestWait {
		return e, 0, 0, badParameter("n is at least 1, timeout_ms 0 to 60000")
	}
	return e, n, timeout, nil
}
