package main

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// watch hears what a tab's console, its network and its auditor say.
type watch struct {
	mu       sync.Mutex
	said     []string
	expected []*regexp.Regexp
	// asked are the addresses of requests by ID; posted is the last form that was sent.
	asked  map[network.RequestID]string
	posted string
	status int64
}

func newWatch() *watch { return &watch{asked: map[network.RequestID]string{}} }

// expect allows what matches from now on, for checks that provoke it.
func (h *watch) expect(pattern string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expected = append(h.expected, regexp.MustCompile(pattern))
}

// unexpected is what was said and must not have been.
func (h *watch) unexpected() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(list, h.said...)
}

// hear is called on the goroutine that reads the browser's messages: it only takes notes.
func (h *watch) hear(event any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		h.note("console.%s: %s", e.Type, arguments(e.Args))
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		h.note("uncaught: %s", text)
	case *log.EventEntryAdded:
		h.note("log, %s, %s: %s %s", e.Entry.Level, e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *audits.EventIssueAdded:
		h.issue(e.Issue)
	case *network.EventRequestWillBeSent:
		h.request(e)
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument {
			h.status = e.Response.Status
		}
		if e.Response.Status >= 400 {
			h.note("HTTP %d: %s", e.Response.Status, e.Response.URL)
		}
	case *network.EventLoadingFailed:
		// What a page leaves behind when it goes is canceled, and no failure.
		if !e.Canceled {
			h.note("failed: %s %s", h.asked[e.RequestID], e.ErrorText)
		}
	}
}

func (h *watch) request(e *network.EventRequestWillBeSent) {
	h.asked[e.RequestID] = e.Request.Method + " " + e.Request.URL
	if e.Request.Method == "POST" {
		h.posted = ""
		for _, entry := range e.Request.PostDataEntries {
			h.posted += string(entry.Bytes)
		}
	}
}

// issue notes what the browser's own auditor finds: violations of the content security policy and of Trusted Types, cookies that are
// not taken, fields without labels.
func (h *watch) issue(i *audits.InspectorIssue) {
	text := string(i.Code)
	if d := i.Details; d != nil {
		if v := d.ContentSecurityPolicyIssueDetails; v != nil {
			text += fmt.Sprintf(" %s %s", v.ViolatedDirective, v.BlockedURL)
		}
		if g := d.GenericIssueDetails; g != nil {
			text += fmt.Sprintf(" %s", g.ErrorType)
		}
	}
	h.note("issue: %s", text)
}

func (h *watch) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, e := range h.expected {
		if e.MatchString(text) {
			return
		}
	}
	h.said = append(h.said, text)
}

func (h *watch) last() (posted string, status int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.posted, h.status
}

func arguments(list []*runtime.RemoteObject) (text string) {
	for _, o := range list {
		text += " " + string(o.Value) + o.Description
	}
	return text
}
