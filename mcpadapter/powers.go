package mcpadapter

import (
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
)

// Held is a tool and the power that its caller needs (actor.Grants). The services check it. No tool decides, probes, resolves or
// freezes.
type Held struct {
	Tool  string
	Power actor.Power
}

// Powers lists every tool that there is with these actions.
func Powers(actions *connector.Registry) []Held {
	var all []Held
	for _, a := range actions.Actions() {
		all = append(all, Held{a.Name + "_preview", actor.Prepare}, Held{a.Name + "_apply", actor.Apply})
	}
	for _, f := range actions.Finds() {
		all = append(all, Held{f.Name, actor.Find})
	}
	return append(all, Held{toolRequest, actor.Request}, Held{toolStatus, actor.Read}, Held{toolCancel, actor.Cancel}, Held{toolChanges, actor.Call})
}
