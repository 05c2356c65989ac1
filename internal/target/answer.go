package target

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// answer is a whole reply, made before its first byte leaves, so that it can be stored, delayed, cut or halved.
type answer struct {
	status int
	header http.Header
	body   []byte
}

type errorDocument struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// reply renders a document. The documents are our own structs of strings, numbers and booleans, which always render.
func reply(status int, document any) answer {
	body, err := json.Marshal(document)
	if err != nil {
		panic("target: a document that cannot be rendered: " + err.Error())
	}
	return answer{status: status, header: http.Header{}, body: append(body, '\n')}
}

func refuse(status int, code, message string) answer {
	var d errorDocument
	d.Error.Code, d.Error.Message = code, message
	return reply(status, d)
}

func (a answer) clone() answer {
	a.header = a.header.Clone()
	return a
}

func (a answer) write(w http.ResponseWriter) {
	a.writeHead(w)
	if a.bodyAllowed() {
		_, _ = w.Write(a.body) // a caller who has gone is no business of ours
	}
}

// writeHalf promises the whole body and sends half of it.
func (a answer) writeHalf(w http.ResponseWriter) {
	a.writeHead(w)
	if a.bodyAllowed() {
		_, _ = w.Write(a.body[:len(a.body)/2])
	}
	_ = http.NewResponseController(w).Flush() // a writer that cannot flush loses the half as well: still truncated
}

func (a answer) writeHead(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Cache-Control", "no-store")
	if a.bodyAllowed() {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
}

func (a answer) bodyAllowed() bool {
	return a.status != http.StatusNoContent && a.status != http.StatusNotModified
}
