package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// The tests of this file are scenarios in which a stranger should see the difference. Each runs the real program.

// The process is killed after the claim, while the target sleeps over the request, and started again. Nobody retries. Within the
// lease and one sweep the outcome is unknown for every reader; what the target did after all is found, and it is one effect.
func TestHeadToHead01_KilledAfterTheClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	campaign := target.PlainJPY(0)
	id := s.prepare(campaign, 12000).PreviewID
	s.fault(target.Once(target.OpChange, campaign, target.Step{Action: target.HoldBefore}))
	caller := s.as("agent")
	lost := make(chan error, 1)
	go func() {
		_, err := caller.post(context.WithoutCancel(t.Context()), "/v1/previews/"+id+"/apply", map[string]any{})
		lost <- err
	}()
	s.held(campaign)
	s.kill()
	if err := <-lost; err == nil {
		t.Error("the caller of a process that was killed got an answer")
	}
	s.start()
	restarted := time.Now()
	var c answer.Change
	until(t, "the lease is marked as lapsed", func() bool {
		c = s.change(id)
		return slices.ContainsFunc(c.Events, func(e answer.Event) bool { return e.Kind == "lease_lapsed" })
	})
	if c.Status != "unknown" {
		t.Errorf("got %s after the lapse, want unknown", c.Status)
	}
	wantSoonAfterTheLease(t, c, restarted)
	if list := s.unknowns(); !slices.Contains(list, id) {
		t.Errorf("the list of unknown outcomes holds %v, want %s", list, id)
	}
	if page := s.page("operator", "/outcomes"); !strings.Contains(page, id) {
		t.Error("the console's list of unknown outcomes does not hold the change")
	}
	until(t, "the metric counts it", func() bool { return s.metric("cutonce_unknown") == "1" })
	if got := s.tally(campaign); got.Received != 1 || got.Effects != 0 {
		t.Errorf("before the target wakes: got %+v, want one request and no effect", got)
	}
	s.release() // the target wakes up and does it, though nobody listens any more
	until(t, "the effect is found", func() bool { return s.change(id).Status == "applied" })
	c = s.change(id)
	if sends := countSends(c); sends != 1 || c.Outcome.Evidence != "lookup" && !c.Outcome.Contradicted {
		t.Errorf("got %d sends, known by %s, want one, found by a look", sends, c.Outcome.Evidence)
	}
	if got := s.tally(campaign); got.Received != 1 || got.Effects != 1 {
		t.Errorf("got %+v, want one request and one effect", got)
	}
}

// wantSoonAfterTheLease compares the database's own times. The machine may be busy, so that a sweep is late; it is never minutes.
func wantSoonAfterTheLease(t *testing.T, c answer.Change, restarted time.Time) {
	t.Helper()
	const sweep, noise = 300 * time.Millisecond, 20 * time.Second
	from := *c.Outcome.LeaseUntil
	if restarted.After(from) {
		from = restarted
	}
	for _, e := range c.Events {
		if late := e.At.Sub(from); e.Kind == "lease_lapsed" && late > sweep+noise {
			t.Errorf("the lapse was marked %s after lease and restart, want one sweep", late)
		}
	}
}

func countSends(c answer.Change) (n int) {
	for _, a := range c.Attempts {
		if a.Kind == "send" {
			n++
		}
	}
	return n
}

func (s *stage) unknowns() (ids []string) {
	s.t.Helper()
	var page answer.Changes
	decode(s.t, s.changes("oper", nil, "list", "--json", "--status", "unknown").out, &page)
	for _, c := range page.Items {
		ids = append(ids, c.PreviewID)
	}
	return ids
}

// A named operator settles the outcome with reason and evidence; the opposite is a conflict that names the first; the statement is an
// event of the change's chain, which verifies without the database.
func TestHeadToHead02_ResolveTheTruth(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.unlooked(target.PlainJPY(0), 12000)
	first := s.changes("oper", nil, "resolve", id, "--applied", "--reason", "the platform shows 12,000", "--evidence", "ticket OPS-112")
	if first.code != 0 || !strings.Contains(first.out, "oper@agency.example") {
		t.Fatalf("got %+v, want it settled under the operator's name", first)
	}
	again := s.changes("oper", nil, "resolve", id, "--applied", "--reason", "the platform shows 12,000", "--evidence", "ticket OPS-112")
	if again.code != 0 {
		t.Errorf("the same again: got %+v, want no change and no refusal", again)
	}
	second := s.changes("admin", nil, "resolve", id, "--not-applied", "--reason", "I do not see it", "--evidence", "ticket OPS-113")
	if second.code != exitRefused || !strings.Contains(second.err, "oper@agency.example") || !strings.Contains(second.err, "the platform shows 12,000") {
		t.Errorf("the opposite: got %+v, want a conflict that names the first and the reason", second)
	}
	own := s.changes("sato", nil, "resolve", id, "--applied", "--reason", "I want it to be", "--evidence", "none at all")
	if own.code != exitRefused {
		t.Errorf("the requester: got %+v, want a refusal", own)
	}
	c := s.change(id)
	if c.Status != "applied" || c.Outcome.Evidence != "operator" || c.Outcome.ResolvedBy != "oper@agency.example" {
		t.Errorf("got %s by %s (%s), want applied by the operator's word", c.Status, c.Outcome.Evidence, c.Outcome.ResolvedBy)
	}
	events := chainOf(t, c)
	if err := audit.Verify(events); err != nil {
		t.Errorf("the chain: %v", err)
	}
	last := &events[len(events)-1]
	if last.Kind != "resolved" || !bytes.Contains(last.Body, []byte("ticket OPS-112")) {
		t.Errorf("got %s %s, want the statement with its evidence at the end of the chain", last.Kind, last.Body)
	}
	last.Body = bytes.Replace(last.Body, []byte("OPS-112"), []byte("OPS-999"), 1)
	if err := audit.Verify(events); err == nil {
		t.Error("an altered statement verifies")
	}
}

// chainOf is the chain as anybody who may read the change gets it.
func chainOf(t *testing.T, c answer.Change) (events []audit.Event) {
	t.Helper()
	id, ok := preview.ParseID(c.PreviewID)
	if !ok {
		t.Fatalf("%s is no ID", c.PreviewID)
	}
	for _, e := range c.Events {
		hash, err := hex.DecodeString(e.Hash)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, audit.Event{
			Preview: id.UUID(), Seq: e.Seq, Tenant: "dev", Kind: e.Kind, Actor: e.Actor, At: e.At, Body: []byte(e.Body), Hash: hash,
		})
	}
	return events
}

// The reply to an apply is lost; its client repeats the ID 20 times, through both doors. Each gets the stored result, of one effect.
func TestHeadToHead03_TheReplyIsLostAndTheClientRepeats(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	campaign := target.PlainJPY(0)
	id := s.prepare(campaign, 12000).PreviewID
	s.fault(target.Once(target.OpChange, campaign, target.Step{Action: target.HoldBefore}))
	ctx, hangUp := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		_, err := s.as("agent").post(ctx, "/v1/previews/"+id+"/apply", map[string]any{})
		lost <- err
	}()
	s.held(campaign)
	hangUp()
	if err := <-lost; err == nil {
		t.Error("the client that hung up got an answer")
	}
	s.release()
	agent := s.mcp()
	var first string
	for n := range 20 {
		b := s.apply(id)
		if n%2 == 1 {
			var err error
			if b, err = agent.call(t.Context(), "budget_change_apply", map[string]any{"preview_id": id}); err != nil {
				t.Fatal(err)
			}
		}
		if b.Code != "" || b.Status != "applied" {
			t.Fatalf("repetition %d: got %s %s (%s), want applied", n, b.Status, b.Code, b.Message)
		}
		stored := fmt.Sprint(b.Change.Outcome.Effect, b.Change.Outcome.Evidence, b.Change.Summary, b.PreviewID)
		if n == 0 {
			first = stored
		}
		if stored != first {
			t.Errorf("repetition %d: got %s, want %s", n, stored, first)
		}
	}
	if got := s.tally(campaign); got.Received != 1 || got.Effects != 1 {
		t.Errorf("got %+v, want one request and one effect", got)
	}
}

// everyChange asks a person for each change of a budget.
const everyChange = `version: 1
default:
  require: [{any_of: [ads-approvers], count: 1}]
  message: {en: A person must approve this., ja: 担当者の承認が必要です。}
rules: []
`

// Approved from 100 to 120, the live value becomes 200, apply: refused, with what was approved against, what was expected and what is
// there now, and nothing is sent. The refusal carries the call that prepares it again. The same through MCP.
func TestHeadToHead08_TheTargetMovedAfterTheApproval(t *testing.T) {
	t.Parallel()
	rules := t.TempDir()
	if err := os.WriteFile(filepath.Join(rules, "all.yaml"), []byte(everyChange), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, "CUTONCE_POLICY_DIR="+rules)
	agent := s.mcp()
	for name, apply := range map[string]func(id string) (answer.Body, error){
		"JSON API": func(id string) (answer.Body, error) { return s.apply(id), nil },
		"MCP": func(id string) (answer.Body, error) {
			return agent.call(t.Context(), "budget_change_apply", map[string]any{"preview_id": id})
		},
	} {
		campaign := s.campaign("through the "+name, "100")
		id := s.approved(campaign, 120)
		const live = "200"
		if _, err := s.ads.EditCampaign(t.Context(), campaign, target.CampaignEdit{DailyBudget: live}); err != nil {
			t.Fatal(err)
		}
		b, err := apply(id)
		if err != nil {
			t.Fatal(err)
		}
		if b.Code != "drifted" || b.Status != "not_applied" || b.Next != "prepare_again" || b.NextTool != "budget_change_preview" {
			t.Errorf("%s: got %s %s, next %s %s, want drifted and to prepare again", name, b.Status, b.Code, b.Next, b.NextTool)
		}
		columns, err := json.Marshal(b.Data["columns"])
		if err != nil {
			t.Fatal(err)
		}
		var moved []answer.Column
		decode(t, string(columns), &moved)
		if len(moved) != 1 || moved[0].AtPreview.Amount != "100" || moved[0].Now.Amount != "200" || moved[0].Requested.Amount != "120" {
			t.Errorf("%s: got %s, want 100 at the preview, 200 now, 120 requested", name, columns)
		}
		if got := s.tally(campaign); got.Received != 0 {
			t.Errorf("%s: got %+v, want nothing sent", name, got)
		}
		// One call prepares it again, as it is given in the refusal: against what is there now, and for people to approve anew.
		again, err := agent.call(t.Context(), b.NextTool, b.NextArguments)
		if err != nil || again.PreviewID == id || again.Status != "needs_approval" {
			t.Fatalf("%s: preparing again: got %s %s, %v, want a new preview that needs approval", name, again.Status, again.Message, err)
		}
		if row := again.Change.Changes[0]; row.Before.Amount != "200" || row.After.Amount != "120" {
			t.Errorf("%s: got %s to %s, want 200 to 120", name, row.Before.Amount, row.After.Amount)
		}
		if b := s.apply(again.PreviewID); b.Code != "approval_required" {
			t.Errorf("%s: applying that: got %s, want that a person must approve", name, b.Code)
		}
	}
}

// campaign adds one whose name looks like no other's.
func (s *stage) campaign(name, budget string) string {
	s.t.Helper()
	id := fmt.Sprintf("9%07d", len(name))
	err := s.ads.AddCampaign(s.t.Context(), target.Campaign{
		ID: id, AccountID: "acc-jp-01", Name: "Scenario " + hex.EncodeToString([]byte(name+name+name)), Status: target.StatusEnabled, Owner: target.UserSato,
		Currency: "JPY", DailyBudget: budget,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// approved is a change that a person has approved.
func (s *stage) approved(campaign string, yen int) string {
	s.t.Helper()
	p := s.prepare(campaign, yen)
	if p.Status != "needs_approval" {
		s.t.Fatalf("prepare: got %s %s (%s), want needs_approval", p.Status, p.Code, p.Message)
	}
	s.post("agent", "/v1/previews/"+p.PreviewID+"/approval-request", map[string]any{"justification": "please"})
	digest := s.change(p.PreviewID).Digest
	b := s.post("kim", "/v1/previews/"+p.PreviewID+"/decisions", map[string]any{"decision": "approve", "digest": digest})
	if b.Status != string(commit.StatusApproved) {
		s.t.Fatalf("approve: got %s %s (%s), want approved", b.Status, b.Code, b.Message)
	}
	return p.PreviewID
}

// Three changes of one campaign in a day, the last back to what the first one set, all work; eight applies of one ID at once are
// one effect.
func TestHeadToHead09_TheSameTargetAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	campaign := target.PlainJPY(0)
	for n, yen := range []int{12000, 11000, 12000} {
		if b := s.apply(s.prepare(campaign, yen).PreviewID); b.Status != "applied" {
			t.Fatalf("change %d: got %s %s (%s), want applied", n, b.Status, b.Code, b.Message)
		}
	}
	if got := s.tally(campaign); got.Received != 3 || got.Effects != 3 {
		t.Errorf("got %+v, want three requests and three effects", got)
	}
	other := target.PlainJPY(1)
	id := s.prepare(other, 12000).PreviewID
	var calls sync.WaitGroup
	answers := make([]answer.Body, 8)
	errs := make([]error, 8)
	caller := s.as("agent")
	for n := range answers {
		calls.Go(func() { answers[n], errs[n] = caller.post(t.Context(), "/v1/previews/"+id+"/apply", map[string]any{}) })
	}
	calls.Wait()
	for n, b := range answers {
		if errs[n] != nil || b.Status != "applied" || b.Code != "" {
			t.Errorf("apply %d: got %s %s, %v, want applied", n, b.Status, b.Code, errs[n])
		}
	}
	if got := s.tally(other); got.Received != 1 || got.Effects != 1 {
		t.Errorf("got %+v, want one request and one effect", got)
	}
}
