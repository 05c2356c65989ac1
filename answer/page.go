package answer

import (
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// Changes is one page of a list of changes.
type Changes struct {
	Message    string   `json:"message"`
	Items      []Change `json:"items"`
	NextCursor string   `json:"next_cursor,omitempty"`
	Next       string   `json:"next"`
}

// Changes writes one page of a list, and says whether it was cut.
func (w Writer) Changes(list []commit.Change, cursor string) Changes {
	out := Changes{Message: w.Counted(len(list), -1, cursor), Items: make([]Change, 0, len(list)), NextCursor: cursor, Next: string(fault.NextNone)}
	for _, c := range list {
		out.Items = append(out.Items, w.Change(c))
	}
	return out
}

// Found writes one page of a find tool, and says how much of all that matches it is.
func (w Writer) Found(p connector.Page) Found {
	out := Found{Message: w.Counted(len(p.Items), p.Total, p.NextCursor), Items: make([]map[string]any, 0, len(p.Items)), NextCursor: p.NextCursor, Next: string(fault.NextNone)}
	if len(p.Items) == 0 {
		out.Next = string(fault.NextFixInput)
	}
	for _, item := range p.Items {
		out.Items = append(out.Items, shown(item))
	}
	if p.Total >= 0 {
		total := p.Total
		out.Total = &total
	}
	for _, warning := range p.Warnings {
		out.Warnings = append(out.Warnings, w.Say(warning))
	}
	return out
}

// shown is an item with the hidden characters of its texts made visible. The connector's own item is left as it is.
func shown(item map[string]any) map[string]any {
	out := make(map[string]any, len(item))
	for name, value := range item {
		if text, ok := value.(string); ok {
			value = visible.Text(text)
		}
		out[name] = value
	}
	return out
}

// Counted says how many are shown, of how many (-1 if nobody has counted), and that there are more.
func (w Writer) Counted(shown, total int, cursor string) string {
	said := w.Texts.T("list.shown", map[string]any{"shown": shown})
	switch {
	case shown == 0:
		said = w.Texts.T("list.empty", nil)
	case total >= 0:
		said = w.Texts.T("list.of_total", map[string]any{"shown": shown, "total": total})
	}
	if cursor != "" {
		said += " " + w.Texts.T("list.more", nil)
	}
	return said
}
