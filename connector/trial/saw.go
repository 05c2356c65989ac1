package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
)

// saw is what a check has seen: what the connector called the send, what its look-up says afterwards, and what the target
// counted (-1 if it does not count).
type saw struct {
	class   connector.Class
	found   connector.Found
	effects int
	sent    int
}

// String is what was seen, for people.
func (s saw) String() string {
	return fmt.Sprintf("%s, look-up %s, %s", s.class, s.found, counted(s.effects))
}

func counted(n int) string {
	switch n {
	case -1:
		return "effects not counted"
	case 1:
		return "1 effect"
	}
	return fmt.Sprintf("%d effects", n)
}

// want is what may be seen.
type want struct {
	class   []connector.Class
	found   []connector.Found
	effects []int
	// sends is how many requests may have left the connector.
	sends int
}

// String is what may be seen, for people.
func (w want) String() string {
	var effects []string
	for _, n := range w.effects {
		effects = append(effects, counted(n))
	}
	return fmt.Sprintf("%s, look-up %s, %s", either(w.class), either(w.found), strings.Join(effects, " or "))
}

func either[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, one := range all {
		words[i] = string(one)
	}
	return strings.Join(words, " or ")
}

// judge compares. The reason says what would follow from a wrong word.
func (w want) judge(s saw) (Status, string) {
	switch {
	case !slices.Contains(w.class, s.class):
		return Fail, fmt.Sprintf("the send is called %s, want %s: %s", s.class, either(w.class), consequence(s.class))
	case s.sent != w.sends:
		return Fail, fmt.Sprintf("the connector sent %d requests, want %d: it must never send again by itself", s.sent, w.sends)
	case !slices.Contains(w.found, s.found):
		return Fail, fmt.Sprintf("the look-up says %s, want %s", s.found, either(w.found))
	case s.effects >= 0 && !slices.Contains(w.effects, s.effects):
		return Fail, fmt.Sprintf("the target counted %s, want %s", counted(s.effects), want{effects: w.effects}.onlyEffects())
	}
	return Pass, ""
}

func (w want) onlyEffects() string {
	_, text, _ := strings.Cut(w.String(), ", look-up , ")
	return text
}

func consequence(called connector.Class) string {
	switch called {
	case connector.ClassApplied:
		return "a change that did not happen would be called applied"
	case connector.ClassNotSent:
		return "the change would be sent a second time"
	case connector.ClassRefused, connector.ClassDrifted:
		return "an effect that is there would be called not_applied, and prepared again"
	}
	return "what is certain would be left to a look-up"
}

// send executes the plan within a time and returns what the connector called it.
func (b *bench) send(ctx context.Context, within time.Duration) connector.Class {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := b.conn.Execute(ctx, b.plan, b.call)
	return connector.Classify(err)
}

// pause is between two look-ups of a target that is consistent only after a while.
const pause = 250 * time.Millisecond

// lookup asks for the effect; an answer that is not the expected one is asked again until the declared settle time is over.
func (b *bench) lookup(ctx context.Context, expected connector.Found) connector.Found {
	settled := time.NewTimer(b.able.SettleFor)
	defer settled.Stop()
	for {
		found := b.lookOnce(ctx)
		if found == expected || !b.able.Lookup || b.rig.Effects != nil {
			return found
		}
		select {
		case <-time.After(pause):
		case <-settled.C:
			return b.lookOnce(ctx)
		case <-ctx.Done():
			return found
		}
	}
}

func (b *bench) lookOnce(ctx context.Context) connector.Found {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	finding, err := b.conn.Lookup(ctx, b.plan, b.call)
	b.unasked = err
	if err != nil {
		return connector.EffectUnsure
	}
	return finding.Found
}

// truth is what a look-up should say when the effect is there, or is not.
func (b *bench) truth(there bool) connector.Found {
	switch {
	case !b.able.Lookup:
		return connector.EffectUnsure
	case there:
		return connector.EffectFound
	}
	return connector.EffectAbsent
}

// effects is what the target counted under the check's key, -1 if it does not count.
func (b *bench) effects() int {
	if b.rig.Effects == nil {
		return -1
	}
	return b.rig.Effects(b.call.Key)
}

// after is what is to be seen once a send has ended.
func (b *bench) after(ctx context.Context, class connector.Class, expected connector.Found) saw {
	return saw{class: class, found: b.lookup(ctx, expected), effects: b.effects(), sent: b.link.Sent()}
}
