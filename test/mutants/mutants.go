package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is the program with one guard taken out, and the check of verify that must notice.
type mutant struct {
	name, check string
	edits       []edit
}

// edit is one fragment of a file and what stands there without the guard. Where one guard is held in two places, both go.
type edit struct{ file, guard, without string }

// list is every mutant.
func list() []mutant {
	return []mutant{
		{"claim-guard", "claim-guard", []edit{{"store/claim.go", "l.state = 'approved' and", ""}}},
		{"attempt-fence", "attempt-fence", []edit{{"store/record.go", "e.current_attempt = @attempt as current", "true as current"}}},
		{"digest-at-claim", "digest", []edit{{"store/claim.go", "and l.digest = @digest", ""}}},
		{"digest-at-vote", "digest", []edit{{"approvals/decide.go", "d.Digest != p.Digest", "d.Digest != d.Digest"}}},
		{"expiry", "expiry", []edit{{"store/claim.go", "l.deadline > clock_timestamp()", "true"}}},
		{"four-eyes", "four-eyes", []edit{{"approvals/decide.go", "p.Requester.Involves(who.Person())", "false"}}},
		{"four-eyes-in-schema", "four-eyes", []edit{{"migrations/00003_previews.sql", "lower(p.requester ->> 'for'), ", ""}}},
		{"get-body", "safe-sender", []edit{
			{"connector/sender.go", "io.NopCloser(bytes.NewReader(o.Body))", "bytes.NewReader(o.Body)"},
			{"connector/sender.go", "req.GetBody = nil", ""},
		}},
		{"redirect", "safe-sender", []edit{{"connector/sender.go", "transport.RoundTrip(req)", "(&http.Client{Transport: transport}).Do(req)"}}},
		{"not-sent-unproved", "safe-sender", []edit{{"connector/sender.go", "if unused && !w.headers.Load() {", "if unused || true {"}}},
		{"chain-link", "chain", []edit{
			{"audit/audit.go", "append([]byte{}, head...)", "append([]byte{}, nil...)"},
			{"migrations/00003_previews.sql", "sha256(head || ", "sha256("},
		}},
		{"tenant-policy", "tenants", []edit{{
			"migrations/00014_tenants.sql", "%I is not distinct from (select", "%I is not null or null is distinct from (select",
		}}},
		{"tenant-role", "tenants", []edit{{"store/tenancy.go", "sqlAsTenant = `select set_config('role', 'cutonce_app', true), ", "sqlAsTenant = `select "}}},
		{"chain-hash", "chain", []edit{{"audit/audit.go", "!bytes.Equal(sum[:], e.Hash)", "!bytes.Equal(sum[:], sum[:])"}}},
		{"audit-event", "audit-event", []edit{{"migrations/00003_previews.sql", "if new.audit_seq <> old.audit_seq + 1 then", "if false then"}}},
		{"target-lock", "target-lock", []edit{{"migrations/00004_executions.sql",
			"create unique index executions_target_lock", "create index executions_target_lock"}}},
		{"lease", "lease", []edit{{"commit/send.go", "check, err := s.Store.CheckLease(ctx, cl.Key, cl.Attempt, reading.Version, cl.Clocks.SettleFor)",
			"check := LeaseCheck{Current: true, Left: cl.Clocks.LeaseFor}"}}},
		{"freeze-at-apply", "freeze", []edit{{"commit/apply.go", "case epochs.FrozenBy != nil:", "case false:"}}},
		{"freeze-at-claim", "freeze", []edit{{"store/claim.go",
			"and not (c.frozen and exists (select from freeze_over(l.tenant_id, l.action, l.target_key)))", ""}}},
		{"drift", "drift", []edit{{"commit/send.go", "case c.Preview.Plan.Moved(reading):", "case false && c.Preview.Plan.Moved(reading):"}}},
		{"own-word", "own-word", []edit{{"commit/resolve.go", "case c.Preview.Requester.Involves(who.Person()):", "case false:"}}},
		{"own-word-in-schema", "own-word", []edit{{"migrations/00008_resolutions.sql",
			"create trigger guard before insert on resolutions for each row execute function guard_resolution();", ""}}},
		{"late-proof", "late-proof", []edit{{"store/record.go", "when @proof = 'effect' and state in ('applying', 'unknown', 'not_applied')",
			"when @proof = 'effect' and state in ('applying', 'unknown')"}}},
		{"one-vote", "four-eyes", []edit{{"migrations/00003_previews.sql", "create unique index decisions_one_each", "create index decisions_one_each"}}},
		{"one-send", "claim-guard", []edit{{"migrations/00004_executions.sql", "create unique index attempts_one_send", "create index attempts_one_send"}}},
		{"two-operators", "two-operators", []edit{{"commit/statement.go", "case e.Resolvers < 2:", "case true:"}}},
		{"two-operators-in-schema", "two-operators", []edit{{"migrations/00008_resolutions.sql", "if said.people < new.resolvers or", "if"}}},
		{"restoring-at-claim", "restore", []edit{{"store/claim.go", "and not c.restoring and", "and"}}},
		{"held-at-claim", "restore", []edit{{"store/claim.go",
			"and (c.restored_at is null or not exists (select from restore_holds h where h.preview_id = l.id and h.state = 'held'))", ""}}},
		{"quorum-and", "quorum", []edit{{"approvals/quorum.go", "Met: len(missing) == 0", "Met: len(missing) < 2"}}},
		{"one-seat", "quorum", []edit{{"approvals/quorum.go", "			holder[i] = person\n			return true\n", "			holder[i] = person\n"}}},
		{"votes-at-once", "quorum", []edit{{"store/transitions.go",
			"where state = @from and deadline > clock_timestamp() and digest = @digest and revision = @revision",
			"where state = @from and deadline > clock_timestamp() and digest = @digest"}}},
		{"removed-at-claim", "approver-removed", []edit{{"store/claim.go", " and c.approvers_epoch = @approvers_epoch", ""}}},
		{"removed-word", "approver-removed", []edit{{"preview/removal.go", "v.Digest == p.Digest && p.RemovalOf(v.Person) == nil", "v.Digest == p.Digest"}}},
		{"removed-decides", "approver-removed", []edit{{"approvals/decide.go", "case p.RemovalOf(who.Person()) != nil:", "case false:"}}},
		{"removed-in-schema", "approver-removed", []edit{{"migrations/00015_approvers.sql",
			"create trigger guard_removed before insert on decisions for each row execute function guard_removed();", ""}}},
		{"cap", "caps", []edit{{"migrations/00011_caps.sql", "if used + held + c.minor > ceiling then", "if false then"}}},
		{"cap-lock", "caps", []edit{{"migrations/00011_caps.sql", "c.currency, start) for update;", "c.currency, start);"}}},
		{"cap-unknown", "caps", []edit{{"migrations/00011_caps.sql",
			"when e.state = 'unknown' or e.state = 'applying' and e.lease_until <= clock_timestamp() then 'unknown'",
			"when e.state = 'unknown' or e.state = 'applying' and e.lease_until <= clock_timestamp() then 'free'"}}},
		{"cap-frees", "caps", []edit{{"migrations/00011_caps.sql", "when e.state = 'not_applied' then 'free'", "when e.state = 'not_applied' then 'held'"}}},
		{"audience", "identity", []edit{{"internal/auth/auth.go", "jwt.WithAudience(cfg.Audiences...),", ""}}},
		{"agents-by-act", "identity", []edit{{"internal/auth/identify.go", "case delegated:", "case false && delegated:"}}},
		{"agents-by-client", "identity", []edit{{"internal/auth/identify.go", "case i.isAgentClient(a.Client):", "case false:"}}},
		{"commit-in-doubt", "commit-in-doubt", []edit{{"commit/apply.go", "return s.confirm(ctx, cl)", "return nil"}}},
	}
}

// overlayFile tells the go command which files to take instead of which.
const overlayFile = "overlay.json"

// write puts copies of the mutant's files, without the guard, and their overlay into a folder.
func (m mutant) write(root, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	texts := map[string]string{}
	for _, e := range m.edits {
		path := filepath.Join(root, filepath.FromSlash(e.file))
		if texts[path] == "" {
			raw, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("the mutant %s: %w", m.name, err)
			}
			texts[path] = string(raw)
		}
		if n := strings.Count(texts[path], e.guard); n != 1 {
			return fmt.Errorf("the mutant %s: %s holds the guard %q %d times, want once: the guard has moved, change test/mutants/mutants.go",
				m.name, e.file, e.guard, n)
		}
		texts[path] = strings.Replace(texts[path], e.guard, e.without, 1)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for path, text := range texts {
		copied := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, root), string(filepath.Separator), "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return err
		}
		overlay["Replace"][path] = copied
	}
	raw, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, overlayFile), raw, 0o600)
}
