package store_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// controlSQL changes the control of a scope and writes its event, as the service's statements do. The set list names columns of k.
func controlSQL(scope, set string) string {
	return fmt.Sprintf(`
		with u as (
		  update controls k set %s, audit_seq = k.audit_seq + 1,
		    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, 'raw', 'raw', clock_timestamp(), '{}')
		  where k.tenant_id = '%s' returning k.tenant_id, k.audit_seq, k.audit_head
		)
		insert into control_events (scope, seq, kind, actor, at, body, hash)
		select tenant_id, audit_seq, 'raw', 'raw', clock_timestamp(), '{}', audit_head from u`, set, strings.ReplaceAll(scope, "'", "''"))
}

// frozenSQL freezes a scope (a tenant, or the deployment if it is empty), whatever its control has been.
func frozenSQL(scope string) string {
	return fmt.Sprintf(`
		with f as (
		  insert into freezes (tenant_id, kind, name, frozen_by, reason, frozen_at)
		  select '%[1]s', case '%[1]s' when '' then 'everything' else 'tenant' end, '', 'kim', 'a test', clock_timestamp()
		), u as (
		  insert into controls as k (tenant_id, frozen, freeze_epoch, audit_seq, audit_head)
		  values ('%[1]s', true, 1, 1, control_hash('\x00', '%[1]s', 1, 'raw', 'raw', clock_timestamp(), '{}'))
		  on conflict (tenant_id) do update set frozen = true, freeze_epoch = k.freeze_epoch + 1, audit_seq = k.audit_seq + 1,
		    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, 'raw', 'raw', clock_timestamp(), '{}')
		  returning tenant_id, audit_seq, audit_head
		)
		insert into control_events (scope, seq, kind, actor, at, body, hash)
		select tenant_id, audit_seq, 'raw', 'raw', clock_timestamp(), '{}', audit_head from u`, scope)
}

// replaceDatabase is the same server's other database.
func replaceDatabase(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
