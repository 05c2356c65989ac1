package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/target"
)

// digestOf reads what a person would have on their screen.
func (r *rig) digestOf(as, id string) string {
	r.t.Helper()
	got := r.get(as, of(id, "?response_format=detailed"))
	got.want(r.t, http.StatusOK, "")
	return got.text("change", "digest")
}

func decision(what, digest, reason string) object {
	return object{"decision": what, "digest": digest, "reason": reason}
}

func TestPeopleApproveWhatTheyWereShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 16000)) // +60 %

	early := r.post("agent", of(id, "/apply"), object{})
	early.want(t, http.StatusConflict, "approval_required")
	if early.text("next_tool") != "approval_request" || early.text("change", "status") != "needs_approval" {
		t.Errorf("got %s, want the tool and the change's status", early.raw)
	}
	asked := r.post("agent", of(id, "/approval-request"), object{"justification": "売り切れが続いています"})
	asked.want(t, http.StatusOK, "")
	if asked.text("status") != "pending" || asked.text("next") != "await_approval" {
		t.Errorf("got %s, want pending", asked.raw)
	}
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusConflict, "approval_required")

	r.checkQueue(id)
	digest := r.digestOf("kim", id)
	r.post("agent", of(id, "/decisions"), decision("approve", digest, "")).want(t, http.StatusForbidden, "forbidden")
	r.post("sato", of(id, "/decisions"), decision("approve", digest, "")).want(t, http.StatusForbidden, "forbidden")
	r.post("auditor", of(id, "/decisions"), decision("approve", digest, "")).want(t, http.StatusForbidden, "forbidden")
	other := "00000000000000000000000000000000000000000000000000000000000000ff"
	r.post("kim", of(id, "/decisions"), decision("approve", other, "")).want(t, http.StatusConflict, "digest_mismatch")
	r.post("kim", of(id, "/decisions"), decision("reject", digest, "")).want(t, http.StatusBadRequest, "invalid_input")
	for range 2 {
		decided := r.post("kim", of(id, "/decisions"), decision("approve", digest, "within the plan"))
		decided.want(t, http.StatusOK, "")
		if decided.text("status") != "approved" {
			t.Errorf("got %s, want approved", decided.raw)
		}
	}
	applied := r.post("agent", of(id, "/apply"), nil)
	applied.want(t, http.StatusOK, "")
	if entries := r.ads.Entries(); len(entries) != 1 || entries[0].OnBehalfOf != target.UserSato {
		t.Errorf("got %+v, want one effect for sato", entries)
	}
}

func (r *rig) checkQueue(id string) {
	r.t.Helper()
	r.get("agent", "/v1/approvals").want(r.t, http.StatusForbidden, "forbidden")
	for person, may := range map[string]bool{"kim": true, "auditor": false} {
		queue := r.get(person, "/v1/approvals")
		queue.want(r.t, http.StatusOK, "")
		items := queue.at("items").([]any)
		if len(items) != 1 {
			r.t.Fatalf("%s: got %s, want one change", person, queue.raw)
		}
		item := items[0].(map[string]any)
		if got := under(item, "change", "preview_id"); got != id || item["may_decide"] != may || (item["why_not"] == nil) != may {
			r.t.Errorf("%s: got %s, want %s and may_decide %t", person, queue.raw, id, may)
		}
	}
}

func TestRejectionIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 16000))
	r.post("agent", of(id, "/approval-request"), nil).want(t, http.StatusOK, "")
	r.post("kim", of(id, "/decisions"), decision("reject", r.digestOf("kim", id), "ends tomorrow")).want(t, http.StatusOK, "")
	refused := r.do(ask{method: "POST", path: of(id, "/apply"), as: "agent", header: http.Header{"Accept-Language": {"en"}}})
	refused.want(t, http.StatusConflict, "rejected")
	if got, want := refused.text("detail"), "The change was rejected by kim@agency.example: ends tomorrow. Nothing has been sent."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPolicyDenies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	denied := r.post("agent", previewsPath, raise(0, 600000))
	denied.want(t, http.StatusForbidden, "policy_denied")
	if denied.text("change", "status") != "denied" || denied.at("retryable") != false {
		t.Errorf("got %s, want the denied change", denied.raw)
	}
	read := r.get("agent", of(denied.text("preview_id"), ""))
	read.want(t, http.StatusOK, "")
	r.post("agent", of(denied.text("preview_id"), "/apply"), nil).want(t, http.StatusForbidden, "policy_denied")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	for range 2 {
		canceled := r.post("agent", of(id, "/cancel"), object{"reason": "no longer wanted"})
		canceled.want(t, http.StatusOK, "")
		if canceled.text("status") != "canceled" {
			t.Errorf("got %s, want canceled", canceled.raw)
		}
	}
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusConflict, "canceled")
}

// An undo is a new preview from what the old one found, linked to it; a change that was never begun has nothing to undo.
func TestUndo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	r.post("agent", of(id, "/undo"), object{"reason": "too early"}).want(t, http.StatusConflict, "conflict")
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusOK, "")
	undone := r.post("agent", of(id, "/undo?response_format=detailed"), object{"reason": "The campaign ended early"})
	undone.want(t, http.StatusCreated, "")
	if got := undone.text("change", "reverts"); got != id {
		t.Errorf("got reverts %q, want %q", got, id)
	}
	again := r.post("agent", of(id, "/undo"), object{"reason": "The campaign ended early"})
	again.want(t, http.StatusOK, "")
	if again.text("preview_id") != undone.text("preview_id") {
		t.Errorf("got another preview for the same undo: %s", again.raw)
	}
	r.post("agent", of(undone.text("preview_id"), "/apply"), nil).want(t, http.StatusOK, "")
	now, _ := r.ads.Campaign(target.PlainJPY(0))
	if got, want := now.DailyBudget, "10000"; got != want {
		t.Errorf("got a budget of %s, want %s again", got, want)
	}
	r.post("agent", of("pv_00000000000000000000000000", "/undo"), object{"reason": "whose?"}).want(t, http.StatusNotFound, "not_found")
}

func TestExpired(t *testing.T) {
	t.Parallel()
	r := newRig(t, withClocks(connector.Clocks{PreviewTTL: 50 * time.Millisecond}))
	id := r.prepared(raise(0, 12000))
	r.until(id, "expired")
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusGone, "expired")
	r.post("agent", of(id, "/cancel"), nil).want(t, http.StatusGone, "expired")
}

// until reads a change until it has a status, or fails.
func (r *rig) until(id, status string) reply {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := r.get("agent", of(id, "?wait_s=1"))
		got.want(r.t, http.StatusOK, "")
		if got.text("status") == status {
			return got
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got %s, want %s", got.raw, status)
		}
	}
}

func TestDriftShowsThreeColumns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	r.must(r.ads.SetBudget(target.PlainJPY(0), "11000"))
	for range 2 {
		drifted := r.post("agent", of(id, "/apply"), nil)
		drifted.want(t, http.StatusConflict, "drifted")
		columns := drifted.at("data", "columns").([]any)
		c := columns[0].(map[string]any)
		for name, want := range map[string]string{"at_preview": "10000", "now": "11000", "requested": "12000"} {
			if got := under(c, name, "amount"); got != want {
				t.Errorf("%s: got %v, want %s", name, got, want)
			}
		}
	}
	if got := r.ads.Counters().Total.Effects; got != 0 {
		t.Errorf("got %d effects, want none", got)
	}
}

func (r *rig) fault(op target.Op, id string, times int, steps ...target.Step) {
	r.t.Helper()
	r.must(r.ads.AddFault(target.Fault{Match: target.Match{Op: op, Resource: id}, Times: times, Do: steps}))
}

func TestNeverLeftMayBeRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	r.fault(target.OpRead, target.PlainJPY(0), 1, target.Step{Action: target.StatusBefore, Status: 503})
	away := r.post("agent", of(id, "/apply"), nil)
	away.want(t, http.StatusServiceUnavailable, "target_unavailable")
	if away.at("retryable") != true || away.text("change", "status") != "approved" {
		t.Errorf("got %s, want an approved change that may be applied again", away.raw)
	}
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusOK, "")
	if got := r.ads.Counters().Total.Effects; got != 1 {
		t.Errorf("got %d effects, want 1", got)
	}
}

func TestUnknownIsFoundByALook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	r.fault(target.OpChange, target.PlainJPY(0), 1, target.Step{Action: target.DropAfter})
	unknown := r.post("agent", of(id, "/apply"), nil)
	unknown.want(t, http.StatusGatewayTimeout, "outcome_unknown")
	if unknown.at("retryable") != false || unknown.text("next") != "check_status" || unknown.header.Get("Retry-After") == "" {
		t.Errorf("got %s, want check_status, not retryable", unknown.raw)
	}
	read := r.get("agent", of(id, ""))
	read.want(t, http.StatusOK, "")
	if read.text("status") != "unknown" {
		t.Errorf("got %s, want unknown", read.raw)
	}
	outcomes := r.get("oper", "/v1/outcomes")
	outcomes.want(t, http.StatusOK, "")
	if items := outcomes.at("items").([]any); len(items) != 1 {
		t.Errorf("got %s, want the one unknown outcome", outcomes.raw)
	}
	r.post("agent", of(id, "/probe"), nil).want(t, http.StatusForbidden, "forbidden")
	probed := r.post("oper", of(id, "/probe"), nil)
	probed.want(t, http.StatusOK, "")
	if probed.text("status") != "applied" || probed.text("change", "outcome", "evidence") != "lookup" {
		t.Errorf("got %s, want applied by look-up", probed.raw)
	}
	r.post("oper", of(id, "/probe"), nil).want(t, http.StatusConflict, "conflict")
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusOK, "")
}

func TestOperatorSettlesWhatNobodyCanLookUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, withAds(adbudget.Config{NoLookup: true}))
	id := r.prepared(raise(0, 12000))
	r.fault(target.OpChange, target.PlainJPY(0), 1, target.Step{Action: target.DropAfter})
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusGatewayTimeout, "outcome_unknown")

	busy := r.prepared(raise(0, 13000))
	waits := r.post("agent", of(busy, "/apply"), nil)
	waits.want(t, http.StatusConflict, "target_busy")
	if waits.text("data", "waits_for") != id || waits.at("retryable") != true {
		t.Errorf("got %s, want the change that it waits for", waits.raw)
	}

	said := object{"outcome": "applied", "reason": "seen in the console", "evidence": "ticket OPS-112"}
	r.post("agent", of(id, "/resolve"), said).want(t, http.StatusForbidden, "forbidden")
	r.post("auditor", of(id, "/resolve"), said).want(t, http.StatusForbidden, "forbidden")
	early := r.post("oper", of(id, "/resolve"), object{"outcome": "not_applied", "reason": "not in the console", "evidence": "ticket OPS-112"})
	early.want(t, http.StatusConflict, "conflict")
	if early.text("next") != "retry_later" || early.header.Get("Retry-After") == "" {
		t.Errorf("got %s, want to be told when", early.raw)
	}
	for range 2 {
		settled := r.post("oper", of(id, "/resolve"), said)
		settled.want(t, http.StatusOK, "")
		if settled.text("status") != "applied" || settled.text("change", "outcome", "resolved_by") == "" {
			t.Errorf("got %s, want applied by the operator's word", settled.raw)
		}
	}
	said["outcome"] = "not_applied"
	r.post("oper", of(id, "/resolve"), said).want(t, http.StatusConflict, "conflict")
	said["item"] = 7
	r.post("oper", of(id, "/resolve"), said).want(t, http.StatusConflict, "conflict")
}

func TestApplyThatTakesLongIsAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t, withClocks(connector.Clocks{SendFor: 5 * time.Second, LeaseFor: 20 * time.Second}), withDeps(shortApplyWait))
	id := r.prepared(raise(0, 12000))
	r.fault(target.OpChange, target.PlainJPY(0), 1, target.Step{Action: target.HoldBefore, Gate: "g"})
	accepted := r.post("agent", of(id, "/apply"), nil)
	accepted.want(t, http.StatusAccepted, "")
	if accepted.text("status") != "applying" || accepted.text("next") != "check_status" || accepted.header.Get("Retry-After") == "" {
		t.Errorf("got %s, want applying", accepted.raw)
	}
	r.post("agent", of(id, "/cancel"), nil).want(t, http.StatusConflict, "in_progress")
	r.ads.Release("g")
	r.until(id, "applied")
}

func TestListsArePagedAndFiltered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var ids []string
	for n := range 3 {
		ids = append(ids, r.prepared(raise(n, 12000)))
	}
	var seen []string
	path := "/v1/previews?limit=2"
	for path != "" {
		page := r.get("agent", path)
		page.want(t, http.StatusOK, "")
		for _, item := range page.at("items").([]any) {
			seen = append(seen, under(item, "preview_id").(string))
		}
		path = ""
		if cursor := page.text("next_cursor"); cursor != "" {
			path = "/v1/previews?limit=2&cursor=" + cursor
		}
	}
	slices.Reverse(seen)
	if !slices.Equal(seen, ids) {
		t.Errorf("got %v, want %v", seen, ids)
	}
	for query, want := range map[string]int{
		"?status=approved": 3, "?status=applied": 0, "?target_id=" + target.PlainJPY(1): 1, "?action=budget_change": 3, "?action=other": 0,
	} {
		got := r.get("agent", "/v1/previews"+query)
		got.want(t, http.StatusOK, "")
		if n := len(got.at("items").([]any)); n != want {
			t.Errorf("%s: got %d changes, want %d", query, n, want)
		}
	}
	mine := r.do(ask{method: "GET", path: "/v1/previews", token: r.token("sato")})
	if n := len(mine.at("items").([]any)); n != 3 {
		t.Errorf("got %d changes for the human behind the agent, want 3", n)
	}
}
