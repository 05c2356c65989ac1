package auth

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxIdentityBytes = 255

// isIdentity accepts text that names someone and is compared: printable, without anything that the eye cannot see, so that
// two names which look alike to a reader are not different by a hidden character. "/for:" is how actor.ID joins two names.
func isIdentity(s string) bool {
	return s != "" && len(s) <= maxIdentityBytes && utf8.ValidString(s) &&
		strings.TrimSpace(s) == s && !strings.Contains(s, "/for:") &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || isIgnorable(r) })
}

// isDisplayName accepts text that is only shown: letters, marks and ordinary spaces of any script.
func isDisplayName(s string) bool {
	return len(s) <= maxIdentityBytes && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// isScope accepts RFC 6749's scope-token.
func isScope(s string) bool {
	return s != "" && len(s) <= maxIdentityBytes &&
		!strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

func isIgnorable(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
