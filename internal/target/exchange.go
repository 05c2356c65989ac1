package target

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one authenticated request in the platform's own terms.
type call struct {
	op            Op
	resource, key string
	// print identifies what a change asks for; a key that comes again with another print is refused. Empty: the
	// request takes no part in keys.
	print string
	// refusal is the answer to a malformed request; it is counted and suffers faults as any other.
	refusal *answer
}

// delivery is what a request was given when it arrived: the fault's steps, and the reset it must not outlive.
type delivery struct {
	steps []Step
	ended chan struct{}
}

func (d delivery) find(a Action) (Step, bool) {
	i := slices.IndexFunc(d.steps, func(s Step) bool { return s.Action == a })
	if i < 0 {
		return Step{}, false
	}
	return d.steps[i], true
}

// serve takes a request through arrival, the steps before the effect, the act itself, and the steps after it. act
// runs with mu held, at most once per delivery; stale asks it to read as before the last change.
func (p *Platform) serve(w http.ResponseWriter, c call, act func(stale bool) answer) {
	d := p.arrive(c)
	defer p.finish(c)
	a := p.deliver(c, d, act)
	if s, twice := d.find(DuplicateDelivery); twice {
		second := p.deliver(c, p.arriveAgain(c, d), act)
		if s.ReplyLast {
			a = second
		}
	}
	a = p.after(c, d, a)
	if _, truncated := d.find(TruncateBody); truncated {
		a.writeHalf(w)
		cut()
	}
	a.write(w)
}

func (p *Platform) arrive(c call) delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.received(c)
	d := delivery{steps: p.takeFault(c), ended: p.ended}
	p.mark(StageArrived, c)
	return d
}

// arriveAgain is the second delivery of a duplicate: counted, but the fault is not applied twice.
func (p *Platform) arriveAgain(c call, first delivery) delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.received(c)
	p.mark(StageArrived, c)
	return delivery{ended: first.ended}
}

func (p *Platform) finish(c call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark(StageDone, c)
}

// deliver claims the key first, so that a second request with it learns that the first is in progress, even while
// the first is held.
func (p *Platform) deliver(c call, d delivery, act func(stale bool) answer) answer {
	claim := p.claim(c)
	defer p.abandon(c, claim)
	if a, stop := p.before(c, d); stop {
		return a
	}
	if c.refusal != nil {
		return *c.refusal
	}
	if claim.canned != nil {
		return *claim.canned
	}
	return p.perform(d, claim, act)
}

// perform does the act and stores its answer under its key in one step.
func (p *Platform) perform(d delivery, claim keyClaim, act func(stale bool) answer) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(d.ended) && !p.closed {
		cut() // a reset came in between: this request belongs to a world that is gone
	}
	_, stale := d.find(StaleRead)
	a := act(stale)
	if claim.mine != nil {
		claim.mine.answer = &a
	}
	return a
}

// before goes through the steps that come before the effect; stop means that the effect must not happen.
func (p *Platform) before(c call, d delivery) (a answer, stop bool) {
	for _, s := range d.steps {
		switch s.Action {
		case DelayBefore:
			p.pause(d, time.Duration(s.DelayMS)*time.Millisecond)
		case HoldBefore:
			p.hold(d, c, s.Gate)
		case DropBefore:
			cut()
		case StatusBefore:
			return injected(s), true
		case LookupUnavailable:
			return refuse(http.StatusServiceUnavailable, "lookup_unavailable", "look-ups are not available now"), true
		case HideLookup:
			return refuse(s.Status, "lookup_unsupported", "this platform keeps no change history by key"), true
		}
	}
	return answer{}, false
}

func (p *Platform) after(c call, d delivery, a answer) answer {
	for _, s := range d.steps {
		switch s.Action {
		case DelayAfter:
			p.pause(d, time.Duration(s.DelayMS)*time.Millisecond)
		case HoldAfter:
			p.hold(d, c, s.Gate)
		case DropAfter:
			cut()
		case StatusAfter:
			a = injected(s)
		}
	}
	return a
}

// injected is the answer of a gateway, which knows nothing of what is behind it.
func injected(s Step) answer {
	code := strings.ToLower(strings.ReplaceAll(http.StatusText(s.Status), " ", "_"))
	a := refuse(s.Status, code, "simulated answer "+strconv.Itoa(s.Status))
	if s.Status < 400 {
		a = reply(s.Status, map[string]string{"status": code})
	}
	if s.RetryAfterS > 0 {
		a.header.Set("Retry-After", strconv.Itoa(s.RetryAfterS))
	}
	return a
}
