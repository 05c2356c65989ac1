package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Freezes forbids applying for a while (commit.Service).
type Freezes interface {
	Freeze(ctx context.Context, o commit.FreezeOrder) (commit.Frozen, error)
	Lift(ctx context.Context, o commit.FreezeOrder) error
	Standing(ctx context.Context, who actor.Actor) ([]commit.Freeze, time.Time, error)
	Freezable() (actions, connectors []string)
}

// freezePage shows what is frozen, and lets operators freeze and lift.
type freezePage struct {
	frame
	Rows []freezeRow
	// InFlight is what has been claimed and is not settled: no freeze calls it back.
	InFlight []answer.Change
	// Allowed says that this person may freeze their tenant. The service decides.
	Allowed bool
	Whats   []statusOption
	Lasts   []statusOption
	Reason  string
	Problem *problem
}

type freezeRow struct {
	answer.Freeze
	// What is the value that the form to lift it sends, empty where this person may not.
	What string
}

// whats are what this person may freeze, as "action:budget_change".
func (c *console) whats(v *visit, chosen string) []statusOption {
	tenant, everything := commit.MayFreeze(v.who)
	if !tenant {
		return nil
	}
	actions, connectors := c.Freezes.Freezable()
	options := []statusOption{{Value: "tenant:", Label: v.t("web.freeze.tenant")}}
	if everything {
		options = append(options, statusOption{Value: "everything:", Label: v.t("web.freeze.everything")})
	}
	for _, name := range actions {
		options = append(options, statusOption{Value: "action:" + name, Label: v.t("web.freeze.action", "name", name)})
	}
	for _, name := range connectors {
		options = append(options, statusOption{Value: "connector:" + name, Label: v.t("web.freeze.connector", "name", name)})
	}
	for i := range options {
		options[i].Chosen = options[i].Value == chosen
	}
	return options
}

type freezeLength struct {
	value, label string
	lasts        time.Duration
}

// freezeFor are the lengths that the form offers; the API takes any.
var freezeFor = []freezeLength{
	{"1h", "web.freeze.for.1h", time.Hour}, {"4h", "web.freeze.for.4h", 4 * time.Hour}, {"24h", "web.freeze.for.24h", 24 * time.Hour},
	{"lifted", "web.freeze.for.lifted", 0},
}

// frozen is the page of freezes.
func (c *console) frozen(v *visit) error { return c.showFreezes(v, http.StatusOK, nil) }

func (c *console) showFreezes(v *visit, status int, refusal error) error {
	standing, _, err := c.Freezes.Standing(v.r.Context(), v.who)
	if err != nil {
		return err
	}
	page := freezePage{frame: c.frameOf(v, v.t("web.freeze.title"), "/freeze")}
	tenant, everything := commit.MayFreeze(v.who)
	for _, f := range standing {
		row := freezeRow{Freeze: v.freezeWords(f)}
		if everything || tenant && f.Kind != commit.FreezeEverything {
			row.What = string(f.Kind) + ":" + f.Name
		}
		page.Rows = append(page.Rows, row)
	}
	flying, _, err := c.Commits.List(v.r.Context(), v.who, commit.Filter{
		Statuses: []commit.Status{commit.StatusApplying, commit.StatusUnknown}, Limit: pageOfChanges,
	})
	if err != nil {
		return err
	}
	for _, change := range flying {
		page.InFlight = append(page.InFlight, v.writer().Change(change))
	}
	page.Allowed, page.Whats, page.Lasts = tenant, c.whats(v, v.field("what")), v.lasts(v.field("for"))
	if refusal != nil {
		page.Reason, page.Problem = v.field("reason"), v.problemOf(refusal)
	}
	return c.show(v, status, "freeze", &page)
}

func (v *visit) lasts(chosen string) []statusOption {
	var options []statusOption
	for _, f := range freezeFor {
		options = append(options, statusOption{Value: f.value, Label: v.t(f.label), Chosen: f.value == chosen})
	}
	return options
}

// freeze sets a freeze; thaw lifts one.
func (c *console) freeze(v *visit) error {
	return c.moveFreeze(v, func(o commit.FreezeOrder) error {
		i := slices.IndexFunc(freezeFor, func(f freezeLength) bool { return f.value == v.field("for") })
		if i < 0 {
			return fault.New(fault.InvalidInput, nil).WithField("/for", "web.field.freeze_for", nil)
		}
		o.For = freezeFor[i].lasts
		_, err := c.Freezes.Freeze(v.r.Context(), o)
		return err
	})
}

func (c *console) thaw(v *visit) error {
	return c.moveFreeze(v, func(o commit.FreezeOrder) error { return c.Freezes.Lift(v.r.Context(), o) })
}

func (c *console) moveFreeze(v *visit, move func(commit.FreezeOrder) error) error {
	if err := v.readForm(); err != nil {
		return err
	}
	kind, name, _ := strings.Cut(v.field("what"), ":")
	err := move(commit.FreezeOrder{Kind: commit.FreezeKind(kind), Name: name, By: v.who, Reason: v.field("reason")})
	switch {
	case err == nil:
		return v.goTo("/freeze")
	case !refused(err) && fault.CodeOf(err) != fault.NotFound:
		return err
	}
	return c.showFreezes(v, statuses[fault.CodeOf(err)], err)
}

// banner is what stands at the top of every page while something is frozen. A list that cannot be had leaves the page without it.
func (c *console) banner(v *visit) []answer.Freeze {
	if c.Freezes == nil {
		return nil
	}
	standing, _, err := c.Freezes.Standing(v.r.Context(), v.who)
	if err != nil {
		c.Log.WarnContext(v.r.Context(), "listing freezes", "request_id", v.requestID, "error", err)
		return nil
	}
	all := make([]answer.Freeze, 0, len(standing))
	for _, f := range standing {
		all = append(all, v.freezeWords(f))
	}
	return all
}

// freezeWords is a freeze in one sentence. Its end stands beside it, as a time that the page shows in the reader's zone.
func (v *visit) freezeWords(f commit.Freeze) answer.Freeze {
	out := v.writer().Freeze(f)
	out.Message = v.t("web.frozen."+string(f.Kind), "by", out.By, "reason", out.Reason, "name", out.Name)
	return out
}
