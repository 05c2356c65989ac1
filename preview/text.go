package preview

import (
	"strings"
	"unicode/utf8"

	"github.com/cutonce/cutonce/internal/fault"
)

// CheckText refuses a free text (a reason, a key) that could not be stored or read: too short or too long in characters, not
// UTF-8, or with a NUL in it. Path names its place in the input.
func CheckText(path, text string, least, most int) error {
	n := utf8.RuneCountInString(strings.TrimSpace(text))
	key, args := "", fault.Args(nil)
	switch {
	case !utf8.ValidString(text):
		key = "field.json.invalid_utf8"
	case strings.ContainsRune(text, 0):
		key, args = "field.hidden_characters", fault.Args{"text": "⟨U+0000⟩"}
	case n < least:
		key, args = "field.too_short", fault.Args{"least": least}
	case n > most:
		key, args = "field.too_long", fault.Args{"most": most}
	default:
		return nil
	}
	return fault.New(fault.InvalidInput, nil).WithField(path, key, args)
}
