package rollback

import (
	"time"

	"github.com/cutonce/cutonce/connector"
)

// oldAfterDays is from when on a build's age is worth a warning: what surrounds it has usually moved by then.
const oldAfterDays = 30

// measure computes what the change does, from nothing but what the platform showed.
func measure(s sight) connector.Impact {
	from := s.now.current
	return connector.Impact{
		Summary:    summary(s),
		Figures:    figures(s),
		Warnings:   warnings(s),
		Reversible: true,
		Reversal:   connector.Say("rollback.reversal", connector.Args{"version": from.Version, "id": from.build()}),
	}
}

func summary(s sight) connector.Message {
	from := s.now.current
	args := connector.Args{
		"service": s.now.place.service, "environment": s.now.place.environment,
		"from": from.Version, "from_id": from.build(), "from_commit": short(from.Commit),
		"to": s.to.Version, "to_id": s.to.ID, "to_commit": short(s.to.Commit), "deployed_at": date(s.to.At),
	}
	if s.between.forward {
		return connector.Say("rollback.summary.forward", args)
	}
	return connector.Say("rollback.summary.back", args)
}

// short is a commit as people write it; the change's fields hold it whole.
func short(commit string) string { return commit[:min(len(commit), 12)] }

func date(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// daysOlder is the age of the build to go to when the active deployment was made. It is measured between two times of the
// platform and not from today, so that the same preview of the same state says the same tomorrow.
func daysOlder(s sight) int64 {
	return max(0, int64(s.now.current.At.Sub(s.to.At).Hours())/24)
}

func figures(s sight) []connector.Figure {
	older := daysOlder(s)
	undone, restored := s.between.count(!s.between.forward), s.between.count(s.between.forward)
	return []connector.Figure{
		{Name: "deployments_undone", Count: undone},
		{Name: "deployments_restored", Count: restored},
		{Name: "migrations_between", Count: s.between.counted(s.between.migrations)},
		{Name: "days_older", Count: &older},
	}
}

// count is how many deployments are undone, or restored; none in the other direction, and not known without a history.
func (s span) count(this bool) *int64 {
	if !this {
		return s.counted(nil)
	}
	return s.counted(s.deployments)
}

func (s span) counted(all []deployment) *int64 {
	if !s.known {
		return nil
	}
	n := int64(len(all))
	return &n
}

// warnings are what is unusual, the most dangerous first.
func warnings(s sight) []connector.Warning {
	all := []connector.Warning{}
	add := func(unusual bool, code string, args connector.Args) {
		if unusual {
			all = append(all, connector.Warning{Code: code, Args: args})
		}
	}
	between := s.between
	add(len(between.migrations) > 0, "migration_between", connector.Args{
		"list": named(between.migrations), "count": int64(len(between.migrations)), "version": s.to.Version,
	})
	add(!between.known, "history_unchecked", connector.Args{"read": int64(between.read)})
	moved := connector.Args{"list": named(between.deployments), "count": int64(len(between.deployments))}
	add(between.known && !between.forward, "undoes_deployments", moved)
	add(between.known && between.forward, "restores_deployments", moved)
	add(len(s.similar) > 0, "similar_service", connector.Args{
		"names": join(s.similar, func(name string) string { return name }), "count": int64(len(s.similar)),
	})
	add(daysOlder(s) >= oldAfterDays, "old_deployment", connector.Args{"days": daysOlder(s), "deployed_at": date(s.to.At)})
	return all
}
