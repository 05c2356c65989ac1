package target

import (
	"cmp"
	"fmt"
	"slices"
)

// Action is one thing that can go wrong.
type Action string

// The actions. "Before the effect" means that the request has arrived and been counted as received; "after" means
// that the effect, if any, is done and its answer stored, but not a byte of the reply has left.
const (
	DelayBefore       Action = "delay_before_effect"  // wait delay_ms, even if the caller hangs up
	DelayAfter        Action = "delay_after_effect"   // the same, after
	HoldBefore        Action = "hold_before_effect"   // wait for the gate, even if the caller hangs up
	HoldAfter         Action = "hold_after_effect"    // the same, after
	DropBefore        Action = "drop_before_effect"   // cut the connection: no effect, no reply
	DropAfter         Action = "drop_after_effect"    // the effect, then cut: no reply
	StatusBefore      Action = "status_before_effect" // answer status as a gateway in front would: no effect
	StatusAfter       Action = "status_after_effect"  // the effect, then answer status instead of the real answer
	TruncateBody      Action = "truncate_body"        // headers and half of the body, then cut
	DuplicateDelivery Action = "duplicate_delivery"   // deliver the change twice, as a broken middlebox would
	StaleRead         Action = "stale_read"           // read as before the last change
	LookupUnavailable Action = "lookup_unavailable"   // 503
	HideLookup        Action = "hide_lookup"          // 501 (or status): this target has no look-up
)

// Step is one action with its parameters; those that an action does not use must be left out.
type Step struct {
	Action Action `json:"action"`
	// DelayMS is for the delays: 1 to 600000.
	DelayMS int `json:"delay_ms,omitempty"`
	// Gate names the gate of a hold; "hold" if empty. See [Platform.Release].
	Gate string `json:"gate,omitempty"`
	// Status is what status_* answers (200 to 599); for hide_lookup it is optional, 404 or 501.
	Status int `json:"status,omitempty"`
	// RetryAfterS adds a Retry-After header to status_*.
	RetryAfterS int `json:"retry_after_s,omitempty"`
	// ReplyLast makes duplicate_delivery answer what the second delivery got rather than the first: a caller may
	// then read a refusal although the effect has happened.
	ReplyLast bool `json:"reply_last,omitempty"`
}

// Match says which requests a rule is for. An empty member matches anything.
type Match struct {
	Op       Op     `json:"op,omitempty"`
	Resource string `json:"resource,omitempty"` // the campaign's ID or "SERVICE/ENVIRONMENT"; of a look-up, the one it names or its key changed
	Key      string `json:"key,omitempty"`
}

func (m Match) matches(c call) bool {
	return (m.Op == "" || m.Op == c.op) &&
		(m.Resource == "" || m.Resource == c.resource) &&
		(m.Key == "" || m.Key == c.key)
}

// Forever, as Times, makes a rule stay until it is cleared.
const Forever = -1

// Fault is one rule of the queue.
type Fault struct {
	Match
	// Times is how many requests it is for: 0 means one, [Forever] all.
	Times int `json:"times,omitempty"`
	// Do is gone through in order: the steps before the effect, then those after it.
	Do []Step `json:"do"`
}

// Once is a fault with one step for the next request of op on resource.
func Once(op Op, resource string, step Step) Fault {
	return Fault{Match: Match{Op: op, Resource: resource}, Do: []Step{step}}
}

// AddFault appends rules to the queue, all or none. Gates that the rules name are shut (again).
func (p *Platform) AddFault(faults ...Fault) error {
	added := make([]Fault, 0, len(faults))
	for i, f := range faults {
		checked, err := f.checked()
		if err != nil {
			return fmt.Errorf("fault %d: %w", i, err)
		}
		added = append(added, checked)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range added {
		p.shutGates(f.Do)
	}
	p.faults = append(p.faults, added...)
	return nil
}

// Faults are the rules that still wait for a request.
func (p *Platform) Faults() []Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Fault{}, p.faults...)
}

// ClearFaults forgets the queue. Requests that already took a rule go on with it.
func (p *Platform) ClearFaults() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// takeFault uses up the first matching rule once. The caller holds mu.
func (p *Platform) takeFault(c call) []Step {
	i := slices.IndexFunc(p.faults, func(f Fault) bool { return f.matches(c) })
	if i < 0 {
		return nil
	}
	steps := p.faults[i].Do
	switch f := &p.faults[i]; {
	case f.Times == Forever:
	case f.Times > 1:
		f.Times--
	default:
		p.faults = slices.Delete(p.faults, i, i+1)
	}
	p.logger.Info("fault used", "op", c.op, "resource", c.resource, "key", c.key, "action", steps[0].Action)
	return steps
}

// checked is a copy with defaults filled in, or what is wrong with the rule.
func (f Fault) checked() (Fault, error) {
	if f.Op != "" && !f.Op.known() {
		return Fault{}, fmt.Errorf("op %q is unknown", f.Op)
	}
	if f.Times < Forever {
		return Fault{}, fmt.Errorf("times %d is neither a count nor %d", f.Times, Forever)
	}
	if len(f.Do) == 0 {
		return Fault{}, fmt.Errorf("do has no step")
	}
	f.Times = cmp.Or(f.Times, 1)
	f.Do = slices.Clone(f.Do)
	for i := range f.Do {
		if err := f.Do[i].check(f.Op); err != nil {
			return Fault{}, fmt.Errorf("do[%d]: %w", i, err)
		}
	}
	return f, nil
}

// check refuses a step that could never do what its writer meant, and fills in its defaults.
func (s *Step) check(op Op) error {
	rule, ok := stepRules[s.Action]
	if !ok {
		return fmt.Errorf("action %q is unknown", s.Action)
	}
	if len(rule.ops) > 0 && !slices.Contains(rule.ops, op) {
		return fmt.Errorf("%s needs op to be one of %v", s.Action, rule.ops)
	}
	if rule.fill != nil {
		rule.fill(s)
	}
	switch {
	case rule.delay != (s.DelayMS != 0), s.DelayMS < 0, s.DelayMS > 600_000:
		return fmt.Errorf("delay_ms %d does not fit %s", s.DelayMS, s.Action)
	case rule.gate != (s.Gate != ""):
		return fmt.Errorf("gate does not fit %s", s.Action)
	case rule.status != (s.Status != 0), s.Status != 0 && (s.Status < 200 || s.Status > 599):
		return fmt.Errorf("status %d does not fit %s", s.Status, s.Action)
	case s.RetryAfterS != 0 && (!rule.status || s.RetryAfterS < 0):
		return fmt.Errorf("retry_after_s does not fit %s", s.Action)
	case s.ReplyLast && s.Action != DuplicateDelivery:
		return fmt.Errorf("reply_last does not fit %s", s.Action)
	}
	return nil
}

// stepRule says which parameters an action has and, if not all, for which operations it makes sense.
type stepRule struct {
	delay, gate, status bool
	ops                 []Op
	fill                func(*Step)
}

var stepRules = map[Action]stepRule{
	DelayBefore:       {delay: true},
	DelayAfter:        {delay: true},
	HoldBefore:        {gate: true, fill: func(s *Step) { s.Gate = cmp.Or(s.Gate, "hold") }},
	HoldAfter:         {gate: true, fill: func(s *Step) { s.Gate = cmp.Or(s.Gate, "hold") }},
	DropBefore:        {},
	DropAfter:         {},
	StatusBefore:      {status: true},
	StatusAfter:       {status: true},
	TruncateBody:      {},
	DuplicateDelivery: {ops: []Op{OpChange}},
	StaleRead:         {ops: []Op{OpRead, OpFind, OpLookup}},
	LookupUnavailable: {ops: []Op{OpLookup}},
	HideLookup:        {status: true, ops: []Op{OpLookup}, fill: func(s *Step) { s.Status = cmp.Or(s.Status, 501) }},
}
