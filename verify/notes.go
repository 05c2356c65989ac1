package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
)

const (
	noteAction = "verify_note_change"
	noteSystem = "cutonce-verify"
	writeScope = "verify:write"
	readScope  = "verify:read"
)

// noteConnector changes the notes of the counting target, with the sender that real connectors use.
type noteConnector struct {
	base   string
	able   connector.Capabilities
	sender *connector.Sender
	reader *connector.Reader
}

var _ connector.Connector = (*noteConnector)(nil)

func newNoteConnector(base string, clocks connector.Clocks) (*noteConnector, error) {
	cfg := connector.HTTPConfig{Timeout: clocks.SendFor}
	sender, err := connector.NewSender(cfg)
	if err != nil {
		return nil, err
	}
	reader, err := connector.NewReader(cfg)
	if err != nil {
		return nil, err
	}
	able := connector.Capabilities{Lookup: true, Precondition: true, SettleFor: clocks.SettleFor, Sandbox: true}
	return &noteConnector{base: base, able: able, sender: sender, reader: reader}, nil
}

func (n *noteConnector) close() { n.reader.Close() }

func newAttempt() uuid.UUID { return uuid.New() }

// Describe offers the one action.
func (n *noteConnector) Describe() connector.Description {
	return connector.Description{System: noteSystem, Able: n.able, Actions: []connector.Action{{
		Name: noteAction, Version: 1, Scopes: []string{writeScope}, ReadScopes: []string{readScope},
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["id","text"],
			"properties":{"id":{"type":"string","minLength":1},"text":{"type":"string"}}}`),
	}}}
}

// Authorize allows: who may do what is not this target's matter.
func (n *noteConnector) Authorize(context.Context, actor.Actor, connector.Verb, connector.Target) (connector.Permission, error) {
	return connector.Permission{Allowed: true}, nil
}

// Find offers nothing.
func (n *noteConnector) Find(context.Context, actor.Actor, string, connector.Input) (connector.Page, error) {
	return connector.Page{Total: -1}, nil
}

// Prepare reads the note and plans its new text.
func (n *noteConnector) Prepare(ctx context.Context, _ actor.Actor, _ string, in connector.Input) (connector.Plan, connector.Impact, error) {
	now, err := n.Read(ctx, connector.Target{System: noteSystem, Kind: "note", ID: in.Text("id")})
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	body, err := canon.Marshal(map[string]any{"text": in.Text("text")})
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	return connector.Plan{
		Target: now.Target, Version: now.Version,
		Request: connector.Request{Method: http.MethodPut, Path: "/notes/" + url.PathEscape(now.Target.ID), Body: body, Precondition: now.Version},
		Changes: []connector.Change{{Field: "text", Before: now.Values["text"], After: connector.Text(in.Text("text"))}},
	}, connector.Impact{Reversible: true}, nil
}

// Read reads the note now.
func (n *noteConnector) Read(ctx context.Context, t connector.Target) (connector.Reading, error) {
	var now note
	if err := n.get(ctx, "/notes/"+url.PathEscape(t.ID), &now); err != nil {
		return connector.Reading{}, err
	}
	return connector.Reading{
		Target: connector.Target{System: noteSystem, Kind: "note", ID: now.ID, Name: now.ID}, Version: now.Version,
		Values: map[string]connector.Value{"text": connector.Text(now.Text)},
	}, nil
}

func (n *noteConnector) get(ctx context.Context, path string, into any) error {
	reply, err := n.reader.Get(ctx, n.base+path, http.Header{})
	if err != nil {
		return err
	}
	if reply.Status != http.StatusOK {
		return fmt.Errorf("the counting target answers %d", reply.Status)
	}
	return json.Unmarshal(reply.Body, into)
}

// Execute sends the plan once. Only an answer with our key proves anything.
func (n *noteConnector) Execute(ctx context.Context, p connector.Plan, c connector.Call) (connector.Receipt, error) {
	reply, err := n.sender.Send(ctx, connector.Outgoing{
		Method: p.Request.Method, URL: n.base + p.Request.Path, Body: p.Request.Body,
		Header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {c.Key}, "If-Match": {p.Request.Precondition}},
	})
	if err != nil {
		return connector.Receipt{}, err
	}
	var a said
	if err := json.Unmarshal(reply.Body, &a); err != nil || a.Key != c.Key {
		return connector.Receipt{}, errors.New("the answer is not about this change")
	}
	switch {
	case reply.Status == http.StatusOK && a.Code == "":
		return connector.Receipt{Evidence: map[string]any{"status": reply.Status}}, nil
	case reply.Status == http.StatusPreconditionFailed && a.Code == "version_moved":
		return connector.Receipt{}, &connector.DriftedError{}
	case reply.Status == http.StatusUnprocessableEntity && a.Code == "refused":
		return connector.Receipt{}, connector.Rejected(reply.Status, a.Code)
	}
	return connector.Receipt{}, fmt.Errorf("an answer that says nothing: %d", reply.Status)
}

// Lookup finds an effect by our key.
func (n *noteConnector) Lookup(ctx context.Context, _ connector.Plan, c connector.Call) (connector.Finding, error) {
	var found struct {
		Key     string `json:"key"`
		Effects int    `json:"effects"`
	}
	if err := n.get(ctx, "/effects?"+url.Values{"key": {c.Key}}.Encode(), &found); err != nil {
		return connector.Finding{}, err
	}
	switch {
	case found.Key != c.Key:
		return connector.Finding{Found: connector.EffectUnsure}, nil
	case found.Effects > 0:
		return connector.Finding{Found: connector.EffectFound, Evidence: map[string]any{"effects": found.Effects}}, nil
	}
	return connector.Finding{Found: connector.EffectAbsent}, nil
}
