package preview

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cutonce/cutonce/internal/fault"
)

// CheckText refuses a free text (a reason, a key) that could not be stored or read: too short or too long in characters, not
// UTF-8, or with characters that would mislead a reader. Path names its place in the input.
func CheckText(path, text string, least, most int) error {
	n := utf8.RuneCountInString(strings.TrimSpace(text))
	key, args := "", fault.Args(nil)
	switch {
	case !utf8.ValidString(text):
		key = "field.json.invalid_utf8"
	case strings.ContainsFunc(text, misleads):
		key, args = "field.hidden_characters", fault.Args{"text": firstMisleading(text)}
	case n < least:
		key, args = "field.too_short", fault.Args{"least": least}
	case n > most:
		key, args = "field.too_long", fault.Args{"most": most}
	default:
		return nil
	}
	return fault.New(fault.InvalidInput, nil).WithField(path, key, args)
}

// misleads reports control characters, those that turn the direction of text, and invisible spaces. Line breaks and tabs are a
// reason's own, and joiners and variation selectors are part of emoji and of names.
func misleads(r rune) bool {
	switch r {
	case '\n', '\r', '\t':
		return false
	case '\u200b', '\u2060', '\ufeff':
		return true
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r)
}

func firstMisleading(text string) string {
	return fmt.Sprintf("⟨U+%04X⟩", []rune(text[strings.IndexFunc(text, misleads):])[0])
}
