package connector_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/connectortest"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
)

// seats sets how many seats a team has, at a target that helps with nothing: no versions, no look-up, no keys, no documented
// refusals, no permissions. So it claims nothing, and whatever is not a whole success is unknown and for an operator.
type seats struct{ at *flags }

const seatSystem = "seats.example/main"

func (s *seats) Describe() connector.Description {
	return connector.Description{
		System: seatSystem,
		Actions: []connector.Action{{
			Name: "seats_set", Version: 1, Scopes: []string{"seats:write"}, ReadScopes: []string{"seats:read"},
			Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["team","seats"],"properties":{
				"team":{"type":"string","pattern":"^[a-z]{1,20}$"},"seats":{"type":"string","pattern":"^[1-9][0-9]{0,3}$"}}}`),
		}},
		Texts: fstest.MapFS{
			"en.json": {Data: []byte(`{"action.seats_set.title":"Set seats","action.seats_set.preview":"Prepares setting the seats of a team.",
				"action.seats_set.apply":"Applies it, once.","seats.summary":"From {{.before}} to {{.after}} seats.",
				"seats.back":"Can be put back.","kind.team":"Team","field_name.seats":"Seats"}`)},
			"ja.json": {Data: []byte(`{"action.seats_set.title":"席数を変更する","action.seats_set.preview":"チームの席数の変更を準備します。",
				"action.seats_set.apply":"一度だけ適用します。","seats.summary":"{{.before}} 席から {{.after}} 席にします。",
				"seats.back":"元に戻せます。","kind.team":"チーム","field_name.seats":"席数"}`)},
		},
	}
}

// Authorize goes by a list of the company's own.
func (s *seats) Authorize(_ context.Context, who actor.Actor, _ connector.Verb, _ connector.Target) (connector.Permission, error) {
	return connector.Permission{Allowed: who.HumanName() == "alice@example.com", Reason: "not_listed"}, nil
}

func (s *seats) Read(ctx context.Context, t connector.Target) (connector.Reading, error) {
	m, err := s.at.get(ctx, "/teams/"+t.ID)
	if err != nil {
		return connector.Reading{}, err
	}
	n, ok := m["seats"].(string)
	if !ok || m["team"] != t.ID {
		return connector.Reading{}, fault.New(fault.TargetUnavailable, nil).Because(errors.New("an answer about something else"))
	}
	return connector.Reading{Target: t, Values: map[string]connector.Value{"seats": connector.Text(n)}}, nil
}

func (s *seats) Prepare(ctx context.Context, _ actor.Actor, _ string, in connector.Input) (connector.Plan, connector.Impact, error) {
	t := connector.Target{System: seatSystem, Kind: "team", ID: in.Text("team"), Name: in.Text("team")}
	now, err := s.Read(ctx, t)
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	before, after := now.Values["seats"], connector.Text(in.Text("seats"))
	body, err := canon.Marshal(map[string]any{"seats": in.Text("seats")})
	return connector.Plan{
			Target: t, Request: connector.Request{Method: http.MethodPut, Path: "/teams/" + t.ID, Body: body},
			Changes: []connector.Change{{Field: "seats", Before: before, After: after}},
		}, connector.Impact{
			Summary:    connector.Say("seats.summary", connector.Args{"before": *before.Text, "after": *after.Text}),
			Reversible: true, Reversal: connector.Say("seats.back", nil),
		}, err
}

func (s *seats) Execute(ctx context.Context, p connector.Plan, call connector.Call) (connector.Receipt, error) {
	if p.Target.System != seatSystem || p.Request.Path != "/teams/"+p.Target.ID {
		return connector.Receipt{}, connector.NotSent(errors.New("the plan is not one of ours"))
	}
	reply, err := s.at.sender.Send(ctx, connector.Outgoing{
		Method: p.Request.Method, URL: s.at.base + p.Request.Path, Body: p.Request.Body, Header: http.Header{"X-Request-Id": {call.Key}},
	})
	if err != nil {
		return connector.Receipt{}, err
	}
	m, err := object(reply.Body)
	if err != nil || reply.Status != http.StatusOK || m["team"] != p.Target.ID || m["seats"] != *p.Changes[0].After.Text {
		return connector.Receipt{}, fmt.Errorf("the seat service answered %d", reply.Status)
	}
	return connector.Receipt{Evidence: map[string]any{"seats": m["seats"]}}, nil
}

// Lookup proves nothing: the number of seats may be anybody's.
func (s *seats) Lookup(context.Context, connector.Plan, connector.Call) (connector.Finding, error) {
	return connector.Finding{Found: connector.EffectUnsure}, nil
}

func (s *seats) Find(context.Context, actor.Actor, string, connector.Input) (connector.Page, error) {
	return connector.Page{}, fault.New(fault.NotFound, nil)
}

// seatService is the target. It counts by request ID for the test alone; nobody can ask it.
type seatService struct {
	mu      sync.Mutex
	seats   string
	counted map[string]int
}

func (s *seatService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body struct{ Seats string }
	switch {
	case r.URL.Path != "/teams/red":
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodPut && json.NewDecoder(r.Body).Decode(&body) != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case r.Method == http.MethodPut:
		s.seats = body.Seats
		s.counted[r.Header.Get("X-Request-Id")]++
	}
	answer(w, http.StatusOK, map[string]any{"team": "red", "seats": s.seats})
}

// TestATargetThatHelpsWithNothingCanBeWrapped, and the suite asks nothing of its connector that it could not keep.
func TestATargetThatHelpsWithNothingCanBeWrapped(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Subject{New: func(t *testing.T) connectortest.Rig {
		s := &seatService{seats: "5", counted: map[string]int{}}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		locked := func(do func()) { s.mu.Lock(); defer s.mu.Unlock(); do() }
		return connectortest.Rig{
			Address: strings.TrimPrefix(server.URL, "http://"),
			At: func(t *testing.T, address string) connector.Connector {
				return &seats{at: newFlags(t, address).(*flags)}
			},
			Actor:  actor.Actor{Tenant: "t1", Kind: actor.Human, Issuer: "https://issuer.example", Subject: "alice@example.com"},
			Action: "seats_set", Input: connector.Input{"team": "red", "seats": "7"},
			Effects:              func(key string) (n int) { locked(func() { n = s.counted[key] }); return n },
			State:                func() (all string) { locked(func() { all = fmt.Sprint(s.seats, s.counted) }); return all },
			Move:                 func(*testing.T) { locked(func() { s.seats = "6" }) },
			PermissionsElsewhere: true,
		}
	}})
}
