package target

import "maps"

// Tally is what was counted for one key or one resource.
type Tally struct {
	// Received counts the change requests that arrived with a valid credential, refused, dropped and duplicate
	// ones too.
	Received int `json:"received"`
	// Effects counts the changes that really happened through the API. Changes from the console are not counted.
	Effects int `json:"effects"`
}

// Counters are the platform's own account of what reached it and what it did, since the last reset.
type Counters struct {
	Total      Tally            `json:"total"`
	Unkeyed    Tally            `json:"unkeyed"` // requests without an Idempotency-Key
	ByKey      map[string]Tally `json:"by_key"`
	ByResource map[string]Tally `json:"by_resource"`
}

type tallies struct {
	Counters
	// resourceOf remembers what a key was first used on, so that a look-up by key alone can be matched.
	resourceOf map[string]string
}

func newTallies() tallies {
	return tallies{
		Counters:   Counters{ByKey: map[string]Tally{}, ByResource: map[string]Tally{}},
		resourceOf: map[string]string{},
	}
}

// Counters are a copy of all counts.
func (p *Platform) Counters() Counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts.Counters
	c.ByKey, c.ByResource = maps.Clone(c.ByKey), maps.Clone(c.ByResource)
	return c
}

// CountersFor is the tally of one request key; zero if it never arrived.
func (p *Platform) CountersFor(key string) Tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts.ByKey[key]
}

// received counts a change request, before anything is known about its fate.
func (t *tallies) received(c call) {
	if c.op != OpChange {
		return
	}
	if _, known := t.resourceOf[c.key]; !known && c.key != "" {
		t.resourceOf[c.key] = c.resource
	}
	t.add(c.key, c.resource, Tally{Received: 1})
}

func (t *tallies) add(key, resource string, more Tally) {
	t.Total = t.Total.plus(more)
	t.ByResource[resource] = t.ByResource[resource].plus(more)
	if key == "" {
		t.Unkeyed = t.Unkeyed.plus(more)
		return
	}
	t.ByKey[key] = t.ByKey[key].plus(more)
}

func (t Tally) plus(more Tally) Tally {
	return Tally{Received: t.Received + more.Received, Effects: t.Effects + more.Effects}
}

// resourceFor is what a look-up is about: the resource it names, or what its key was first used on.
func (p *Platform) resourceFor(c call) string {
	if c.resource != "" {
		return c.resource
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts.resourceOf[c.key]
}
