package catalog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// plain are the texts without plural forms, taken apart once: nearly all there are. A template would be looked up, matched with a
// language and executed for every text of every answer.
type plain map[string][]segment

// segment is a piece of text, or the name of an argument that stands in its place.
type segment struct{ text, name string }

var placeholder = regexp.MustCompile(`\{\{\.(\w+)\}\}`)

// add takes apart the texts of one file. What has plural forms, or placeholders of another form, is left to templates.
func (p plain) add(file []byte) error {
	var messages map[string]json.RawMessage
	if err := json.Unmarshal(file, &messages); err != nil {
		return err
	}
	for key, raw := range messages {
		var text string
		if json.Unmarshal(raw, &text) != nil || strings.Count(text, "{{") != len(placeholder.FindAllString(text, -1)) {
			continue
		}
		p[key] = takeApart(text)
	}
	return nil
}

func takeApart(text string) []segment {
	var out []segment
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, segment{text: text[end:at[0]]}, segment{name: text[at[2]:at[3]]})
		end = at[1]
	}
	return append(out, segment{text: text[end:]})
}

// write puts a text together. An argument that is missing reads as it would in a template.
func (p plain) write(lang string, segments []segment, args map[string]any) string {
	if len(segments) == 1 {
		return segments[0].text
	}
	var b strings.Builder
	for _, s := range segments {
		if s.name == "" {
			b.WriteString(s.text)
			continue
		}
		switch v := args[s.name].(type) {
		case nil:
			b.WriteString("<no value>")
		case string:
			b.WriteString(v)
		case Formatter:
			b.WriteString(v.Format(lang))
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}
