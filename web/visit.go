package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// visit is one request: who makes it, and in which language it is answered.
type visit struct {
	w         http.ResponseWriter
	r         *http.Request
	who       actor.Actor
	in        tongue
	texts     *catalog.Texts
	requestID string
	// place is where the feed stood before anything on the page was read.
	place string
	// revealed is the one change whose hidden values this answer shows, because that is on record (reveal.go).
	revealed preview.ID
	// refusal is why an apply was refused, shown beside its button.
	refusal *problem
}

// handler answers a visit, or returns why not; the failure becomes a page.
type handler func(*visit) error

// open serves a page to anybody.
func (c *console) open(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.newVisit(w, r)
		defer c.contain(v)
		err := v.checkText()
		if err == nil {
			err = h(v)
		}
		if err != nil {
			c.fail(v, err)
		}
	}
}

// signedIn serves a page to a person with a session. Everybody else is shown the way in, with what they had typed.
func (c *console) signedIn(h handler) http.HandlerFunc {
	return c.open(func(v *visit) error {
		find := c.Sessions.Actor
		if v.r.Header.Get(byItself) != "" {
			find = c.Sessions.Peek
		}
		who, err := find(v.r)
		switch {
		case fault.CodeOf(err) == fault.Unauthenticated && err != nil:
			return c.askToSignIn(v)
		case err != nil:
			return err
		case who.Kind != actor.Human:
			return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.session")
		}
		v.who = who
		v.speak(c)
		if v.r.Method == http.MethodGet {
			v.place = c.live.now(v.r.Context())
		}
		return h(v)
	})
}

// checkText refuses an address or a form with what is in no text, a NUL or bytes that are no UTF-8: the database can neither keep nor
// compare it. It stands before every page, so that none has to think of it.
func (v *visit) checkText() error {
	if v.r.Method == http.MethodPost {
		if err := v.readForm(); err != nil {
			return err
		}
	}
	for _, values := range []url.Values{v.r.URL.Query(), v.r.PostForm} {
		for name, given := range values {
			if !isText(name) || slices.ContainsFunc(given, func(s string) bool { return !isText(s) }) {
				return fault.New(fault.InvalidInput, nil).WithKey("web.fault.no_text").WithNext(fault.NextNone)
			}
		}
	}
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// byItself is the header of what a page asks without anybody's doing.
const byItself = "Cutonce-Live"

func (c *console) newVisit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{w: w, r: r, requestID: c.RequestID(r)}
	v.speak(c)
	return v
}

// speak settles the language, the one chosen in the address, the person's own, or the browser's; and the time zone.
func (v *visit) speak(c *console) {
	query := v.r.URL.Query()
	v.texts = c.Catalog.In(v.who.Locale, v.r.Header.Get("Accept-Language"))
	v.in = tongue{lang: v.texts.Lang}
	if lang := query.Get("lang"); slices.Contains(catalog.Languages, lang) {
		v.in, v.texts = tongue{lang: lang, chosen: true}, c.Catalog.In(lang)
	}
	v.in = c.places.settle(v.in, query.Get("zone"))
}

// contain turns a panic into the page of an internal error.
func (c *console) contain(v *visit) {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler:
		panic(p)
	}
	c.Log.ErrorContext(v.r.Context(), "a page panicked", "request_id", v.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	c.fail(v, fault.New(fault.Internal, nil))
}

// show writes a page. It is rendered whole before its first byte leaves, so that no half page passes for a whole one.
func (c *console) show(v *visit, status int, name string, page any) error {
	book, err := c.bookIn(v.in)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := book.pages[name].Execute(&b, page); err != nil {
		return fmt.Errorf("showing the page %s: %w", name, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Content-Language", v.in.lang)
	v.w.WriteHeader(status)
	_, _ = b.WriteTo(v.w)
	return nil
}

// goTo ends a post: the browser gets the page that shows what is now so, and a reload repeats nothing.
func (v *visit) goTo(path string) error {
	http.Redirect(v.w, v.r, v.in.link(path), http.StatusSeeOther)
	return nil
}

// t is a text of the catalogue; args are names and values in turn.
func (v *visit) t(key string, args ...any) string {
	text, err := say(v.texts, key, args)
	if err != nil {
		return key
	}
	return text
}

func (v *visit) writer() answer.Writer {
	return answer.Writer{Texts: v.texts, Detailed: true, RequestID: v.requestID, Revealed: v.revealed}
}

// changeID reads the address. What is no ID is answered as an unknown one.
func (v *visit) changeID() (preview.ID, error) {
	id, ok := preview.ParseID(v.r.PathValue("id"))
	if !ok {
		return id, fault.New(fault.NotFound, nil)
	}
	return id, nil
}

// field is a posted text.
func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }

// readForm reads a posted form. One that is too large or malformed is refused before anything is done.
func (v *visit) readForm() error {
	if err := v.r.ParseForm(); err != nil {
		return fault.New(fault.TooLarge, fault.Args{"limit": maxForm}).Because(err)
	}
	return nil
}

// kept is a text that somebody typed and that was not recorded.
type kept struct{ Label, Text string }

// kept lists the typed texts of a post, so that a refusal loses none.
func (v *visit) kept() []kept {
	if v.r.Method != http.MethodPost || v.r.ParseForm() != nil {
		return nil
	}
	var all []kept
	for _, name := range []string{"reason", "evidence"} {
		if text := v.field(name); text != "" {
			all = append(all, kept{v.t("web.form." + name), text})
		}
	}
	return all
}

// local returns a path of this console to go to next. Anything else, such as another site's address, becomes the queue.
func local(next string) string {
	u, err := url.Parse(next)
	plain := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil
	if !plain || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return u.RequestURI()
}
