package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
)

// notes is a second, tiny action of another team: what one room of tools must keep apart shows only with two.
type notes struct{}

func (notes) Describe() connector.Description {
	text := []byte(`{"action.note_change.title":"Change a note","action.note_change.preview":"Prepares.","action.note_change.apply":"Applies.","notes.summary":"A note."}`)
	return connector.Description{
		System: "notes", Texts: fstest.MapFS{"en.json": {Data: text}, "ja.json": {Data: text}},
		Actions: []connector.Action{{
			Name: "note_change", Version: 1, Scopes: []string{"notes:write", "notes:sign"}, ReadScopes: []string{"notes:read"},
			Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`),
		}},
	}
}

func (notes) Authorize(context.Context, actor.Actor, connector.Verb, connector.Target) (connector.Permission, error) {
	return connector.Permission{Allowed: true}, nil
}

func (notes) Find(context.Context, actor.Actor, string, connector.Input) (connector.Page, error) {
	return connector.Page{}, nil
}

func (notes) Prepare(_ context.Context, _ actor.Actor, _ string, in connector.Input) (connector.Plan, connector.Impact, error) {
	return connector.Plan{
		Target: connector.Target{System: "notes", Kind: "note", ID: "1", Name: "Note"}, Version: "v1",
		Request: connector.Request{Method: "PUT", Path: "/1", Body: json.RawMessage(`{}`)},
		Changes: []connector.Change{{Field: "text", Before: connector.Text("old"), After: connector.Text(in.Text("text"))}},
	}, connector.Impact{Summary: connector.Say("notes.summary", nil), Reversal: connector.Say("notes.summary", nil)}, nil
}

func (notes) Read(_ context.Context, t connector.Target) (connector.Reading, error) {
	return connector.Reading{Target: t, Version: "v1"}, nil
}

func (notes) Execute(context.Context, connector.Plan, connector.Call) (connector.Receipt, error) {
	return connector.Receipt{}, nil
}

func (notes) Lookup(context.Context, connector.Plan, connector.Call) (connector.Finding, error) {
	return connector.Finding{Found: connector.EffectUnsure}, nil
}

func withNotes(r *rig) { r.more = append(r.more, notes{}) }

const everyScope = "ads:read ads:budget notes:write notes:sign"

// A preview of one action handed to the apply of another is refused, and the right tool is named.
func TestAnotherActionsPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t, withNotes)
	token := r.issuer.token(with("scope", everyScope))
	note := r.call(token, "note_change_preview", `{"text":"new"}`)
	if note.IsError {
		t.Fatalf("preview: %s", note.Raw)
	}
	got := r.call(token, "budget_change_apply", id(note.PreviewID))
	if got.Code != "invalid_input" || len(got.Fields) != 1 || !strings.Contains(got.Fields[0].Reason, "note_change_apply") {
		t.Errorf("got %s, want a refusal that names note_change_apply", got.Raw)
	}
}

// Asking for an approval needs what the change's own action needs; the challenge names all of that and nothing else.
func TestStepUpOfASharedTool(t *testing.T) {
	t.Parallel()
	r := newRig(t, withNotes)
	note := r.call(r.issuer.token(with("scope", everyScope)), "note_change_preview", `{"text":"new"}`)
	ask := func(scope, args string) exchange {
		raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approval_request","arguments":%s,"_meta":%s}}`, args, meta)
		return r.post(r.issuer.token(with("scope", scope)), raw, modernHeaders("tools/call", "approval_request", "en"))
	}
	args := fmt.Sprintf(`{"preview_id":%q,"justification":"x"}`, note.PreviewID)
	x := ask("ads:read ads:budget notes:write", args)
	if got, want := x.header.Get("Www-Authenticate"), `scope="notes:write notes:sign"`; x.status != 403 || !strings.Contains(got, want) {
		t.Errorf("got %d %s, want 403 with %s", x.status, got, want)
	}
	if x := ask("notes", args); x.status != 200 {
		t.Errorf("got %d for a token with the scopes of this action alone: %s", x.status, x.text)
	}
	unknown := strings.Replace(args, note.PreviewID, "pv_0000000000000000000000000g", 1)
	if x := ask("ads:read", unknown); x.status != 200 || !strings.Contains(x.text, `"not_found"`) {
		t.Errorf("got %d for an unknown ID, want the answer not_found: %s", x.status, x.text)
	}
}

// The first challenge asks for read scopes alone, of all actions.
func TestFirstChallenge(t *testing.T) {
	t.Parallel()
	r := newRig(t, withNotes)
	if got, want := r.post("", `{}`, nil).header.Get("Www-Authenticate"), `scope="ads:read notes:read"`; !strings.Contains(got, want) {
		t.Errorf("got the challenge %q, want %s", got, want)
	}
}
