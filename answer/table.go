package answer

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/visible"
)

// Format is a form of a table of changes.
type Format string

// The forms. CSV is for spreadsheets: UTF-8 with a byte order mark, without which some of them read Japanese as something else; commas,
// lines that end in CR LF (RFC 4180), and no cell that a spreadsheet would compute. NDJSON is for programs: a change a line, as the API
// shows it, and a last line that tells that the file is whole.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson"
)

// MediaType is what HTTP calls a format.
func (f Format) MediaType() string {
	if f == CSV {
		return "text/csv; charset=utf-8; header=present"
	}
	return "application/x-ndjson"
}

// Columns of the CSV form, which docs/history.md explains. They are never renamed or put in another order; new ones come last.
var columns = []string{
	"change_id", "status", "action", "target_system", "target_kind", "target_id", "target_name", "summary", "field", "before", "after",
	"currency", "requested_by", "on_behalf_of", "reason", "prepared_at", "expires_at", "verdict", "rule", "policy_version", "approved_by",
	"rejected_by", "ended_by", "end_reason", "sent_at", "settled_at", "effect", "why_not", "evidence", "settled_by", "settled_why",
	"contradicted", "digest", "page", "read_at", "zone",
}

// Table writes changes one by one. Nothing is held back but one line.
type Table struct {
	format Format
	writer Writer
	zone   *time.Location
	page   func(id string) string
	out    *bufio.Writer
	csv    *csv.Writer
	rows   int
}

// NewTable writes to w; page gives the address of a change's page. The CSV form writes times in a zone, as spreadsheets read them, and
// names it in each row; the NDJSON form is in UTC.
func NewTable(w io.Writer, format Format, writer Writer, zone *time.Location, page func(id string) string) *Table {
	writer.Detailed = true
	t := &Table{format: format, writer: writer, zone: zone, page: page, out: bufio.NewWriterSize(w, 32<<10)}
	t.csv = csv.NewWriter(t.out)
	t.csv.UseCRLF = true
	return t
}

const byteOrderMark = "\ufeff"

// begin writes what stands before the first row.
func (t *Table) begin() error {
	if t.format != CSV || t.rows > 0 {
		return nil
	}
	if _, err := t.out.WriteString(byteOrderMark); err != nil {
		return err
	}
	return t.csv.Write(columns)
}

// Write adds a change.
func (t *Table) Write(c commit.Change) error {
	if err := t.begin(); err != nil {
		return err
	}
	t.rows++
	if t.format == CSV {
		return t.csv.Write(t.cells(c))
	}
	return t.line(struct {
		Change
		ReadAt time.Time `json:"read_at"`
	}{t.writer.Change(c), c.Now.UTC()})
}

// ending is the last line of the NDJSON form.
type ending struct {
	End  bool `json:"end"`
	Rows int  `json:"rows"`
	// More says that there were more changes than one export gives.
	More bool `json:"more"`
}

// End completes the table. A CSV that was cut says so in a last row, where no change's ID stands.
func (t *Table) End(more bool) error {
	if err := t.begin(); err != nil {
		return err
	}
	switch {
	case t.format == NDJSON:
		if err := t.line(ending{true, t.rows, more}); err != nil {
			return err
		}
	case more:
		if err := t.csv.Write([]string{t.writer.Texts.T("export.cut", map[string]any{"rows": t.rows})}); err != nil {
			return err
		}
	}
	t.csv.Flush()
	if err := t.csv.Error(); err != nil {
		return err
	}
	return t.out.Flush()
}

func (t *Table) line(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = t.out.Write(append(raw, '\n'))
	return err
}

func (t *Table) cells(c commit.Change) []string {
	p, shown := c.Preview, t.writer.Change(c)
	field, before, after, currency := t.values(p.Plan.Changes, shown.Changes)
	approved, rejected := deciders(shown.Approval)
	row := []string{
		shown.PreviewID, shown.Status, shown.Action, shown.Target.System, shown.Target.Kind, shown.Target.ID, shown.Target.Name, shown.Summary,
		field, before, after, currency, shown.RequestedBy.Name, shown.RequestedBy.OnBehalfOf, p.Input.Text("reason"),
		t.moment(p.CreatedAt), t.momentOf(shown.ExpiresAt), shown.Ruling.Verdict, shown.Ruling.Rule, shown.Ruling.PolicyVersion, approved, rejected,
		p.EndedBy, p.EndReason,
	}
	row = append(row, t.outcomeCells(c, shown.Outcome)...)
	row = append(row, shown.Digest, t.page(shown.PreviewID), t.moment(c.Now), t.zone.String())
	for i, cell := range row {
		row[i] = Inert(visible.Text(oneLine.Replace(cell)))
	}
	return row
}

// outcomeCells are those from sent_at to contradicted, empty for what was never claimed.
func (t *Table) outcomeCells(c commit.Change, o *Outcome) []string {
	if o == nil {
		return make([]string, 8)
	}
	e := c.Executions[0]
	why := o.ResolvedWhy
	if why == "" {
		why = o.TargetSays
	}
	return []string{
		t.moment(e.StartedAt), t.moment(e.FinishedAt), o.Effect, o.Reason, o.Evidence, o.ResolvedBy, why, strconv.FormatBool(o.Contradicted),
	}
}

// values writes what changes. One amount stands as a plain number beside its currency, so that a spreadsheet can add it up; several
// fields stand in one cell, each with its name.
func (t *Table) values(changes []connector.Change, rows []Row) (field, before, after, currency string) {
	if len(changes) == 1 && !changes[0].Sensitive {
		a, b := plainly(changes[0].Before), plainly(changes[0].After)
		return changes[0].Field, a, b, currencyOf(changes[0])
	}
	var names, olds, news []string
	for _, r := range rows {
		names = append(names, r.Field)
		olds, news = append(olds, r.Field+"="+shownOf(r.Before)), append(news, r.Field+"="+shownOf(r.After))
	}
	return strings.Join(names, "; "), strings.Join(olds, "; "), strings.Join(news, "; "), ""
}

func shownOf(v *Value) string {
	if v == nil {
		return ""
	}
	return v.Shown
}

func plainly(v connector.Value) string {
	switch {
	case v.Amount != nil:
		return v.Amount.Decimal()
	case v.Text != nil:
		return *v.Text
	}
	return ""
}

func currencyOf(c connector.Change) string {
	for _, v := range []connector.Value{c.After, c.Before} {
		if v.Amount != nil {
			return string(v.Amount.Currency)
		}
	}
	return ""
}

// deciders names who voted how, in the order of their votes.
func deciders(a *Approval) (approved, rejected string) {
	if a == nil {
		return "", ""
	}
	var yes, no []string
	for _, v := range a.Votes {
		if v.Approve {
			yes = append(yes, v.Name)
		} else {
			no = append(no, v.Name)
		}
	}
	return strings.Join(yes, ", "), strings.Join(no, ", ")
}

func (t *Table) moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(t.zone).Format(time.DateTime)
}

func (t *Table) momentOf(at *time.Time) string {
	if at == nil {
		return ""
	}
	return t.moment(*at)
}

// computed are the characters that make a spreadsheet compute a cell which they begin, in either width.
const computed = "=+-@\t\r\n＝＋－＠"

var plainNumber = regexp.MustCompile(`^-?\d+(\.\d+)?$`)

// Inert is a cell that no spreadsheet computes: what begins as a formula does gets an apostrophe before it. A plain number stays one.
func Inert(cell string) string {
	first := strings.TrimLeft(cell, " \u3000")
	if first == "" || plainNumber.MatchString(cell) || !strings.ContainsAny(first[:firstRune(first)], computed) && !strings.HasPrefix(cell, "\t") {
		return cell
	}
	return "'" + cell
}

func firstRune(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
