package answer

import (
	"time"

	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
	"github.com/cutonce/cutonce/preview"
)

// Removals is who was removed as an approver.
type Removals struct {
	Message string    `json:"message"`
	Items   []Removal `json:"items"`
	Next    string    `json:"next"`
}

// Removal is one removed person. Message says it whole, in a sentence.
type Removal struct {
	Person  string    `json:"person"`
	Message string    `json:"message"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
}

// RemovedApprover answers who has removed somebody: the removal, and how many open changes have lost an approval.
type RemovedApprover struct {
	Message string  `json:"message"`
	Removal Removal `json:"removal"`
	Lost    int     `json:"lost"`
	Next    string  `json:"next"`
}

// Removals writes who was removed.
func (w Writer) Removals(all []preview.Removal) Removals {
	out := Removals{Message: w.Texts.T("approver.count", map[string]any{"n": len(all)}), Items: []Removal{}, Next: string(fault.NextNone)}
	for _, r := range all {
		out.Items = append(out.Items, w.removal(r))
	}
	return out
}

func (w Writer) removal(r preview.Removal) Removal {
	return Removal{
		Person: visible.Text(r.Person), By: visible.Text(r.By), Reason: r.Reason, Since: r.At.UTC(),
		Message: w.text("approver.removed", fault.Args{"person": r.Person, "by": r.By, "reason": r.Reason}),
	}
}

// RemovedApprover writes the answer to a removal.
func (w Writer) RemovedApprover(r preview.Removal, lost int) RemovedApprover {
	out := RemovedApprover{Removal: w.removal(r), Lost: lost, Next: string(fault.NextNone)}
	out.Message = w.Texts.T("join.sentences", map[string]any{
		"first": w.ended(out.Removal.Message), "second": w.Texts.T("approver.lost", map[string]any{"n": lost}),
	})
	return out
}

// RestoredApprover writes the answer to the end of a removal.
func (w Writer) RestoredApprover() Body {
	return Body{Message: w.Texts.T("approver.restored", nil), Next: string(fault.NextNone)}
}
