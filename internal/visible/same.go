package visible

import "golang.org/x/text/unicode/norm"

// Same reports whether two texts are the same characters, however a keyboard has composed them.
func Same(a, b string) bool { return norm.NFC.String(a) == norm.NFC.String(b) }
