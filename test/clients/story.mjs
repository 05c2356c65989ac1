// The cases: what every client must be able to do, in order. A case returns what to print, or throws.
import assert from 'node:assert/strict';

// cases are run with one client, which begins with a token that lacks the scope for changes. Each client has two campaigns of
// its own: 10,000 JPY a day, with a name like no other.
export function cases(world, client, n) {
  const large = `2002${String(2 * n + 1).padStart(3, '0')}`, lost = `2002${String(2 * n + 2).padStart(3, '0')}`;
  const ask = (campaign, yen) => ({ campaign_id: campaign, new_daily_budget_jpy: yen, reason: 'Autumn campaign plan, week 48' });
  let id, applied;
  return [
    ['list', async () => {
      const tools = await client.list();
      const names = tools.map((t) => t.name);
      for (const want of ['campaigns_find', 'budget_change_preview', 'budget_change_apply', 'approval_request', 'change_status', 'change_cancel', 'changes_find']) {
        assert.ok(names.includes(want), `no tool ${want} in ${names}`);
      }
      assert.ok(!names.some((name) => /approve|decide|resolve|freeze/.test(name)), `a tool decides: ${names}`);
      const apply = tools.find((t) => t.name === 'budget_change_apply');
      assert.deepEqual(Object.keys(apply.inputSchema.properties), ['preview_id']);
      assert.equal(apply.annotations.destructiveHint, true);
      return `${tools.length} tools, none decides`;
    }],
    ['find', async () => {
      const { isError, body } = await client.call('campaigns_find', { query: '秋の特価' });
      assert.equal(isError, false);
      assert.ok(body.items.length >= 2, `found ${body.items.length}, want the look-alikes`);
      return body.items.map((i) => i.name).join(', ');
    }],
    ['step-up', async () => {
      const refusal = await client.refused('budget_change_preview', ask(large, 24000));
      assert.ok(refusal.challenged, `not challenged: ${refusal.how}`);
      assert.ok(refusal.scopes.includes('ads:budget'), `the challenge names ${refusal.scopes}`);
      await client.renew(world.tokens.agent);
      return `${refusal.how}, names ${refusal.scopes.join(' ')}; a token that has them is used from here on`;
    }],
    ['preview', async () => {
      const { isError, body } = await client.call('budget_change_preview', ask(large, 24000));
      assert.equal(isError, false, body.message);
      assert.equal(body.status, 'needs_approval');
      id = body.preview_id;
      const [row] = body.change.changes;
      assert.equal(row.before.amount, '10000');
      assert.equal(row.after.amount, '24000');
      const same = (await client.call('budget_change_preview', ask(large, 24000))).body;
      assert.equal(same.preview_id, id);
      assert.equal(same.replayed, true);
      return `${row.before.shown} → ${row.after.shown}: ${body.status}`;
    }],
    ['approval', async () => {
      const early = await client.call('budget_change_apply', { preview_id: id });
      assert.equal(early.isError, true);
      assert.equal(early.body.code, 'approval_required');
      assert.equal(early.body.next_tool, 'approval_request');
      const asked = await client.call(early.body.next_tool, { preview_id: id, justification: 'The client agreed on 24,000 JPY' });
      assert.equal(asked.body.status, 'pending', asked.body.message);
      const seen = await person(world, 'GET', `/v1/previews/${id}?response_format=detailed`);
      const decided = await person(world, 'POST', `/v1/previews/${id}/decisions`, { decision: 'approve', digest: seen.change.digest, reason: 'As agreed' });
      assert.equal(decided.status, 'approved', decided.message);
      const status = (await client.call('change_status', { preview_id: id })).body;
      assert.equal(status.status, 'approved');
      assert.equal(status.next_tool, 'budget_change_apply');
      return `${early.body.code} → approval_request: ${asked.body.status} → a person approves digest ${seen.change.digest.slice(0, 12)}… → ${status.status}`;
    }],
    ['apply', async () => {
      const { isError, body } = await client.call('budget_change_apply', { preview_id: id });
      assert.equal(isError, false, body.message);
      assert.equal(body.status, 'applied');
      applied = body;
      return body.message;
    }],
    ['status', async () => {
      const { isError, body } = await client.call('change_status', { preview_id: id, response_format: 'detailed' });
      assert.equal(isError, false);
      assert.equal(body.status, 'applied');
      assert.equal(body.change.outcome.evidence, 'receipt');
      return `${body.status} by ${body.change.outcome.evidence}`;
    }],
    ['replay', async () => {
      const { isError, body } = await client.call('budget_change_apply', { preview_id: id });
      assert.equal(isError, false);
      assert.equal(body.status, 'applied');
      assert.equal(body.message, applied.message);
      assert.deepEqual(body.change, applied.change);
      assert.deepEqual(await counted(world, large), { received: 1, effects: 1 });
      return 'the same answer; the target counts 1 request and 1 effect';
    }],
    ['unknown outcome', async () => {
      const preview = (await client.call('budget_change_preview', ask(lost, 12000))).body;
      assert.equal(preview.status, 'approved', preview.message);
      await control(world, 'POST', '/_sim/faults', [{ op: 'change', resource: lost, do: [{ action: 'drop_after_effect' }] }]);
      const { isError, body } = await client.call('budget_change_apply', { preview_id: preview.preview_id });
      assert.equal(isError, true);
      assert.equal(body.code, 'outcome_unknown');
      assert.equal(body.retryable, false);
      assert.equal(body.next_tool, 'change_status');
      let settled;
      for (let asked = 0; asked < 20 && !['applied', 'not_applied'].includes(settled?.status); asked++) {
        settled = (await client.call(body.next_tool, { ...body.next_arguments, wait_s: 5 })).body;
      }
      assert.equal(settled.status, 'applied', settled.message);
      assert.equal(settled.change.outcome.evidence, 'lookup');
      assert.deepEqual(await counted(world, lost), { received: 1, effects: 1 });
      return `${body.code}, retryable ${body.retryable} → change_status: ${settled.status} by ${settled.change.outcome.evidence}; 1 effect`;
    }],
  ];
}

// person speaks to the JSON API as the approver.
async function person(world, method, path, body) {
  const response = await fetch(world.url + path, {
    method, body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${world.tokens.approver}`, 'Content-Type': 'application/json', 'Accept-Language': 'en' },
  });
  const answer = await response.json();
  assert.ok(response.ok, `${method} ${path}: HTTP ${response.status} ${answer.message ?? answer.detail}`);
  return answer;
}

// control speaks to the simulated platform.
async function control(world, method, path, body) {
  const response = await fetch(world.target + path, {
    method, body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${world.targetKey}`, 'Content-Type': 'application/json' },
  });
  assert.ok(response.ok, `${method} ${path}: HTTP ${response.status} ${response.ok ? '' : await response.text()}`);
  return response.headers.get('content-length') === '0' ? undefined : response.json().catch(() => undefined);
}

async function counted(world, campaign) {
  return (await control(world, 'GET', '/_sim/counters')).by_resource[campaign];
}
