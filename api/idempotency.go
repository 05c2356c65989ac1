package api

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/cutonce/cutonce/internal/fault"
)

const (
	keyHeader = "Idempotency-Key"
	// mostKey bounds a key in characters; the agents' tools bound theirs alike.
	mostKey = 128
)

var (
	// quotedKey is a string of RFC 8941 §3.3.3, which is what draft-ietf-httpapi-idempotency-key-header-07 asks for. The
	// draft defines no parameters, so none are read.
	quotedKey = regexp.MustCompile(`^"((?:[ !#-\[\]-~]|\\["\\])+)"$`)
	// bareKey is what many clients send all the same: the same characters without what a list, a parameter or quoting needs.
	bareKey = regexp.MustCompile(`^[A-Za-z0-9._~:/+=-]+$`)
)

// idempotencyKey reads the header; empty if there is none. A bare key is the same key as the quoted one.
func idempotencyKey(h http.Header) (string, error) {
	given := h.Values(keyHeader)
	switch len(given) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", badKey("field.idempotency_key.repeated")
	}
	key := strings.Trim(given[0], " \t")
	if m := quotedKey.FindStringSubmatch(key); m != nil {
		key = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[1])
	} else if !bareKey.MatchString(key) {
		return "", badKey("field.idempotency_key.syntax")
	}
	if len(key) > mostKey {
		return "", badKey("field.idempotency_key.syntax")
	}
	return key, nil
}

func badKey(key string) error {
	return fault.New(fault.InvalidInput, nil).WithField(keyHeader, key, fault.Args{"most": mostKey})
}
