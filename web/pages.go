package web

// pageSpec is one page: a zero value of what it shows, and the partials it is made of. The start refuses a page that uses a
// partial not named here, or names one that it does not use.
type pageSpec struct {
	zero     any
	partials []string
}

var pages = map[string]pageSpec{
	"failure": {&failurePage{}, []string{"kept", "time"}},
	"signin":  {&signInPage{}, []string{"kept", "time"}},
	"queue":   {&queuePage{}, []string{"diff", "figures", "marked", "time"}},
	"review": {&reviewPage{}, []string{
		"agent", "apply", "badge", "cap", "columns", "diff", "document", "figures", "fresh", "marked", "problem", "quorum", "reveal", "time",
	}},
	"change": {&changePage{}, []string{
		"again", "agent", "apply", "attempt", "badge", "behind", "columns", "diff", "document", "figures", "fresh", "marked", "problem",
		"quorum", "reveal", "rule", "sent", "settle", "time", "timeline", "unusual",
	}},
	"bulk":     {&bulkPage{}, []string{"badge", "diff", "figures", "marked", "problem", "time"}},
	"outcomes": {&outcomesPage{}, []string{"badge", "columns", "diff", "marked", "time"}},
	"freeze":   {&freezePage{}, []string{"badge", "marked", "problem", "time"}},
	"history":  {&historyPage{}, []string{"badge", "diff", "marked", "problem", "time"}},
}
