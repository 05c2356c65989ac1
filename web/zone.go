package web

import (
	"fmt"
	"slices"
	"time"
)

// places are the time zones that a reader may choose among: those that the deployment names, the first being what everybody gets who
// has not chosen, and UTC. A zone is never guessed from a language; a browser that runs scripts knows its own.
type places []*time.Location

// openPlaces looks the names up. Without any, everything is in UTC.
func openPlaces(names []string) (places, error) {
	var all places
	for _, name := range append(slices.Clone(names), "UTC") {
		at, err := time.LoadLocation(name)
		if err != nil || name == "" || name == "Local" {
			return nil, fmt.Errorf("there is no time zone %q", name)
		}
		if all.named(name) == nil {
			all = append(all, at)
		}
	}
	return all, nil
}

// named is the zone of a name, nil if it is none of these.
func (p places) named(name string) *time.Location {
	at := slices.IndexFunc(p, func(l *time.Location) bool { return l.String() == name })
	if at < 0 {
		return nil
	}
	return p[at]
}

// settle is the zone of a page: the one chosen in the address, else the first.
func (p places) settle(in tongue, chosen string) tongue {
	in.zone, in.zoned = p[0], false
	if at := p.named(chosen); at != nil {
		in.zone, in.zoned = at, true
	}
	return in
}

// zoneLinks lead to this page in each zone. None is the present one until it was chosen: a browser may show its own.
func (c *console) zoneLinks(v *visit) []langLink {
	var links []langLink
	for _, at := range c.places {
		links = append(links, langLink{Name: at.String(), Href: v.hereWith("zone", at.String()), Current: v.in.zoned && at == v.in.zone})
	}
	return links
}

// stamp is a time as this reader reads it, with the name of its zone.
func (v *visit) stamp(at time.Time) string { return stampIn(at, v.in.zone) }

// stampIn writes a time exactly. Where a zone has no letters, its offset from UTC stands for them.
func stampIn(at time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	return at.In(zone).Format("2006-01-02 15:04:05 MST")
}

// day is the day of a time in the reader's zone, as a form's date field writes it.
func (v *visit) day(at time.Time) string { return at.In(v.in.zone).Format(time.DateOnly) }

// until makes a time that a text names one that this reader reads: services write it in UTC.
func (v *visit) until(args map[string]any) map[string]any {
	out := make(map[string]any, len(args))
	for name, value := range args {
		if text, ok := value.(string); ok && (name == "until" || name == "resets_at") {
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				value = v.stamp(at)
			}
		}
		out[name] = value
	}
	return out
}
