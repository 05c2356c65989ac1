package connector_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
)

// flags turns the switches of a feature-flag service on and off. It is a whole connector.
type flags struct {
	base   string
	sender *connector.Sender // for the one send: never repeats, and can prove that nothing left
	reader *connector.Reader // for everything else
}

var texts = fstest.MapFS{ // of your own: //go:embed texts/*.json
	"en.json": {Data: []byte(`{
		"action.flag_set.title": "Set a feature flag",
		"action.flag_set.preview": "Prepares turning one feature flag on or off. Nothing is changed yet.",
		"action.flag_set.apply": "Applies a prepared change of a flag exactly once. It takes the preview_id and nothing else.",
		"find.flags_find.title": "Find feature flags", "find.flags_find.description": "Lists all feature flags with their state.",
		"flags.summary": "Turn {{.flag}} from {{.before}} to {{.after}}.", "flags.reversal": "Can be turned back to {{.before}} with a new change.",
		"flags.no_change": "The flag is {{.state}} already.", "kind.flag": "Flag", "field_name.state": "State"}`)},
	"ja.json": {Data: []byte(`{
		"action.flag_set.title": "機能フラグを切り替える",
		"action.flag_set.preview": "機能フラグ 1 つのオン・オフを準備します。この時点では何も変わりません。",
		"action.flag_set.apply": "準備済みのフラグの変更を一度だけ適用します。渡せるのは preview_id だけです。",
		"find.flags_find.title": "機能フラグを探す", "find.flags_find.description": "すべての機能フラグを状態とともに一覧にします。",
		"flags.summary": "{{.flag}} を {{.before}} から {{.after}} にします。", "flags.reversal": "新しい変更で {{.before}} に戻せます。",
		"flags.no_change": "フラグはすでに {{.state}} です。", "kind.flag": "フラグ", "field_name.state": "状態"}`)},
}

// Describe names the actions and claims only what the target really does: a wrong claim here breaks the promise.
func (f *flags) Describe() connector.Description {
	return connector.Description{
		System: "flags.example/main",
		Actions: []connector.Action{{
			Name: "flag_set", Version: 1, Scopes: []string{"flags:write"}, ReadScopes: []string{"flags:read"},
			Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["flag","state","reason"],"properties":{
				"flag":{"type":"string","pattern":"^[a-z][a-z-]{0,40}$"},"state":{"enum":["on","off"]},
				"reason":{"type":"string","minLength":1,"maxLength":500}}}`),
		}},
		Finds: []connector.Find{{
			Name: "flags_find", Scopes: []string{"flags:read"}, Input: json.RawMessage(`{"type":"object","additionalProperties":false}`),
			Item: json.RawMessage(`{"type":"object","required":["flag","state"],"properties":{"flag":{"type":"string"},"state":{"type":"string"}}}`),
		}},
		Able:  connector.Capabilities{Lookup: true, Precondition: true, SettleFor: connector.DefaultClocks().SettleFor},
		Texts: texts,
	}
}

// get reads one JSON object strictly. A read that fails may be repeated, which is what this fault says.
func (f *flags) get(ctx context.Context, path string) (map[string]any, error) {
	reply, err := f.reader.Get(ctx, f.base+path, nil)
	if err == nil && reply.Status == http.StatusNotFound {
		return nil, fault.New(fault.NotFound, nil)
	}
	if err == nil && reply.Status != http.StatusOK {
		err = fmt.Errorf("the flag service answered %d", reply.Status)
	}
	if err != nil {
		return nil, fault.New(fault.TargetUnavailable, nil).Because(err)
	}
	return object(reply.Body)
}

func object(body []byte) (map[string]any, error) {
	v, err := canon.Parse(body, canon.Limits{})
	if m, ok := v.(map[string]any); err == nil && ok {
		return m, nil
	}
	return nil, fault.New(fault.TargetUnavailable, nil).Because(errors.New("the flag service's answer is no JSON object"))
}

// flag is one flag as the service shows it; an answer about another flag, or half an answer, is none.
func flag(m map[string]any, name string) (state, version string, err error) {
	state, _ = m["state"].(string)
	version, _ = m["version"].(string)
	if m["flag"] != name || state == "" || version == "" {
		return "", "", fault.New(fault.TargetUnavailable, nil).Because(errors.New("the flag service answered about something else"))
	}
	return state, version, nil
}

// Read reads the target for the drift check.
func (f *flags) Read(ctx context.Context, t connector.Target) (connector.Reading, error) {
	m, err := f.get(ctx, "/flags/"+t.ID)
	if err != nil {
		return connector.Reading{}, err
	}
	state, version, err := flag(m, t.ID)
	return connector.Reading{Target: t, Version: version, Values: map[string]connector.Value{"state": connector.Text(state)}}, err
}

// Prepare reads and computes; it changes nothing. The body is in canonical form, because its bytes are what is approved.
func (f *flags) Prepare(ctx context.Context, _ actor.Actor, _ string, in connector.Input) (connector.Plan, connector.Impact, error) {
	target := connector.Target{System: "flags.example/main", Kind: "flag", ID: in.Text("flag"), Name: in.Text("flag")}
	now, err := f.Read(ctx, target)
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	before, after := *now.Values["state"].Text, in.Text("state")
	if before == after { // the target was read, so it goes along: the service asks Authorize before it shows this
		return connector.Plan{Target: target}, connector.Impact{},
			fault.New(fault.InvalidInput, nil).WithField("/state", "flags.no_change", fault.Args{"state": before})
	}
	body, err := canon.Marshal(map[string]any{"state": after})
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	args := connector.Args{"flag": target.ID, "before": before, "after": after}
	return connector.Plan{
			Target: target, Version: now.Version,
			Request: connector.Request{Method: http.MethodPut, Path: "/flags/" + target.ID, Body: body, Precondition: now.Version},
			Changes: []connector.Change{{Field: "state", Before: connector.Text(before), After: connector.Text(after)}},
		}, connector.Impact{
			Summary:    connector.Say("flags.summary", args),
			Reversible: true, Reversal: connector.Say("flags.reversal", connector.Args{"before": before}),
		}, nil
}

// Authorize asks the target's own permissions about the human behind the call. Whatever is not a clear yes is a no.
func (f *flags) Authorize(ctx context.Context, who actor.Actor, _ connector.Verb, t connector.Target) (connector.Permission, error) {
	if who.HumanName() == "" {
		return connector.Permission{Reason: "no_human_known"}, nil
	}
	m, err := f.get(ctx, "/may/"+url.PathEscape(who.HumanName())+"/"+t.ID)
	if err != nil {
		return connector.Permission{}, err
	}
	allowed, _ := m["allowed"].(bool)
	reason, _ := m["reason"].(string)
	return connector.Permission{Allowed: allowed, Reason: reason}, nil
}

// Execute sends the plan's bytes once. Everything that is not proved below stays unknown.
func (f *flags) Execute(ctx context.Context, p connector.Plan, call connector.Call) (connector.Receipt, error) {
	if p.Target.System != "flags.example/main" || p.Request.Path != "/flags/"+p.Target.ID {
		return connector.Receipt{}, connector.NotSent(errors.New("the plan is not one of ours"))
	}
	reply, err := f.sender.Send(ctx, connector.Outgoing{
		Method: p.Request.Method, URL: f.base + p.Request.Path, Body: p.Request.Body,
		Header: http.Header{"If-Match": {p.Request.Precondition}, "Idempotency-Key": {call.Key}, "X-On-Behalf-Of": {call.OnBehalfOf}},
	})
	if err != nil {
		return connector.Receipt{}, err // the Sender has said NotSent where it can prove it
	}
	m, err := object(reply.Body)
	if err != nil {
		return connector.Receipt{}, err
	}
	if reply.Status == http.StatusOK { // only if it shows this very change
		state, version, err := flag(m, p.Target.ID)
		if err != nil || !connector.Text(state).Equal(p.Changes[0].After) || version == p.Version {
			return connector.Receipt{}, errors.New("the flag service answered 200 about something else")
		}
		return connector.Receipt{Evidence: map[string]any{"version": version}, Version: version}, nil
	}
	return f.refused(ctx, p, call, fmt.Sprint(reply.Status, " ", m["error"]))
}

// refused believes only what the target documents, by status and code: a gateway answers with the same statuses. And it looks
// for our mark first: if a middlebox delivered twice, the refusal may be the second delivery's.
func (f *flags) refused(ctx context.Context, p connector.Plan, call connector.Call, answer string) (connector.Receipt, error) {
	if answer != "412 moved" && answer != "422 retired" {
		return connector.Receipt{}, fmt.Errorf("the flag service answered %s", strings.ToValidUTF8(answer, ""))
	}
	found, err := f.Lookup(ctx, p, call)
	switch {
	case err != nil || found.Found == connector.EffectUnsure:
		return connector.Receipt{}, errors.New("refused, but the log cannot be read")
	case found.Found == connector.EffectFound:
		return connector.Receipt{Evidence: found.Evidence}, nil
	case answer == "412 moved":
		return connector.Receipt{}, &connector.DriftedError{}
	}
	return connector.Receipt{}, connector.Rejected(http.StatusUnprocessableEntity, "the flag is retired")
}

// Lookup asks for our own mark. The flag's state would prove nothing: somebody else may have set it.
func (f *flags) Lookup(ctx context.Context, p connector.Plan, call connector.Call) (connector.Finding, error) {
	m, err := f.get(ctx, "/log/"+url.PathEscape(call.Key))
	if err != nil {
		return connector.Finding{}, err // counts as unsure
	}
	keys, ok := m["changes"].([]any)
	switch {
	case !ok || m["key"] != call.Key:
		return connector.Finding{Found: connector.EffectUnsure}, nil
	case len(keys) == 0:
		return connector.Finding{Found: connector.EffectAbsent}, nil
	}
	return connector.Finding{Found: connector.EffectFound, Evidence: map[string]any{"flag": p.Target.ID, "changes": int64(len(keys))}}, nil
}

// Reverse is optional: the input of the change that would undo this one.
func (f *flags) Reverse(_ string, p connector.Plan) (map[string]any, error) {
	return map[string]any{"flag": p.Target.ID, "state": *p.Changes[0].Before.Text, "reason": "undo"}, nil
}

// Find runs the read-only tool.
func (f *flags) Find(ctx context.Context, _ actor.Actor, _ string, _ connector.Input) (connector.Page, error) {
	m, err := f.get(ctx, "/flags")
	if err != nil {
		return connector.Page{}, err
	}
	page := connector.Page{Total: -1}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		page.Items = append(page.Items, map[string]any{"flag": name, "state": m[name]})
	}
	return page, nil
}
