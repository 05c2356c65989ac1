package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

// mostParam bounds a query parameter in characters; cursors are the longest.
const mostParam = 1000

// readQuery refuses what the operation does not know: a misspelt filter must not look like an empty one. The paths of the
// fields that it names begin with "?".
func (c *call) readQuery(known []string) error {
	values, err := url.ParseQuery(c.echo.Request().URL.RawQuery)
	if err != nil {
		return badParam("", "field.query.unreadable", fault.Args{"most": mostParam})
	}
	f := fault.New(fault.InvalidInput, nil)
	for name, given := range values {
		c.checkParam(f, name, given, known)
	}
	if len(f.Fields) > 0 {
		slices.SortFunc(f.Fields, func(a, b fault.Field) int { return strings.Compare(a.Path, b.Path) })
		return f
	}
	c.query = values
	format, err := c.oneOf(paramFormat, "concise", "detailed")
	c.detailed = format == "detailed"
	return err
}

func (c *call) checkParam(f *fault.Fault, name string, given, known []string) {
	switch {
	case !slices.Contains(known, name):
		f.WithField("?"+clip(strings.Trim(strconv.QuoteToASCII(name), `"`)), "field.query.unknown", fault.Args{"known": list(known)})
	case len(given) > 1:
		f.WithField("?"+name, "field.query.repeated", nil)
	case !c.readable(given[0]):
		f.WithField("?"+name, "field.query.unreadable", fault.Args{"most": mostParam})
	}
}

// readable lets the bodies' own rule judge a parameter: of bounded length, and nothing in it that a reader cannot see.
func (c *call) readable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsAny(s, "\r\n\t") && c.bodies[param].Check(s) == nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, ", ")
}

func badParam(name, key string, args fault.Args) error {
	return fault.New(fault.InvalidInput, nil).WithField("?"+name, key, args)
}

// oneOf reads a parameter with few values; empty if it is absent.
func (c *call) oneOf(name string, values ...string) (string, error) {
	given, ok := c.query[name]
	switch {
	case !ok:
		return "", nil
	case !slices.Contains(values, given[0]):
		return "", badParam(name, "field.one_of", fault.Args{"values": strings.Join(values, ", ")})
	}
	return given[0], nil
}

// whole reads a whole number within bounds; zero if it is absent.
func (c *call) whole(name string, least, most int) (int, error) {
	given, ok := c.query[name]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(given[0])
	if err != nil || n < least || n > most || strconv.Itoa(n) != given[0] {
		return 0, badParam(name, "field.query.whole", fault.Args{"least": least, "most": most})
	}
	return n, nil
}

func (c *call) wait() (time.Duration, error) {
	n, err := c.whole(paramWait, 0, int(commit.MaxWait/time.Second))
	return time.Duration(n) * time.Second, err
}

// moment reads a time with its offset from UTC (RFC 3339); the zero time if it is absent.
func (c *call) moment(name string) (time.Time, error) {
	given, ok := c.query[name]
	if !ok {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, given[0])
	if err != nil {
		return at, badParam(name, "field.query.moment", nil)
	}
	return at, nil
}

// mostItems bounds one page.
const mostItems = 100

func (c *call) page() (cursor string, limit int, err error) {
	limit, err = c.whole(paramLimit, 1, mostItems)
	return c.query.Get(paramCursor), limit, err
}

// statuses reads one status or several, separated by commas.
func (c *call) statuses() ([]commit.Status, error) {
	given, ok := c.query[paramStatus]
	if !ok {
		return nil, nil
	}
	var out []commit.Status
	for _, one := range strings.Split(given[0], ",") {
		if !slices.Contains(commit.Statuses(), commit.Status(one)) {
			return nil, badParam(paramStatus, "field.one_of", fault.Args{"values": allStatuses()})
		}
		out = append(out, commit.Status(one))
	}
	return out, nil
}

func allStatuses() string {
	var all []string
	for _, s := range commit.Statuses() {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}
