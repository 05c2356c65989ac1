package target

import (
	"context"
	"net/http"
	"time"
)

// Stage is how far a request has come.
type Stage string

// The stages, in order. A request without a hold skips StageHeld; one without an effect skips StageEffect.
const (
	StageArrived Stage = "arrived" // counted as received, nothing done yet
	StageHeld    Stage = "held"    // waiting at a gate
	StageEffect  Stage = "effect"  // the effect is done, and visible to every reader
	StageDone    Stage = "done"    // answered or cut; nothing more will happen
)

func (s Stage) known() bool {
	return s == StageArrived || s == StageHeld || s == StageEffect || s == StageDone
}

// Event is one request reaching one stage.
type Event struct {
	Stage Stage
	Match
}

// shutGates makes sure that each gate the steps name is shut. A gate that requests still wait at is kept. The
// caller holds mu.
func (p *Platform) shutGates(steps []Step) {
	for _, s := range steps {
		if s.Gate == "" {
			continue
		}
		if g, ok := p.gates[s.Gate]; !ok || isClosed(g) {
			p.gates[s.Gate] = make(chan struct{})
		}
	}
}

// Release opens a gate, for those who wait at it and those who come later, until a new fault shuts it again. The
// empty name opens every gate.
func (p *Platform) Release(gate string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, g := range p.gates {
		if (gate == "" || gate == name) && !isClosed(g) {
			close(g)
		}
	}
}

// Wait returns when at least n requests that match e's operation, resource and key (empty: any) have reached e's
// stage since the last reset, or with the context's error.
func (p *Platform) Wait(ctx context.Context, e Event, n int) error {
	for {
		p.mu.Lock()
		count, news := p.countOf(e), p.news
		p.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Platform) countOf(e Event) int {
	total := 0
	for h, n := range p.happened {
		if h.Stage == e.Stage && e.matches(call{op: h.Op, resource: h.Resource, key: h.Key}) {
			total += n
		}
	}
	return total
}

// mark notes that c has reached a stage. The caller holds mu.
func (p *Platform) mark(s Stage, c call) {
	p.happened[Event{Stage: s, Match: Match{Op: c.op, Resource: c.resource, Key: c.key}}]++
	p.announce()
}

func (p *Platform) announce() {
	close(p.news)
	p.news = make(chan struct{})
}

// hold keeps the request at its gate. A caller who hangs up changes nothing: a real platform would go on as well.
func (p *Platform) hold(d delivery, c call, gate string) {
	p.mu.Lock()
	g := p.gates[gate]
	p.mark(StageHeld, c)
	p.mu.Unlock()
	if g == nil { // forgotten by a reset
		cut()
	}
	select {
	case <-g:
	case <-d.ended:
		cut()
	}
}

func (p *Platform) pause(d delivery, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.ended:
		cut()
	}
}

// cut ends the connection without another byte. net/http documents this panic as the way to do it.
func cut() { panic(http.ErrAbortHandler) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
