package store

import (
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
)

// ListStatements are the shapes of the lists that people and agents look at, by name.
func ListStatements() map[string]string {
	all := map[string]string{"the queue": queueing(approvals.Page{}), "the queue's next page": queueing(approvals.Page{Cursor: "x"})}
	for _, status := range commit.Statuses() {
		all["a tenant's "+string(status)] = listing(commit.Filter{Status: status})
		all["an agent's "+string(status)] = listing(commit.Filter{Status: status, OwnerID: "x"})
	}
	all["a tenant's"] = listing(commit.Filter{})
	all["an agent's"] = listing(commit.Filter{OwnerID: "x"})
	all["a person's"] = listing(commit.Filter{OwnerPerson: "x"})
	all["a target's"] = listing(commit.Filter{TargetID: "x"})
	all["the next page"] = listing(commit.Filter{OwnerID: "x", Cursor: "x"})
	all["handed over"] = listing(commit.Filter{Statuses: []commit.Status{commit.StatusUnknown}, NeedsOperator: true})
	return all
}
