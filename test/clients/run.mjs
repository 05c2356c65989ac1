// Runs every case with every client, prints one line for each, and the count last. node run.mjs WORLD.json
import { readFileSync } from 'node:fs';
import { all } from './clients.mjs';
import { cases } from './story.mjs';

const world = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const perCase = 60_000;

// within ends a case that hangs.
function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no end within ${ms / 1000} s`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// reason is one line: the message, and what lies under it.
function reason(error) {
  const cause = error.cause ? ` (${error.cause.code ?? ''} ${String(error.cause.message).split('\n')[0]})` : '';
  return process.env.VERBOSE ? error.stack : String(error.message).split('\n')[0] + cause;
}

// tell runs the cases of one client, one after the other, and returns a line for each.
async function tell({ name, open }, n) {
  let client;
  const lines = [];
  const fails = (title, error) => lines.push(`not ok: ${name}: ${title}: ${reason(error)}`);
  try {
    client = await within(perCase, open(world.tokens.reader));
  } catch (error) {
    for (const [title] of cases(world, undefined, n)) fails(title, error);
    return lines;
  }
  for (const [title, run] of cases(world, client, n)) {
    try {
      lines.push(`ok: ${name}: ${title}: ${await within(perCase, run())}`);
    } catch (error) {
      fails(title, error);
    }
  }
  await client.close().catch(() => {});
  return lines;
}

// Each client has campaigns of its own. Those that are processes run beside those that share this one, which take turns.
const running = [];
let turn = Promise.resolve();
for (const [n, client] of all(world).entries()) {
  if (client.apart) running.push(tell(client, n));
  else running.push(turn = turn.then(() => tell(client, n)));
}
let ok = 0, total = 0;
for (const client of running) {
  for (const line of await client) {
    console.log(line);
    total++;
    if (line.startsWith('ok: ')) ok++;
  }
}
console.log(`clients: ${ok}/${total} ok`);
process.exit(ok === total && total > 0 ? 0 : 1);
