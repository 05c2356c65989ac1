package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"
)

// keyedAnswer is what is remembered for an idempotency key. A nil answer means that the first request is still
// being worked on.
type keyedAnswer struct {
	print  string
	answer *answer
	at     time.Time
}

// keyClaim is the outcome of presenting a key: canned is the answer to give without acting, mine the place where
// the answer must be stored. Both are nil where keys play no part.
type keyClaim struct {
	canned *answer
	mine   *keyedAnswer
}

func (p *Platform) claim(c call) keyClaim {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.honourKeys || c.key == "" || c.print == "" || c.refusal != nil {
		return keyClaim{}
	}
	now := p.clock()
	known := p.keys[c.key]
	switch {
	case known == nil || now.Sub(known.at) >= p.keyTTL:
		mine := &keyedAnswer{print: c.print, at: now}
		p.keys[c.key] = mine
		return keyClaim{mine: mine}
	case known.print != c.print: // checked first, as draft-ietf-httpapi-idempotency-key-header has it
		a := refuse(http.StatusUnprocessableEntity, "key_reused", "this Idempotency-Key was used for another request")
		return keyClaim{canned: &a}
	case known.answer == nil:
		a := refuse(http.StatusConflict, "in_progress", "the first request with this Idempotency-Key is in progress")
		return keyClaim{canned: &a}
	}
	a := known.answer.clone()
	a.header.Set("Idempotency-Replayed", "true")
	return keyClaim{canned: &a}
}

// abandon frees a key whose request ended without acting (dropped, cut, or answered by a gateway).
func (p *Platform) abandon(c call, claim keyClaim) {
	if claim.mine == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if claim.mine.answer == nil && p.keys[c.key] == claim.mine {
		delete(p.keys, c.key)
	}
}

// fingerprint identifies a request for [Platform.claim]: method, path and body, as they came.
func fingerprint(r *http.Request, body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", r.Method, r.URL.Path)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

const maxKeyLength = 255

// validKey accepts visible ASCII; an absent key is valid.
func validKey(key string) bool {
	for i := range len(key) {
		if key[i] < '!' || key[i] > '~' {
			return false
		}
	}
	return len(key) <= maxKeyLength
}
