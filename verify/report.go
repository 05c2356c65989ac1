package verify

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

// Report is a whole run.
type Report struct {
	Results []Result      `json:"results"`
	Clocks  []Clock       `json:"clocks"`
	Notes   []string      `json:"notes,omitempty"`
	Took    time.Duration `json:"-"`
}

// Clock is one clock of a change's life, as configured and as this run used it.
type Clock struct {
	Name       string `json:"name"`
	Configured string `json:"configured"`
	Used       string `json:"used"`
}

// Count is how many checks ended so.
func (r Report) Count(s Status) int {
	n := 0
	for _, one := range r.Results {
		if one.Status == s {
			n++
		}
	}
	return n
}

// Code is the exit code of a finished run: 0 if nothing failed and something passed, 1 if something failed, 3 if nothing
// could be shown.
func (r Report) Code() int {
	switch {
	case r.Count(Fail) > 0:
		return 1
	case r.Count(Pass) > 0:
		return 0
	}
	return 3
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure"`
	Skipped *junitText `xml:"skipped"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
}

// JUnit writes the report in the XML that continuous integration reads. N-A is a skipped test.
func (r Report) JUnit(w io.Writer) error {
	suite := junitSuite{
		Name: "cutonce verify", Tests: len(r.Results), Failures: r.Count(Fail), Skipped: r.Count(NotApplicable), Time: seconds(r.Took),
	}
	for _, one := range r.Results {
		c := junitCase{Class: "cutonce.verify", Name: one.ID, Time: seconds(one.Took), Out: one.Promise}
		switch one.Status {
		case Fail:
			c.Failure = &junitText{one.Reason}
		case NotApplicable:
			c.Skipped = &junitText{one.Reason}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
