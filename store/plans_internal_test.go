package store

import (
	"time"

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
	all["somebody's"] = listing(commit.Filter{Person: "x"})
	all["somebody's next page"] = listing(commit.Filter{Person: "x", Cursor: "x", Since: time.Now(), Until: time.Now(), Action: "x"})
	all["of a time"] = listing(commit.Filter{Since: time.Now(), Until: time.Now()})
	all["of a time, settled"] = listing(commit.Filter{Status: commit.StatusApplied, Since: time.Now(), Until: time.Now()})
	all["contradicted"] = listing(commit.Filter{Contradicted: true})
	all["contradicted, the next page"] = listing(commit.Filter{Contradicted: true, Cursor: "x"})
	return all
}
