package answer

import (
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

// Hides reports whether this writer masks what is sensitive in a change. Where it does, the change's input, its request's body and its
// document are not to be written either: they hold the same values.
func (w Writer) Hides(p preview.Preview) bool {
	return p.Plan.Sensitive() && (w.Revealed == preview.ID{} || w.Revealed != p.ID)
}

// row is one field of a change. A masked row still says whether it changes.
func (w Writer) row(p preview.Preview, c connector.Change) Row {
	row := Row{Field: c.Field, Label: w.Label("field_name", c.Field), Before: w.Value(c.Before), After: w.Value(c.After)}
	if !c.Sensitive {
		return row
	}
	changed := !c.Before.Equal(c.After)
	row.Sensitive, row.Changed = true, &changed
	if !w.Hides(p) {
		return row
	}
	how := "value.hidden.stays"
	if changed {
		how = "value.hidden.changes"
	}
	row.Before, row.After = w.masked(c.Before, "value.hidden"), w.masked(c.After, how)
	return row
}

// masked stands for a value. One that is not known hides nothing, and says so as any other.
func (w Writer) masked(v connector.Value, key string) *Value {
	if !v.Known() {
		return nil
	}
	return &Value{Shown: w.Texts.T(key, nil), Masked: true}
}

// Column writes a field at preview, now, and as requested. Of a sensitive one it says which of the two it is now.
func (w Writer) Column(c commit.Column) Column {
	out := Column{Field: c.Field, Label: w.Label("field_name", c.Field), Shows: string(c.Shows)}
	if c.Shows == "" {
		out.AtPreview, out.Now, out.Requested = w.Value(c.AtPreview), w.Value(c.Now), w.Value(c.Requested)
		return out
	}
	hidden := Value{Shown: w.Texts.T("value.hidden", nil), Masked: true}
	out.AtPreview, out.Requested = &hidden, &hidden
	if c.Shows != commit.ShowsUnknown {
		out.Now = &Value{Shown: w.Texts.T("value.hidden."+out.Shows, nil), Masked: true}
	}
	return out
}

// input is what the requester sent. Which of its members a sensitive field came from only the connector knows, so of a change that has
// one no member is written but the reason, which is for people.
func (w Writer) input(p preview.Preview) connector.Input {
	if !w.Hides(p) {
		return p.Input
	}
	out := connector.Input{}
	for name, value := range p.Input {
		if name != "reason" {
			value = connector.Mask
		}
		out[name] = value
	}
	return out
}
