package audit

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Format names the form of an export. It changes when an older verifier could no longer read it.
const Format = "cutonce audit 1"

// The records of an export, one JSON object a line, in this order: the header; each seal followed by its leaves; the control
// chains, each followed by its head; the previews' chains, each followed by its head; tombstones; the end.
const (
	recordHeader      = "header"
	recordSeal        = "seal"
	recordLeaf        = "leaf"
	recordControl     = "control"
	recordControlHead = "control_head"
	recordEvent       = "event"
	recordHead        = "head"
	recordTombstone   = "tombstone"
	recordEnd         = "end"
)

// Record is one line of an export. Which fields are set depends on Record. Times are microseconds since 1970, hashes are in
// hexadecimal, and numbers that exceed 2^53 are texts.
type Record struct {
	Record string `json:"record"`

	// Of the header.
	Format     string `json:"format,omitempty"`
	ExportedAt int64  `json:"exported_at_us,omitempty"`
	Since      int64  `json:"since_us,omitempty"`

	// Of events, heads, leaves and tombstones.
	Kind    string `json:"kind,omitempty"`
	Chain   string `json:"chain,omitempty"`
	Preview string `json:"preview,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Seq     int64  `json:"seq,omitempty"`
	Actor   string `json:"actor,omitempty"`
	At      int64  `json:"at_us,omitempty"`
	// Body is the stored bytes as text; BodyHex stands for it where they are no UTF-8.
	Body    string `json:"body,omitempty"`
	BodyHex string `json:"body_hex,omitempty"`
	Hash    string `json:"hash,omitempty"`
	XID     string `json:"xid,omitempty"`

	// Of seals and leaves.
	Seal      int64  `json:"seal,omitempty"`
	Place     int64  `json:"place,omitempty"`
	Number    int64  `json:"number,omitempty"`
	Window    int64  `json:"window,omitempty"`
	System    string `json:"system,omitempty"`
	From      string `json:"from_xid,omitempty"`
	To        string `json:"to_xid,omitempty"`
	CaughtUp  bool   `json:"caught_up,omitempty"`
	Leaves    int64  `json:"leaves,omitempty"`
	Prev      string `json:"prev,omitempty"`
	Root      string `json:"root,omitempty"`
	KeyID     string `json:"key_id,omitempty"`
	Signature string `json:"signature,omitempty"`

	// Of the end: how many lines went before it.
	Lines int64 `json:"lines,omitempty"`
}

func sealRecord(s Seal) Record {
	return Record{
		Record: recordSeal, Number: s.Number, Window: s.Window, System: strconv.FormatUint(s.System, 10),
		From: strconv.FormatUint(s.From, 10), To: strconv.FormatUint(s.To, 10), CaughtUp: s.CaughtUp, At: s.At.UnixMicro(),
		Leaves: s.Leaves, Prev: hex.EncodeToString(s.Prev), Root: hex.EncodeToString(s.Root), Hash: hex.EncodeToString(s.Hash),
		KeyID: s.KeyID, Signature: hex.EncodeToString(s.Signature),
	}
}

// seal reads a seal. What is not readable is left empty, and then does not verify.
func (r Record) seal() Seal {
	return Seal{
		Number: r.Number, Window: r.Window, System: number(r.System), From: number(r.From), To: number(r.To), CaughtUp: r.CaughtUp,
		At: time.UnixMicro(r.At), Leaves: r.Leaves, Prev: unhex(r.Prev), Root: unhex(r.Root), Hash: unhex(r.Hash), KeyID: r.KeyID,
		Signature: unhex(r.Signature),
	}
}

func (r Record) event() Event {
	e := Event{Seq: r.Seq, Tenant: r.Tenant, Kind: r.Kind, Actor: r.Actor, At: time.UnixMicro(r.At), Body: []byte(r.Body), Hash: unhex(r.Hash)}
	if r.BodyHex != "" {
		e.Body = unhex(r.BodyHex)
	}
	copy(e.Preview[:], unhex(r.Chain))
	return e
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func unhex(text string) []byte {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// Writer writes an export. Its methods must be called in the order of the records. Lines that cannot be written end it: every
// later call returns the first error.
type Writer struct {
	to *json.Encoder
	// name gives a preview's public form.
	name  func([16]byte) string
	lines int64
	err   error
}

// NewWriter writes to w; name gives a preview's public ID.
func NewWriter(w io.Writer, name func([16]byte) string) *Writer {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &Writer{to: encoder, name: name}
}

func (w *Writer) put(r Record) error {
	if w.err != nil {
		return w.err
	}
	w.lines++
	if err := w.to.Encode(r); err != nil {
		w.err = fmt.Errorf("writing the export: %w", err)
	}
	return w.err
}

// Header begins an export. since is the zero time, and tenant empty, where everything is exported.
func (w *Writer) Header(at time.Time, tenant string, since time.Time) error {
	r := Record{Record: recordHeader, Format: Format, ExportedAt: at.UnixMicro(), Tenant: tenant}
	if !since.IsZero() {
		r.Since = since.UnixMicro()
	}
	return w.put(r)
}

// Seal writes a seal.
func (w *Writer) Seal(s Seal) error { return w.put(sealRecord(s)) }

// Leaf writes a leaf of a seal, or only its hash where its chain is not part of the export.
func (w *Writer) Leaf(seal, place int64, l Leaf, whole bool) error {
	r := Record{Record: recordLeaf, Seal: seal, Place: place}
	if whole {
		r.Kind, r.Tenant, r.Seq, r.Hash = l.Kind, l.Tenant, l.Seq, hex.EncodeToString(l.Head)
		w.chain(&r, l.Chain, l.Kind == PreviewChain)
	} else {
		sum := l.Sum()
		r.Root = hex.EncodeToString(sum[:])
	}
	return w.put(r)
}

func (w *Writer) chain(r *Record, chain [16]byte, preview bool) {
	if preview {
		r.Chain, r.Preview = hex.EncodeToString(chain[:]), w.name(chain)
	}
}

// Event writes an event of a preview; xid is the transaction that stored it.
func (w *Writer) Event(e Event, xid uint64) error { return w.event(recordEvent, e, xid) }

// Control writes an event of a control chain, whose scope is its Tenant.
func (w *Writer) Control(e Event, xid uint64) error { return w.event(recordControl, e, xid) }

func (w *Writer) event(record string, e Event, xid uint64) error {
	r := Record{
		Record: record, Tenant: e.Tenant, Seq: e.Seq, Kind: e.Kind, Actor: e.Actor, At: e.At.UnixMicro(), Body: string(e.Body),
		Hash: hex.EncodeToString(e.Hash), XID: strconv.FormatUint(xid, 10),
	}
	if !utf8.Valid(e.Body) {
		r.Body, r.BodyHex = "", hex.EncodeToString(e.Body)
	}
	w.chain(&r, e.Preview, record == recordEvent)
	return w.put(r)
}

// Head writes where a preview itself says that its chain ends.
func (w *Writer) Head(l Leaf) error { return w.end(recordHead, l) }

// ControlHead writes where a control itself says that its chain ends.
func (w *Writer) ControlHead(l Leaf) error { return w.end(recordControlHead, l) }

// Tombstone writes what is left of a preview whose record was retired at a time.
func (w *Writer) Tombstone(l Leaf, at time.Time) error {
	r := Record{Record: recordTombstone, Tenant: l.Tenant, Seq: l.Seq, Hash: hex.EncodeToString(l.Head), At: at.UnixMicro()}
	w.chain(&r, l.Chain, true)
	return w.put(r)
}

func (w *Writer) end(record string, l Leaf) error {
	r := Record{Record: record, Tenant: l.Tenant, Seq: l.Seq, Hash: hex.EncodeToString(l.Head)}
	w.chain(&r, l.Chain, record == recordHead)
	return w.put(r)
}

// End closes an export, so that a file that was cut off is told from a whole one.
func (w *Writer) End() error { return w.put(Record{Record: recordEnd, Lines: w.lines}) }
