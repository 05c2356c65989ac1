// Package web is the console: where people decide, settle what is not known, and read what happened.
//
// The promise: what is on a page is what is hashed, approved and sent, and a decision carries the digest that was on the
// page; only a form that a person submits from this console decides, never a link; every page works without scripts and
// loads nothing from elsewhere; text from outside is shown as text, with hidden characters made visible in place, and letters of
// another script marked one by one; typed text is shown again when a form is refused. Where scripts run, an open page hears that there is
// news (live.go), reads itself anew, and moves nothing under a finger; an open page is no use of a session.
//
// What it does not promise: it holds no rule. Who may read, decide or settle is the services' answer at every call, and hiding
// a form is only comfort. Times are shown in UTC.
//
// Languages: the person's own, else the browser's; a choice is carried in the links as ?lang=, since the console keeps no
// cookie but the session.
//
// Start at New, then one file for each page: queue.go, review.go, decide.go, bulk.go, apply.go, change.go, outcomes.go, probe.go,
// resolve.go, history.go, signin.go. pages.go says which partials each page is made of; assets/console.js is the one script.
package web
