package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cutonce/cutonce/answer"
)

// readBody reads an answer. In a problem (RFC 9457) the member "status" is HTTP's, so the change's own tells.
func readBody(raw []byte, status int) (answer.Body, error) {
	if status < http.StatusBadRequest {
		var body answer.Body
		return body, json.Unmarshal(raw, &body)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return answer.Body{}, fmt.Errorf("HTTP %d: %s: %w", status, raw, err)
	}
	delete(members, "status")
	rest, err := json.Marshal(members)
	if err != nil {
		return answer.Body{}, err
	}
	var body answer.Body
	if err := json.Unmarshal(rest, &body); err != nil {
		return body, fmt.Errorf("HTTP %d: %s: %w", status, raw, err)
	}
	if body.Change != nil {
		body.Status = body.Change.Status
	}
	return body, nil
}

// randomHex is a secret of 32 bytes.
func randomHex() string {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		panic(err)
	}
	return hex.EncodeToString(raw)
}
