package answer

import (
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/preview"
)

// Exposure is what the changes that a cap counts come to beside this one, in the cap's present window, and what is left of its limit.
// Message says it whole, in a sentence.
type Exposure struct {
	Cap     string `json:"cap"`
	Per     string `json:"per"`
	Window  string `json:"window"`
	Message string `json:"message"`
	Limit   *Value `json:"limit"`
	// Applied, Reserved (approved or being applied) and Unknown are taken; Pending is asked for by changes that wait for people.
	Applied  *Value `json:"applied"`
	Reserved *Value `json:"reserved"`
	Unknown  *Value `json:"unknown"`
	Pending  *Value `json:"pending"`
	// Asked is what this change takes, Left what there is before it; Fits says whether there is room for it now.
	Asked    *Value    `json:"asked"`
	Left     *Value    `json:"left"`
	Fits     bool      `json:"fits"`
	ResetsAt time.Time `json:"resets_at"`
}

// Exposures writes what an open change's caps come to.
func (w Writer) Exposures(all []preview.Exposure) []Exposure {
	var out []Exposure
	for _, e := range all {
		out = append(out, w.exposure(e))
	}
	return out
}

func (w Writer) exposure(e preview.Exposure) Exposure {
	value := func(a money.Amount) *Value { return w.Value(connector.Money(a)) }
	out := Exposure{
		Cap: e.Cap, Per: e.Per, Window: e.Window, Limit: value(e.Limit), Applied: value(e.Applied), Reserved: value(e.Reserved),
		Unknown: value(e.Unknown), Pending: value(e.Pending), Asked: value(e.Asked), ResetsAt: e.ResetsAt,
	}
	left, err := e.Left()
	if err != nil { // beyond 64 bits: there is no room, and no number for it
		left = money.Amount{Currency: e.Limit.Currency}
	}
	over, _ := e.Asked.Cmp(left) // of one currency
	out.Left, out.Fits = value(left), err == nil && over <= 0
	shown := func(v *Value) string { return v.Shown }
	out.Message = w.text("exposure.cap", fault.Args{
		"cap": e.Cap, "window": e.Window, "left": shown(out.Left), "limit": shown(out.Limit), "applied": shown(out.Applied),
		"reserved": shown(out.Reserved), "unknown": shown(out.Unknown), "pending": shown(out.Pending), "asked": shown(out.Asked),
		"resets_at": e.ResetsAt.Format(time.RFC3339),
	})
	return out
}
