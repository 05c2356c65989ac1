package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
)

const maxBody = 64 << 10

// readBody reads a change's body whole, or says how it is refused.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *answer) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		a := refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json")
		return nil, &a
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		a := refuse(http.StatusRequestEntityTooLarge, "too_large", "the body is over 64 KiB")
		return nil, &a
	case err != nil:
		a := refuse(http.StatusBadRequest, "invalid_body", "the body could not be read")
		return nil, &a
	}
	return body, nil
}

// readMembers reads a change's key and body, and completes the call's print; or it says how the request is refused as
// malformed.
func (c *call) readMembers(w http.ResponseWriter, r *http.Request, names ...string) (map[string]string, *answer) {
	if !validKey(c.key) || len(r.Header.Values("Idempotency-Key")) > 1 {
		a := refuse(http.StatusBadRequest, "invalid_key", "Idempotency-Key must be one value of at most 255 visible ASCII characters")
		return nil, &a
	}
	body, refusal := readBody(w, r)
	if refusal != nil {
		return nil, refusal
	}
	members, err := decodeStrings(body, names...)
	if err != nil {
		a := refuse(http.StatusBadRequest, "invalid_body", err.Error())
		return nil, &a
	}
	c.print = fingerprint(r, body)
	return members, nil
}

// decodeStrings reads one JSON object whose members are exactly the named strings, each once and spelled as here.
// encoding/json alone would accept duplicates and other cases, and two parsers would then read different requests.
func decodeStrings(body []byte, names ...string) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the body must be one JSON object")
	}
	members := map[string]string{}
	for d.More() {
		if err := decodeMember(d, members, names); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("the body is not complete JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has something after its object")
	}
	for _, name := range names {
		if _, ok := members[name]; !ok {
			return nil, fmt.Errorf("%s is missing", name)
		}
	}
	return members, nil
}

func decodeMember(d *json.Decoder, members map[string]string, names []string) error {
	t, err := d.Token()
	name, _ := t.(string)
	if err != nil {
		return errors.New("the body is not valid JSON")
	}
	if !slices.Contains(names, name) {
		return errors.New("the body has a member that is not known")
	}
	if _, twice := members[name]; twice {
		return fmt.Errorf("%s is there twice", name)
	}
	v, err := d.Token()
	value, ok := v.(string)
	if err != nil || !ok {
		return fmt.Errorf("%s must be a string", name)
	}
	members[name] = value
	return nil
}

// decodeControl reads a control request strictly into v.
func decodeControl(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the document")
	}
	return nil
}

// onlyParameters refuses a query with a name that is not known or given twice: a misspelt filter must not silently
// widen an answer.
func onlyParameters(r *http.Request, names ...string) *answer {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badParameter("the query cannot be read")
	}
	for name, values := range query {
		if !slices.Contains(names, name) || len(values) > 1 {
			return badParameter("a query parameter is unknown or given twice")
		}
	}
	return nil
}

func badParameter(message string) *answer {
	a := refuse(http.StatusBadRequest, "invalid_parameter", message)
	return &a
}
