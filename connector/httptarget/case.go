package httptarget

import (
	"context"
	"errors"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

// Case is one send whose outcome is to be judged, with the two questions that can be asked about it at the target: does
// anything carry our mark there, and where does the target stand now? Only the mark proves anything.
type Case struct {
	// Version is the plan's.
	Version string
	// Noun and Value name, in logs and in evidence for operators, what is changed ("campaign") and what was sent ("amount").
	Noun, Value string

	// Mark finds the effect that carries our key: nil if the target's history is there and has none. An error, that there is no
	// history to ask included, leaves the question open. So does an effect under our key that is not what was sent.
	Mark func(context.Context) (*connector.Receipt, error)
	// Now reads the target.
	Now func(context.Context) (Standing, error)
}

// Standing is where a target stands. Ours says that it is at the very value that was sent, whoever set it.
type Standing struct {
	Reading connector.Reading
	Ours    bool
}

// Documented is what a target's documentation says about its refusals of one kind of change.
type Documented struct {
	// Refused: nothing was changed, wherever the target stands.
	Refused Refusals
	// Moved: the target is not at the plan's version.
	Moved Refusals
	// Already: the target is at the very value that was sent. Only a history can tell whether that was our own doing.
	Already Refusals
}

// Judge says what an answer other than the documented success proves. Even a documented refusal speaks only for the delivery
// that it answers: if a middlebox delivered the request twice and passed on the second answer, that one says that the target
// has moved, because the first delivery moved it. So our mark is looked for before any refusal is believed, and a refusal that
// our own effect would explain is not believed without it.
func (c Case) Judge(ctx context.Context, r Refusal, documented Documented) (connector.Receipt, error) {
	moved, already := documented.Moved.has(r), documented.Already.has(r)
	if !moved && !already && !documented.Refused.has(r) {
		return connector.Receipt{}, r
	}
	mine, err := c.Mark(ctx)
	switch {
	case err == nil && mine != nil:
		return *mine, nil
	case moved:
		return connector.Receipt{}, c.moved(ctx, r)
	case already:
		// Whether or not there is a history: an empty one may be late. The look-ups that follow wait for it.
		return connector.Receipt{}, fmt.Errorf("the %s is at the %s that was sent, and its history does not say whose doing that is: %w",
			c.Noun, c.Value, r)
	}
	return connector.Receipt{}, connector.Rejected(r.Status, r.Words())
}

// moved judges the target's word that it is not at the plan's version. It is a drift only if the target stands at something that is
// not ours: a history that has nothing of us may merely be late.
func (c Case) moved(ctx context.Context, r Refusal) error {
	now, err := c.Now(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the %s has moved, and it cannot be read to what: %w", c.Noun, r)
	case now.Ours:
		return fmt.Errorf("the %s has moved to the very %s that was sent, and its history does not say whose doing that is: %w",
			c.Noun, c.Value, r)
	}
	return &connector.DriftedError{Now: &now.Reading}
}

// Lookup is the connector's answer to a look-up. Found and absent rest on our mark alone. Where the target stands goes along
// for the operator; it never proves an effect, but it can cast doubt on an "absent": a history that is empty while the target
// has moved to our very value may merely be late.
func (c Case) Lookup(ctx context.Context) (connector.Finding, error) {
	mine, historyErr := c.Mark(ctx)
	now, readErr := c.Now(ctx)
	finding := connector.Finding{Found: connector.EffectUnsure}
	if readErr == nil {
		finding.Now = now.Reading.Values
	}
	switch {
	case historyErr != nil && readErr != nil:
		return connector.Finding{}, fmt.Errorf("looking up: %w", historyErr)
	case historyErr != nil:
		finding.Evidence = map[string]any{"history": "not_available"}
	case mine != nil:
		finding.Found, finding.Evidence = connector.EffectFound, mine.Evidence
	case readErr == nil && now.Reading.Version != c.Version && now.Ours:
		finding.Evidence = map[string]any{"history": "empty", c.Noun: "at_our_" + c.Value}
	case readErr == nil, errors.Is(readErr, fault.NotFound):
		finding.Found, finding.Evidence = connector.EffectAbsent, map[string]any{"history": "empty"}
	default:
		finding.Evidence = map[string]any{"history": "empty", c.Noun: "not_readable"}
	}
	return finding, nil
}
