package store_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

func recordsOf(t *testing.T, file []byte) []audit.Record {
	t.Helper()
	var records []audit.Record
	for line := range bytes.Lines(file) {
		var r audit.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// rewritten writes records again, and counts them at the end as the exporter does.
func rewritten(t *testing.T, records []audit.Record) []byte {
	t.Helper()
	var file bytes.Buffer
	for i, r := range records {
		if r.Record == "end" {
			r.Lines = int64(i)
		}
		if err := json.NewEncoder(&file).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}

func hexOf(id preview.ID) string { u := id.UUID(); return hex.EncodeToString(u[:]) }

// hidden takes a chain behind an event out of a file, as its carrier can: the leaves say their hashes only, and the transactions
// of what is left, which nothing covers, are raised.
func hidden(t *testing.T, file []byte, id preview.ID, from int64) []byte {
	t.Helper()
	var out []audit.Record
	var last string
	for _, r := range recordsOf(t, file) {
		if r.Chain == hexOf(id) {
			switch {
			case r.Record == "leaf" && r.Seq > from:
				head, err := hex.DecodeString(r.Hash)
				if err != nil {
					t.Fatal(err)
				}
				sum := audit.Leaf{Kind: r.Kind, Chain: id.UUID(), Tenant: r.Tenant, Seq: r.Seq, Head: head}.Sum()
				r = audit.Record{Record: "leaf", Seal: r.Seal, Place: r.Place, Root: hex.EncodeToString(sum[:])}
			case r.Record == "event" && r.Seq > from, r.Record == "head" && from == 0:
				continue
			case r.Record == "event":
				last, r.XID = r.Hash, "99999999999"
			case r.Record == "head":
				r.Seq, r.Hash = from, last
			}
		}
		out = append(out, r)
	}
	return rewritten(t, out)
}

// TestNothingIsTakenOutOfAWholeExport: who carries a file has no key, and still writes it as they like.
func TestNothingIsTakenOutOfAWholeExport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, _ := r.applied("a"), r.applied("b")
	r.sealAll()
	file := r.export(store.ExportFilter{})
	wantFindings(t, verify(t, rewritten(t, recordsOf(t, file)), nil))
	for name, from := range map[string]int64{"the whole change": 0, "all behind its second event": 2} {
		cut := hidden(t, file, p.ID, from)
		if got := fmt.Sprint(verify(t, cut, nil).Findings); !strings.Contains(got, "do not say what they cover") {
			t.Errorf("%s: got %s, want the leaf that says nothing named", name, got)
		}
		partly := recordsOf(t, cut)
		partly[0].Tenant = "acme"
		wantFindings(t, verify(t, rewritten(t, partly), nil), "the whole was asked for")
		if got := verifyPart(t, rewritten(t, partly)); got.Hidden == 0 || from > 0 && got.Overdue != from {
			t.Errorf("%s, as a part: got %d hidden and %d overdue, want them counted", name, got.Hidden, got.Overdue)
		}
	}
}

// TestARaisedTransactionAcquitsNobody: what is behind the sealed end is never taken for sealed, whatever its unhashed number says.
func TestARaisedTransactionAcquitsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.applied("a")
	r.sealAll()
	r.tamper(
		run(`insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash, xid)
			select preview_id, 6, tenant_id, 'probed', actor, at, '{}', event_hash(hash, preview_id, 6, 'probed', actor, tenant_id, at, '{}'), '99999999999'
			from audit_events where preview_id = $1 and seq = 5`, p.ID.UUID()),
		run(`update previews p set audit_seq = 6, audit_head = e.hash from audit_events e where p.id = $1 and e.preview_id = p.id and e.seq = 6`, p.ID.UUID()),
	)
	got := r.verifyExport(nil)
	if got.Unsealed != 1 || got.Overdue != 1 || len(got.UnsealedNamed) != 1 || got.UnsealedNamed[0] != (audit.Place{Preview: p.ID.String(), Seq: 6}) {
		t.Errorf("got %d unsealed (%v) and %d overdue, want the one that was put in, named", got.Unsealed, got.UnsealedNamed, got.Overdue)
	}
}

// TestASecondCopyOfAChainIsNoticed: one that was sealed must not come again as one that is not sealed yet.
func TestASecondCopyOfAChainIsNoticed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, q := r.applied("a"), r.applied("b")
	r.sealAll()
	var before, copied, after []audit.Record
	for _, record := range recordsOf(t, r.export(store.ExportFilter{})) {
		if record.Chain == hexOf(p.ID) && (record.Record == "event" || record.Record == "head") {
			copied = append(copied, record)
		}
		if record.Record == "end" {
			after = append(after, record)
			continue
		}
		before = append(before, record)
	}
	for i := range copied {
		if copied[i].XID != "" {
			copied[i].XID = "99999999999"
		}
	}
	got := verify(t, rewritten(t, append(append(before, copied...), after...)), nil)
	wantFindings(t, got, p.ID.String()+": its chain stands out of order, or twice")
	if p.ID.String() > q.ID.String() {
		t.Error("the second change does not stand behind the first")
	}
}

// TestWhatAnEventShowsIsWhatWasHashed: beside the true bytes nothing else may stand that a person or a program would read instead.
func TestWhatAnEventShowsIsWhatWasHashed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, q := r.applied("a"), r.applied("b")
	r.sealAll()
	records := recordsOf(t, r.export(store.ExportFilter{}))
	for i, record := range records {
		if record.Record == "event" && record.Chain == hexOf(p.ID) && record.Seq == 3 {
			records[i].Preview = q.ID.String()
		}
	}
	wantFindings(t, verify(t, rewritten(t, records), nil), q.ID.String()+", event 3: the event bears this name")
}

// buried deletes a change as a superuser can, and puts a tombstone of a time in its place.
func buried(p preview.Preview, at string) []statement {
	s := []statement{run(`insert into tombstones (preview_id, tenant_id, audit_seq, audit_head, settled_at, retired_at)
		select id, tenant_id, audit_seq, audit_head, created_at, `+at+` from previews where id = $1`, p.ID.UUID())}
	for _, table := range []string{"attempts", "executions", "decisions", "audit_events"} {
		s = append(s, run(`delete from `+table+` where preview_id = $1`, p.ID.UUID()))
	}
	return append(s, run(`delete from previews where id = $1`, p.ID.UUID()))
}

// TestAForgedTombstoneHidesNothing: a sealed change is gone only where the deployment's chain recorded its retirement, in time.
func TestAForgedTombstoneHidesNothing(t *testing.T) {
	t.Parallel()
	// As sqlRetire writes it, over the tombstones of one time.
	const recorded = `with b as (
		  select retired_at as at, convert_to(format('{"changes":%s,"digest":"%s"}', count(*), encode(sha256(
		    string_agg(uuid_send(preview_id) || int8send(audit_seq) || audit_head, '' order by preview_id)), 'hex')), 'UTF8') as body
		  from tombstones group by 1
		), u as (
		  update controls k set audit_seq = audit_seq + 1,
		    audit_head = control_hash(audit_head, tenant_id, audit_seq + 1, 'retired', 'service', b.at, b.body) from b where tenant_id = ''
		  returning k.audit_seq, k.audit_head, b.at, b.body
		) insert into control_events (scope, seq, kind, actor, at, body, hash) select '', audit_seq, 'retired', 'service', at, body, audit_head from u`
	for name, tc := range map[string]struct {
		at, then string
		seal     bool
		want     []string
	}{
		"now":             {"clock_timestamp()", "", false, []string{"%s, event 5: it was removed too soon", "%s: no retirement was recorded"}},
		"in a month":      {"clock_timestamp() + interval '31 days'", "", false, []string{"%s, event 5: its tombstone says that it was retired at", "%s: no retirement was recorded"}},
		"recorded":        {"clock_timestamp()", recorded, false, []string{"%s, event 5: it was removed too soon"}},
		"recorded ahead":  {"clock_timestamp() + interval '31 days'", recorded, true, []string{"%s, event 5: its tombstone says that it was retired at", "event 3: it tells a time after seal"}},
		"digested wrong":  {"clock_timestamp()", recorded + `; update tombstones set audit_head = sha256(audit_head)`, false, []string{"%s, event 5: its tombstone has another hash", "event 3: the 1 tombstones of its time are not those"}},
		"tombstones gone": {"clock_timestamp()", recorded + `; delete from tombstones`, false, []string{"%s, event 5: all of it is gone", "event 3: the 0 tombstones of its time are not those"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p, _ := r.applied("a"), r.applied("b")
			r.sealAll()
			r.tamper(buried(p, tc.at)...)
			for _, s := range strings.Split(tc.then, ";") {
				if s != "" {
					r.tamper(run(s))
				}
			}
			if tc.seal {
				r.sealAll()
			}
			for i := range tc.want {
				tc.want[i] = strings.ReplaceAll(tc.want[i], "%s", p.ID.String())
			}
			wantFindings(t, r.verifyExport(nil), tc.want...)
		})
	}
}

// TestAnHonestRetirementVerifies: the digest that is recomputed offline is the one that the statement wrote.
func TestAnHonestRetirementVerifies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.withoutFloor()
	for _, id := range []string{"a", "b", "c"} {
		r.applied(id)
	}
	if got := r.retire(); got != 3 { // before anything was sealed: seals are younger than thirty days in a test
		t.Fatalf("got %d retired, want 3", got)
	}
	r.applied("d")
	r.sealAll()
	got := r.verifyExport(nil)
	wantFindings(t, got)
	if got.Retired != 3 {
		t.Errorf("got %d retired, want 3", got.Retired)
	}
	for name, f := range map[string]store.ExportFilter{"of the tenant": {Tenant: "acme"}, "of another": {Tenant: "other"}, "since": {Since: time.Now()}} {
		if got := verifyPart(t, r.export(f)); !got.OK() {
			t.Errorf("%s: got %v", name, got.Findings)
		}
	}
}
