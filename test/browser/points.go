package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// point is one line of the console's checklist.
type point struct {
	number int
	what   string
	checks []func(*scene)
	// long checks are made by the command, and not within the tests of everything.
	long []func(*scene)
	// instead says what shows a point that no browser can.
	instead string
}

// points are the checklist, in its order and under its numbers.
func points() []point {
	return []point{
		{number: 1, what: "what is shown is what is hashed and sent; a decision on anything else is refused in words", checks: list(shownHashedSent, staleDigest)},
		{number: 2, what: "difference, percent, what is left of the cap, whether it can be undone; what is unknown is called so and is not 0", checks: list(impactTold)},
		{number: 3, what: "before and after of each field, in words as well; the exact bytes and their digest one press away", checks: list(beforeAfter)},
		{number: 4, what: "nothing is cut silently; no approval before the risky rows were on the screen, with scripts and without", checks: list(riskyRowsSeen, nothingCut)},
		{number: 5, what: "the riskiest row comes first", checks: list(riskiestFirst)},
		{number: 6, what: "the rule that asks, the policy's version and the values it saw", checks: list(ruleTold)},
		{number: 7, what: "the agent's words are plain text, marked as unverified: no link, no markup, no script", checks: list(plainWords)},
		{number: 8, what: "how long ago the target was read; a target that has moved takes the button away", checks: list(freshTold)},
		{number: 9, what: "a countdown by the server's clock; the buttons go dead while the page is open", checks: list(clockOfTheServer, expiresWhileOpen)},
		{number: 10, what: "the quorum, who decided and when; why one cannot decide on one's own change; the requester applies", checks: list(quorumTold, ownChangeExplained, appliedByHand)},
		{number: 11, what: "rejecting is as easy as approving, two taps from a link; the server keeps the reason's minimum", checks: list(rejectAsEasy, twoTaps)},
		{number: 12, what: "high risk is confirmed by writing the exact name, pasted or composed otherwise", checks: list(typedConfirmation)},
		{number: 13, what: "high risk asks for a fresh sign-in, and comes back to the change", checks: list(freshLogin)},
		{number: 14, what: "many of one kind at once: their sum, an answer for each, none of high risk", checks: list(manyAtOnce)},
		{number: 15, what: "two people at once: the second is told who decided, and their text is kept", checks: list(twoAtOnce)},
		{number: 16, what: "news moves neither focus, nor the row under the pointer, nor typed text; a thousand changes stay usable", checks: list(nothingJumps, typingUndisturbed), long: list(thousand)},
		{number: 17, what: "every state in words; a lost stream comes back without losing a row; without streams the page asks by itself", checks: list(statesWritten, resumed), long: list(nothingLost, polled)},
		{number: 18, what: "keys, not where somebody writes or composes; they can be switched off", checks: list(keysWork, composing, switchedOff)},
		{number: 19, what: "nothing is shown as approved before the server has said so; a form is sent once", checks: list(notBefore)},
		{number: 20, what: "the record only grows, names requests and digests, shows its chain's check, and prints", checks: list(wholeLife, appendsOnly, printed)},
		{number: 21, what: "axe finds nothing on any screen; targets of 44 px; the focus is always seen and marked", checks: list(toured(21, false)), long: list(toured(21, true))},
		{number: 22, what: "never colour alone: mark and word, before and after; forced colours; no motion for who wants none", checks: list(toured(22, false), forcedColours, unmoved), long: list(toured(22, true))},
		{number: 23, what: "no sideways scrolling at 320 px or 200 %; a phone shows the whole review at once, and its bar covers nothing", checks: list(toured(23, false), zoomed, fitsOnePhone), long: list(toured(23, true))},
		{number: 24, what: "language, titles, headings, focus; approved and rejected without scripts, and without a mouse", checks: list(toured(24, false), withoutScripts, focusAtHeading, keyboardOnly)},
		{number: 25, what: "a strict policy on every page: nothing inline, no injected script or markup, no frame, nobody else asked", checks: list(toured(25, false), inlineRefused, neverFramed)},
		{number: 26, what: "one cookie, out of scripts' reach; other sites' forms are refused; a link decides nothing", checks: list(ownCookie, otherSitesRefused, linksDecideNothing)},
		{number: 27, what: "characters that hide or turn are shown in their place; letters of another alphabet are marked one by one", checks: list(hiddenMadeVisible, mixedMarked)},
		{number: 28, what: "secrets and personal data are masked, and a reveal is audited", instead: "no shipped connector has a field that is secret; go test ./web -run 'Hidden|Reveal' searches every page of one that does"},
		{number: 29, what: "every screen whole in both languages, by the browser's wish and by choice", checks: list(toured(29, false), choosesLanguage), long: list(toured(29, true))},
		{number: 30, what: "amounts with code and decimals of their currency, in figures of one width; times with their zone", checks: list(amounts, toured(30, false))},
	}
}

func list(checks ...func(*scene)) []func(*scene) { return checks }

// choose picks points by their numbers; all that a browser can show if none is named.
func choose(numbers string) (chosen []point, err error) {
	wanted, all := map[string]bool{}, numbers == ""
	for name := range strings.SplitSeq(numbers, ",") {
		if name != "" {
			wanted[name] = true
		}
	}
	for _, p := range points() {
		name := strconv.Itoa(p.number)
		if (all || wanted[name]) && p.instead == "" {
			chosen = append(chosen, p)
		}
		delete(wanted, name)
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no point %q", name)
	}
	return chosen, nil
}

// elsewhere names the points that no browser can show.
func elsewhere() string {
	var b strings.Builder
	for _, p := range points() {
		if p.instead != "" {
			fmt.Fprintf(&b, "%2d  not shown by a browser: %s: %s\n", p.number, p.what, p.instead)
		}
	}
	return b.String()
}

// show makes the checks of a point, says how it went, and reports whether it holds.
func (s *stage) show(ctx context.Context, p point, out io.Writer) bool {
	began := time.Now()
	problem := ""
	for _, check := range append(append([]func(*scene){}, p.checks...), p.long...) {
		problem = cmp.Or(problem, s.play(ctx, check))
	}
	word := "holds"
	if problem != "" {
		word = "FAILS"
	}
	fmt.Fprintf(out, "%2d  %s %5.1fs  %s\n", p.number, word, time.Since(began).Seconds(), p.what)
	if problem != "" {
		fmt.Fprintf(out, "      %s\n", problem)
	}
	return problem == ""
}
