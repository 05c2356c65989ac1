package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cutonce/cutonce/answer"
)

// entry is one event of a timeline: what it says in words, and under them the bytes that its hash covers.
type entry struct {
	answer.Event
	// Told is the kind under which it is told: one that only says again what the one before it said is told as that.
	Told  string
	Facts []fact
}

// fact is one thing that an event says. How is how it is shown: as somebody's own words, as a name of the machine's, or plainly.
type fact struct {
	Label, Text string
	How         string
}

// The ways to show a fact.
const (
	asWords = "words"
	asCode  = "code"
	asPlain = "plain"
)

// told are the members of events' bodies that are shown, in their order: under which family of names their values are known to the
// reader, and how they are shown. What is not here is in the bytes below.
var told = []struct{ member, family, how string }{
	{"verdict", "web.verdict.", asPlain}, {"result", "web.result.", asPlain}, {"reason", "", asWords}, {"justification", "", asWords},
	{"evidence", "", asWords}, {"missing", "", asPlain}, {"rule", "", asCode}, {"target", "", asCode}, {"digest", "", asCode},
	{"policy_version", "", asCode}, {"attempt", "", asCode}, {"request_id", "", asCode},
}

// timeline writes a change's events, the first of them first. It leaves none out.
func (v *visit) timeline(events []answer.Event) []entry {
	all := make([]entry, 0, len(events))
	for i, e := range events {
		told := e.Kind
		if told == "handed_over" && i > 0 && events[i-1].Kind == told {
			told += "_still"
		}
		all = append(all, entry{Event: e, Told: told, Facts: v.facts(e.Body)})
	}
	return all
}

// facts reads a body for people. One that is no object says nothing here, and stands below as it is.
func (v *visit) facts(body string) []fact {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(body)))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return nil
	}
	var out []fact
	if applied, ok := members["applied"].(bool); ok {
		out = append(out, fact{v.t("web.fact.stated"), v.t("web.effect." + effectOf(applied)), asPlain})
	}
	for _, m := range told {
		text, _ := members[m.member].(string)
		if text == "" {
			continue
		}
		if m.family != "" {
			text = word(v.texts, m.family, text)
		}
		out = append(out, fact{v.t("web.fact." + m.member), text, m.how})
	}
	if fields, _ := members["fields"].([]any); len(fields) > 0 {
		names := make([]string, 0, len(fields))
		for _, name := range fields {
			names = append(names, v.writer().Label("field_name", fmt.Sprint(name)))
		}
		out = append(out, fact{v.t("web.fact.fields"), strings.Join(names, ", "), asPlain})
	}
	if said := targetsWords(members["detail"]); said != "" {
		out = append(out, fact{v.t("web.fact.said"), said, asWords})
	}
	return out
}

func effectOf(applied bool) string {
	if applied {
		return "applied"
	}
	return "not_applied"
}

// targetsWords is the reason that a result gives, which is the target's or the connector's.
func targetsWords(detail any) string {
	members, _ := detail.(map[string]any)
	said, _ := members["reason"].(string)
	return strings.TrimSpace(said)
}

// clash is what a contradiction is between: the events that say one thing and the other.
type clash struct{ Before, After entry }

// clashOf finds it: the last word before the proof that contradicts it. Nil where the timeline has none.
func clashOf(all []entry) *clash {
	var before *entry
	for i, e := range all {
		switch e.Kind {
		case "not_applied", "resolved", "probed":
			before = &all[i]
		case "contradicted":
			if before != nil {
				return &clash{*before, e}
			}
		}
	}
	return nil
}
