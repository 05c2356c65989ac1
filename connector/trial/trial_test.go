package trial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/trial"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
)

const token = "simulator-token"

// dishonest is a good connector with one bad habit.
type dishonest struct {
	*adbudget.Connector
	execute func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error)
	lookup  func(f connector.Finding, err error, p connector.Plan) (connector.Finding, error)
}

func (d *dishonest) Execute(ctx context.Context, p connector.Plan, call connector.Call) (connector.Receipt, error) {
	if d.execute != nil {
		return d.execute(ctx, d.Connector, p, call)
	}
	return d.Connector.Execute(ctx, p, call)
}

func (d *dishonest) Lookup(ctx context.Context, p connector.Plan, call connector.Call) (connector.Finding, error) {
	f, err := d.Connector.Lookup(ctx, p, call)
	if d.lookup != nil {
		return d.lookup(f, err, p)
	}
	return f, err
}

// calls makes a habit of calling one class of outcomes another.
func calls(from connector.Class, to func(error) error) dishonest {
	return dishonest{execute: func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error) {
		receipt, err := c.Execute(ctx, p, call)
		if connector.Classify(err) == from {
			err = to(err)
		}
		return receipt, err
	}}
}

// subject is a connector with a habit, and a simulator of its own for each check.
func subject(t *testing.T, cfg adbudget.Config, habit dishonest) trial.Subject {
	t.Helper()
	at := func(address string) (connector.Connector, error) {
		here := cfg
		here.BaseURL, here.Token, here.System = "http://"+address, token, "ads.example/agency"
		c, err := adbudget.New(here)
		made := habit
		made.Connector = c
		return &made, err
	}
	c, err := at("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	return trial.Subject{
		Connector: c, Action: adbudget.ActionName,
		Actor: actor.Actor{Tenant: "t1", Kind: actor.Human, Issuer: "https://issuer.example", Subject: target.UserSato},
		Input: connector.Input{"campaign_id": target.PlainJPY(0), "new_daily_budget_jpy": json.Number("12000"), "reason": "a trial"},
		Open: func(context.Context) (trial.Rig, error) {
			ads := target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: token, HonourKeys: cfg.HonoursKeys}, Seed: 1})
			server := httptest.NewServer(ads)
			return trial.Rig{
				Upstream: trial.Upstream{Address: strings.TrimPrefix(server.URL, "http://")}, At: at,
				Effects: func(key string) int { return ads.CountersFor(key).Effects },
				Close:   func() { _ = ads.Close(); server.Close() },
			}, nil
		},
	}
}

func run(t *testing.T, s trial.Subject) trial.Report {
	t.Helper()
	r, err := trial.Run(t.Context(), s, func(trial.Result) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func statusOf(r trial.Report, id string) trial.Status {
	for _, one := range r.Results {
		if one.ID == id {
			return one.Status
		}
	}
	return "missing"
}

func earned(r trial.Report, what string) string {
	for _, e := range r.Guarantee {
		if e.What == what {
			return e.How
		}
	}
	return ""
}

func TestAnHonestConnectorEarnsWhatItDeclares(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg     adbudget.Config
		replay  trial.Status
		settles string
	}{
		"keys and history":   {adbudget.Config{HonoursKeys: true}, trial.Pass, "yes (look-up"},
		"history only":       {adbudget.Config{}, trial.NotApplicable, "yes (look-up"},
		"keys only":          {adbudget.Config{HonoursKeys: true, NoLookup: true}, trial.Pass, "an effect, yes (replay"},
		"neither of the two": {adbudget.Config{NoLookup: true}, trial.NotApplicable, "no: operators"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.cfg.Sandbox = true
			r := run(t, subject(t, tt.cfg, dishonest{}))
			for _, one := range r.Results {
				if one.Status == trial.Fail {
					t.Errorf("%s: got FAIL: got %s, want %s: %s", one.ID, one.Got, one.Want, one.Reason)
				}
			}
			if got := statusOf(r, "key-replay"); got != tt.replay {
				t.Errorf("key-replay: got %s, want %s", got, tt.replay)
			}
			if got := earned(r, "settles by itself"); !strings.HasPrefix(got, tt.settles) {
				t.Errorf("settles by itself: got %q, want %q…", got, tt.settles)
			}
			if got := r.Code(); got != 0 {
				t.Errorf("got exit code %d, want 0", got)
			}
		})
	}
}

func TestADishonestConnectorIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		check string
		habit dishonest
	}{
		"calls every failure not sent": {"lost-reply", calls(connector.ClassUnknown, connector.NotSent)},
		"calls every failure a refusal": {"slow-write", calls(connector.ClassUnknown, func(err error) error {
			return connector.Rejected(400, err.Error())
		})},
		"calls every failure a success": {"lost-request", calls(connector.ClassUnknown, func(error) error { return nil })},
		"sends again when in doubt": {"lost-request", dishonest{
			execute: func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error) {
				receipt, err := c.Execute(ctx, p, call)
				if connector.Classify(err) == connector.ClassUnknown {
					return c.Execute(ctx, p, call)
				}
				return receipt, err
			}}},
		"finds by value": {"late-refused", dishonest{
			lookup: func(f connector.Finding, err error, p connector.Plan) (connector.Finding, error) {
				if f.Now[adbudget.FieldBudget].Equal(p.Changes[0].After) {
					f.Found = connector.EffectFound
				}
				return f, err
			}}},
		"never finds anything": {"lost-reply", dishonest{
			lookup: func(connector.Finding, error, connector.Plan) (connector.Finding, error) {
				return connector.Finding{Found: connector.EffectAbsent}, nil
			}}},
		"never confirms": {"delivered", dishonest{
			execute: func(ctx context.Context, c *adbudget.Connector, p connector.Plan, call connector.Call) (connector.Receipt, error) {
				_, err := c.Execute(ctx, p, call)
				return connector.Receipt{}, fmt.Errorf("who knows: %v", err)
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, subject(t, adbudget.Config{Sandbox: true}, tt.habit))
			if got := statusOf(r, tt.check); got != trial.Fail {
				t.Errorf("%s: got %s, want FAIL", tt.check, got)
			}
			if got := r.Code(); got != 1 {
				t.Errorf("got exit code %d, want 1", got)
			}
			if got := earned(r, "earned"); !strings.HasPrefix(got, "nothing: ") {
				t.Errorf("got the guarantee %v, want none", r.Guarantee)
			}
		})
	}
}

// Without the word sandbox the target is not even opened.
func TestNothingIsSentWithoutASandbox(t *testing.T) {
	t.Parallel()
	s := subject(t, adbudget.Config{}, dishonest{})
	s.Open = func(context.Context) (trial.Rig, error) {
		t.Error("the target was opened")
		return trial.Rig{}, errors.New("no")
	}
	r := run(t, s)
	sending := 0
	for _, one := range r.Results {
		if one.Sends {
			sending++
			if one.Status != trial.NotApplicable || !strings.Contains(one.Reason, "not declared a sandbox") {
				t.Errorf("%s: got %s (%s), want N-A with the reason", one.ID, one.Status, one.Reason)
			}
		}
	}
	if sending < 8 {
		t.Errorf("got %d checks that send, want all", sending)
	}
	if got := r.Code(); got != 3 {
		t.Errorf("got exit code %d, want 3: nothing was shown", got)
	}
}

// A look-up that cannot be asked is named as that, once, and the checks that would only say it again are not made.
func TestALookUpThatCannotBeAskedEndsTheTrialEarly(t *testing.T) {
	t.Parallel()
	closed := dishonest{lookup: func(connector.Finding, error, connector.Plan) (connector.Finding, error) {
		return connector.Finding{}, errors.New("503 Service Unavailable")
	}}
	r, err := trial.Run(t.Context(), subject(t, adbudget.Config{Sandbox: true}, closed), func(trial.Result) {})
	if err != nil {
		t.Fatal(err)
	}
	if first := r.Results[1]; first.Status != trial.Fail || !strings.Contains(first.Reason, "cannot be asked") || !strings.Contains(first.Reason, "503") {
		t.Errorf("got %+v, want the look-up named", first)
	}
	for _, one := range r.Results[2:] {
		if one.Status != trial.NotApplicable || !strings.Contains(one.Reason, "not tried") {
			t.Errorf("%s: got %s (%s), want it not tried", one.ID, one.Status, one.Reason)
		}
	}
}
