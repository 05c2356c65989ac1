package web

// pageSpec is one page: a zero value of what it shows, and the partials it is made of. The start refuses a page that uses a
// partial not named here, or names one that it does not use.
type pageSpec struct {
	zero     any
	partials []string
}

var pages = map[string]pageSpec{
	"failure": {&failurePage{}, []string{"kept"}},
	"signin":  {&signInPage{}, []string{"kept"}},
	"queue":   {&queuePage{}, []string{"badge", "diff", "figures", "time"}},
	"review":  {&reviewPage{}, []string{"agent", "badge", "diff", "document", "figures", "problem", "quorum", "rule", "time", "unusual"}},
	"change": {&changePage{}, []string{
		"again", "agent", "attempt", "badge", "behind", "columns", "diff", "document", "figures", "problem", "quorum", "rule", "sent", "settle", "time",
		"timeline", "unusual",
	}},
	"outcomes": {&outcomesPage{}, []string{"columns", "diff", "time"}},
	"freeze":   {&freezePage{}, []string{"badge", "problem", "time"}},
	"history":  {&historyPage{}, []string{"badge", "diff", "problem", "time"}},
}
