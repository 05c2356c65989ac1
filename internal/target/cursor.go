package target

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// readLimit is the size of a page: 1 to 100, 20 if not said.
func readLimit(q url.Values) (int, *answer) {
	text := q.Get("limit")
	if text == "" {
		return 20, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		return 0, badParameter("limit is 1 to 100")
	}
	return n, nil
}

// cursorOf names the last ID shown, sealed to the search it belongs to.
func cursorOf(filter url.Values, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(seal(filter) + last))
}

func openCursor(filter url.Values, text string) (after string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(raw), seal(filter))
}

func seal(filter url.Values) string {
	sum := sha256.Sum256([]byte(filter.Encode()))
	return string(sum[:6])
}
