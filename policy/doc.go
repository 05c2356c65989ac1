// Package policy decides what a proposed change needs: nothing, people, or that nobody may have it.
//
// It promises that a ruling is a pure function of a policy file and of Facts that the service computed; that everything in a
// file is checked when it is loaded (unknown keys, types, currencies, literals); that money is compared exactly and only with
// money of its own currency; and that whatever cannot be told makes a ruling stricter, never milder. No name in a request can
// choose, skip or change a rule: rules see a request's fields only where they read input.FIELD.
//
// It does not promise that a policy is wise, does not know who has approved (that is approvals), keeps no totals over several
// changes, and reads no clock.
//
// A policy is YAML with a default and a list of rules in CEL; examples/policies/budgets.yaml explains every part of it and is
// the shortest way in. In code: Load or Parse at start, CheckActions against the registry, then Evaluate at prepare and again
// at apply.
//
// # Severities
//
// All rules about the action are asked. The riskiest answer wins: deny, then require, then allow; warn adds a warning to any
// of them. Several met requirements are joined by AND, because each was written to stand alone and taking only the strictest
// would drop, say, finance when two of ads are asked; where one rule's seat contains another's, the same people fill both.
// When nothing matched, the default's people are asked; a file without a default is refused.
//
// # What cannot be told
//
// A rule cannot be told when it meets a missing value (of another currency, from zero, not given) or an error (an overflow, a
// failed conversion, the cost limit). Then an allow is not met, a require is met, a deny asks the default's people and says
// so in a warning, and a warn warns. As everywhere in CEL, && and || do not need what cannot be told when the other side
// decides, and has(…) asks whether a value is there.
package policy
